"""What turnpost itself has to say: messages of the sender `system`, which takes no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.core import outbox, registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnpost.core.records import Agent, Message, Party

SYSTEM: Party = {"kind": "system", "name": "system", "key": "system"}
ROOM = 10_000
"""Messages that may wait where turnpost still adds its own: an alert must not fail because many people wrote."""


def send(root: str, recipients: Sequence[Agent], body: str, *, urgent: bool = False) -> Message:
    """Send an alert. Raises what a send raises."""
    message = outbox.compose(
        SYSTEM, [registry.party(one) for one in recipients], body, kind="alert", urgent=urgent
    )
    outbox.send(root, message, recipients, limit=ROOM)
    return message
