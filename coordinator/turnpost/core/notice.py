"""What turnpost itself has to say: messages of the sender `system`, which takes no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.core import audit, mailbox, outbox, registry, store, subagents, text
from turnpost.core.errors import TurnpostError

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


def undeliverable(root: str, key: str, message_ids: Sequence[str], reason: str) -> None:
    """Tell the senders of messages that were given up: one alert each. Whom it could not be sent to stands in the log.

    An alert that cannot be delivered raises no alert: two dead agents would report each other for ever.
    """
    name = _name(root, key)
    for sender_key, ids in _by_sender(root, message_ids).items():
        sender = (
            store.if_known(registry.person, root)
            if sender_key == registry.PERSON
            else store.if_known(registry.load_agent, root, sender_key)
        )
        if sender is None:
            continue
        try:
            send(
                root,
                [sender],
                f"Not delivered to {name}, given up: {', '.join(ids)}.\nReason: {text.clean(reason)[0]}",
            )
        except TurnpostError as error:
            audit.write(root, "alert-failed", to=sender["name"], error=error.message)


def _by_sender(root: str, message_ids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for message_id in message_ids:
        message = mailbox.load_message(root, message_id)
        if message is not None and message["sender"]["kind"] != "system":
            found.setdefault(message["sender"]["key"], []).append(message_id)
    return found


def _name(root: str, key: str) -> str:
    known = store.if_known(subagents.load if subagents.is_subagent(key) else registry.load_agent, root, key)
    return known["name"] if known else key
