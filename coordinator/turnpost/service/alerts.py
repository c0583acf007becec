"""Giving up loudly: what cannot be delivered is kept with its reason, and its sender is told."""

from __future__ import annotations

from turnpost.core import notice
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
    notice.undeliverable(
        root, key, ended, reason, lambda to, error: log.write("alert-failed", to=to, error=error)
    )
