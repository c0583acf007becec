"""What turnpost itself has to say: messages of the sender `system`, which takes no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.core import audit, outbox, registry, store, subagents, text
from turnpost.core.errors import LockBusy, TurnpostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnpost.core.records import Agent, Message, Party

SYSTEM: Party = {"kind": "system", "name": "system", "key": "system"}
ROOM = 10_000
"""Messages that may wait where turnpost still adds its own: an alert must not fail because many people wrote."""


def send(
    root: str, recipients: Sequence[Agent], body: str, *, urgent: bool = False, message_id: str | None = None
) -> Message:
    """Send an alert, under an id that was given beforehand if there is one. Raises what a send raises."""
    message = outbox.compose(
        SYSTEM, [registry.party(one) for one in recipients], body, kind="alert", urgent=urgent
    )
    if message_id is not None:
        message["id"] = message["origin"] = message_id
    outbox.send(root, message, recipients, limit=ROOM)
    return message


def tell(root: str, key: str, sender_key: str, message_ids: Sequence[str], reason: str, alert: str) -> None:
    """Send the one alert to one sender, under its id. Where that is refused it stands in the log. Raises LockBusy.

    An alert that cannot be delivered raises no alert: two dead agents would report each other for ever.
    """
    sender = (
        store.if_known(registry.person, root)
        if sender_key == registry.PERSON
        else store.if_known(registry.load_agent, root, sender_key)
    )
    if sender is None:
        return
    body = f"Not delivered to {_name(root, key)}, given up: {', '.join(message_ids)}.\nReason: {text.clean(reason)[0]}"
    try:
        send(root, [sender], body, message_id=alert)
    except LockBusy:
        raise
    except TurnpostError as error:
        audit.write(root, "alert-failed", to=sender["name"], error=error.message)


def _name(root: str, key: str) -> str:
    known = store.if_known(subagents.load if subagents.is_subagent(key) else registry.load_agent, root, key)
    return known["name"] if known else key
