"""Giving up loudly: what cannot be delivered is kept with its reason, and its sender is told."""

from __future__ import annotations

from turnpost.core import notice
from turnpost.core.mailbox import Mailbox


def give_up(root: str, key: str, message_ids: list[str], reason: str) -> None:
    """End messages that wait, or are on their way, as undeliverable and send one alert to each of their senders."""
    box = Mailbox(root, key)
    with box.lock(5.0):
        ended = [
            message_id
            for message_id in message_ids
            if box.end(message_id, "undeliverable", reason, on_its_way=True)
        ]
    notice.undeliverable(root, key, ended, reason)
