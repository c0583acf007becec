"""The person's own mailbox. Looking and marking as read are two steps: what was never shown is not read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from turnpost.actions import people, receipts
from turnpost.actions.audited import refusing
from turnpost.actions.results import Inbox
from turnpost.core import files, mailbox, registry, store, threads
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker


def waiting(root: str, *, speaker: Speaker | None = None) -> Inbox:
    """What waits for the person: questions until they are answered, then the rest; turnpost's own alerts are among it.

    The person only.
    """
    _person(root, speaker)
    pinned = {message["id"]: message for message in threads.open_questions(root)}
    here = [
        store.if_known(mailbox.load_message, root, mailbox.entry_id(name))
        for name in Mailbox(root, registry.PERSON).waiting()
    ]
    unseen = (message for message in here if message is not None and message["id"] not in pinned)
    shown = (receipts.view(message) for message in chain(pinned.values(), unseen))
    return Inbox(tuple(view._replace(pinned=view.id in pinned) for view in shown))


def mark_read(root: str, message_ids: Iterable[str], *, speaker: Speaker | None = None) -> None:
    """The person has seen these messages: their senders' receipts say `read` from now on."""
    _person(root, speaker)
    box = Mailbox(root, registry.PERSON)
    if not files.exists(box.folder):
        return
    with box.lock(5.0):
        trouble: OSError | None = None
        for message_id in message_ids:
            try:
                box.end(message_id, "read")
            except OSError as error:  # what is wrong with one entry must not keep the others
                trouble = error
        if trouble is not None:
            raise trouble


def _person(root: str, speaker: Speaker | None) -> None:
    with refusing(root, "inbox", registry.PERSON, speaker):
        people.person(root, "read the person's inbox", speaker)
