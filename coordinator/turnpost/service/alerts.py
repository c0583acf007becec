"""Giving up loudly: what cannot be delivered is kept with its reason, and its sender is told."""

from __future__ import annotations

from turnpost.core import mailbox, notice, registry, text
from turnpost.core.errors import TurnpostError
from turnpost.core.mailbox import Mailbox
from turnpost.service.log import Log


def give_up(root: str, key: str, message_ids: list[str], reason: str, log: Log) -> None:
    """End messages that wait, or are on their way, as undeliverable and send one alert to each of their senders."""
    ended: list[str] = []
    with Mailbox(root, key).lock(5.0) as _:
        box = Mailbox(root, key)
        ended = [
            message_id
            for message_id in message_ids
            if box.end(message_id, "undeliverable", reason, on_its_way=True)
        ]
    for sender_key, ids in _by_sender(root, ended).items():
        _alert(root, sender_key, key, ids, reason, log)


def _by_sender(root: str, message_ids: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for message_id in message_ids:
        message = mailbox.load_message(root, message_id)
        # An alert that cannot be delivered raises no alert: two dead agents would report each other for ever.
        if message is not None and message["sender"]["kind"] != "system":
            found.setdefault(message["sender"]["key"], []).append(message_id)
    return found


def _alert(root: str, sender_key: str, key: str, message_ids: list[str], reason: str, log: Log) -> None:
    sender = registry.person(root) if sender_key == registry.PERSON else registry.load_agent(root, sender_key)
    recipient = registry.load_agent(root, key)
    if sender is None:
        return
    name = recipient["name"] if recipient else key
    body = f"Not delivered to {name}, given up: {', '.join(message_ids)}.\nReason: {text.clean(reason)[0]}"
    try:
        notice.send(root, [sender], body)
    except TurnpostError as error:
        log.write("alert-failed", to=sender["name"], error=error.message)
