"""The person's own mailbox. Looking and marking as read are two steps: what was never shown is not read."""

from __future__ import annotations

from collections.abc import Iterable

from turnpost.actions import people, receipts
from turnpost.actions.audited import refusing
from turnpost.actions.results import Inbox
from turnpost.core import files, mailbox, registry
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker


def waiting(root: str, *, speaker: Speaker | None = None) -> Inbox:
    """What waits for the person, in the order received; turnpost's own alerts are among it. The person only."""
    _person(root, speaker)
    box = Mailbox(root, registry.PERSON)
    found = [mailbox.load_message(root, mailbox.entry_id(name)) for name in box.waiting()]
    return Inbox(tuple(receipts.view(message) for message in found if message is not None))


def mark_read(root: str, message_ids: Iterable[str], *, speaker: Speaker | None = None) -> None:
    """The person has seen these messages: their senders' receipts say `read` from now on."""
    _person(root, speaker)
    box = Mailbox(root, registry.PERSON)
    if not files.exists(box.folder):
        return
    with box.lock(5.0):
        for message_id in message_ids:
            box.end(message_id, "read")


def _person(root: str, speaker: Speaker | None) -> None:
    with refusing(root, "inbox", registry.PERSON, speaker):
        people.person(root, "read the person's inbox", speaker)
