"""Giving up loudly: what cannot be delivered is kept with its reason, and its sender is told, once.

What is to be told is noted first, with the alert's id: whoever is killed on the way, or finds the sender's mailbox locked,
has it told by the coordinator's next look.
"""

from __future__ import annotations

from turnpost.core import clock, files, ids, mailbox, notice, store
from turnpost.core.mailbox import Mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTE = {"sender": str, "ids": [str], "reason": str}


def give_up(root: str, key: str, message_ids: Sequence[str], reason: str) -> None:
    """End messages that wait, or are on their way, as undeliverable and send one alert to each of their senders."""
    box = Mailbox(root, key)
    with box.lock(5.0):
        end(box, message_ids, reason)
    finish(root, key)


def end(box: Mailbox, message_ids: Sequence[str], reason: str) -> None:
    """End messages and note whom to tell, which `finish` does. Holding the mailbox's lock."""
    for sender, theirs in _by_sender(box.root, message_ids).items():
        files.mkdir(_folder(box))
        note = {"v": 1, "sender": sender, "ids": theirs, "reason": reason}
        files.write(f"{_folder(box)}/{ids.new('msg', clock.now())}.json", store.pack(note))
    for message_id in message_ids:
        box.end(message_id, "undeliverable", reason, on_its_way=True)


def finish(root: str, key: str) -> None:
    """Send the alerts that are noted; one that was sent already is not sent again.

    Raises LockBusy for a sender whose mailbox is locked: what is noted stays.
    """
    box = Mailbox(root, key)
    folder = _folder(box)
    for name in files.names(folder):
        note = store.load(f"{folder}/{name}", _NOTE)
        alert = name.removesuffix(".json")
        if note is not None and mailbox.load_message(root, alert) is None:
            with box.lock(5.0):
                ended = [one for one in note["ids"] if _ended(box, one)]
            if ended:
                notice.tell(root, key, note["sender"], ended, note["reason"], alert)
        files.unlink(f"{folder}/{name}")


def _by_sender(root: str, message_ids: Sequence[str]) -> dict[str, list[str]]:
    """Messages by the keys of their senders, without turnpost's own."""
    found: dict[str, list[str]] = {}
    for message_id in message_ids:
        message = mailbox.load_message(root, message_id)
        if message is not None and message["sender"]["kind"] != "system":
            found.setdefault(message["sender"]["key"], []).append(message_id)
    return found


def _ended(box: Mailbox, message_id: str) -> bool:
    receipt = box.receipt(message_id)
    return receipt is not None and receipt["state"] == "undeliverable"


def _folder(box: Mailbox) -> str:
    return box.folder + "/given-up"
