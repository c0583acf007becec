"""Threads: which there are, what stands in one, and finding messages again. Looking marks nothing as read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.actions import receipts, searching
from turnpost.actions.results import Found, Thread, ThreadLine, Threads
from turnpost.actions.searching import EVERYTHING, Query
from turnpost.actions.seeing import Eyes
from turnpost.core import clock, ids, mailbox, missions, registry, store, text, threads
from turnpost.core.errors import NotFound
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnpost.actions.results import MessageView
    from turnpost.core.records import Message

NEWEST = 100
"""How many messages are shown unless more are asked for."""
_INBOX = threads.digest(threads.INBOX)


def overview(root: str, *, speaker: Speaker | None = None) -> Threads:
    """The threads, the newest first: for the person all of them, for an agent those it takes part in."""
    eyes = Eyes(root, speaker)
    threads.refresh(root)
    pinned: set[str] = set()
    if eyes.is_person:
        pinned.update(message["id"] for message in threads.open_questions(root))
    lines = [line for digest in threads.every(root) if (line := _line(root, digest, eyes, pinned))]
    return Threads(tuple(sorted(lines, key=lambda line: (line.last_id, line.kind != "inbox"), reverse=True)))


def thread(
    root: str, name: str, query: Query = EVERYTHING, *, newest: int = NEWEST, speaker: Speaker | None = None
) -> Thread:
    """A thread's messages that fit the query, at most the `newest`.

    A thread is called by its name, by the names of those concerned in any order (`beta+alpha`), by one agent's name (its
    thread with the caller), or by the id of a message in it. Raises NotFound with the nearest names, and UsageError.
    """
    eyes = Eyes(root, speaker)
    threads.refresh(root)
    digest = _find(root, name, eyes)
    found, older = _search(root, threads.messages(root, digest), query, eyes, newest)
    return Thread(_name(root, digest), found, older)


def search(root: str, query: Query, *, newest: int = NEWEST, speaker: Speaker | None = None) -> Found:
    """The messages of all threads that fit the query, at most the `newest`. Raises NotFound and UsageError."""
    eyes = Eyes(root, speaker)
    threads.refresh(root)
    every = {message_id for digest in threads.every(root) for message_id in threads.messages(root, digest)}
    return Found(*_search(root, sorted(every), query, eyes, newest))


def messages_of(root: str, name: str, *, speaker: Speaker | None = None) -> list[str]:
    """The ids of a thread's messages, oldest first. Raises NotFound as `thread` does."""
    eyes = Eyes(root, speaker)
    threads.refresh(root)
    return threads.messages(root, _find(root, name, eyes))


def names(root: str) -> list[str]:
    """What the threads are called, for a shell to offer."""
    return sorted(_name(root, digest) for digest in threads.every(root) if threads.messages(root, digest))


def _search(
    root: str, message_ids: list[str], query: Query, eyes: Eyes, newest: int
) -> tuple[tuple[MessageView, ...], int]:
    fits = searching.Fits(query, _keys(root, query.sender))
    found = [
        message
        for message_id in message_ids
        if (message := store.if_known(mailbox.load_message, root, message_id))
        and eyes.see(message)
        and fits(message)
    ]
    if query.state is None:  # receipts are looked up for what is shown only
        full = (store.if_known(receipts.full, root, message) for message in found[-newest:])
        return tuple(view for view in full if view), max(0, len(found) - newest)
    every = (store.if_known(receipts.full, root, message) for message in found)
    shown = [view for view in every if view and query.state in _states(view)]
    return tuple(shown[-newest:]), max(0, len(shown) - newest)


def _states(view: MessageView) -> set[str]:
    return {receipt.state for receipt in view.receipts.values()}


def _keys(root: str, sender: str | None) -> frozenset[str] | None:
    """The mailboxes a sender's name stands for; its agent's subagents have mailboxes of their own."""
    if sender is None:
        return None
    word = text.name_key(sender)
    return (
        frozenset((word,))
        if word in (registry.PERSON, "system")
        else frozenset((registry.find(root, sender)["key"],))
    )


def _find(root: str, name: str, eyes: Eyes) -> str:
    known = set(threads.every(root))
    for identity in _identities(root, name, eyes):
        if (digest := threads.digest(identity)) in known and _visible(root, digest, eyes):
            return digest
    titles = {_name(root, digest): digest for digest in known if _visible(root, digest, eyes)}
    if name in titles:
        return titles[name]
    near = text.nearest(name, titles)
    others = "`turnpost threads` lists those there are" if titles else "nothing was sent yet"
    hint = f"; nearest: {', '.join(near)}" if near else f"; {others}"
    raise NotFound(f"there is no thread '{text.visible(name)}'{hint}", near=near)


def _identities(root: str, name: str, eyes: Eyes) -> Iterator[str]:
    """What a word can stand for, the likeliest first."""
    if text.name_key(name) == threads.INBOX:
        if eyes.is_person:
            yield threads.INBOX
        return
    if ids.is_id(name, "msg"):
        message = mailbox.load_message(root, name)
        if message is not None and eyes.see(message):
            yield threads.identity(message)
        return
    if missions.load(root, name) is not None:
        yield threads.of_name(name)
    keys = [
        registry.PERSON if text.name_key(n) == registry.PERSON else registry.key_of_name(root, n)
        for n in name.split("+")
    ]
    if all(keys):
        with_me = [eyes.key] if len(keys) == 1 else []
        yield threads.of_keys([*filter(None, keys), *with_me])
    # Last: no name that was given hides the thread of those who bear it.
    yield threads.of_name(name)


def _visible(root: str, digest: str, eyes: Eyes) -> bool:
    if digest == _INBOX:
        return eyes.is_person
    return _last(root, digest, eyes) is not None


def _last(root: str, digest: str, eyes: Eyes | None = None) -> Message | None:
    """The newest message of a thread that can be read, and that the eyes may see."""
    return next(_newest_first(root, digest, eyes), None)


def _newest_first(root: str, digest: str, eyes: Eyes | None) -> Iterator[Message]:
    for message_id in reversed(threads.messages(root, digest)):
        message = store.if_known(mailbox.load_message, root, message_id)
        if message is not None and (eyes is None or eyes.see(message)):
            yield message


def _name(root: str, digest: str) -> str:
    """What a thread is called now: those concerned by their present names."""
    if digest == _INBOX:
        return threads.INBOX
    last = _last(root, digest)
    if last is None:
        return digest
    if not threads.is_unnamed(last):
        return last["thread"]
    return threads.of_names(threads.present(root, party) for party in threads.whose(last))


def _line(root: str, digest: str, eyes: Eyes, pinned: set[str]) -> ThreadLine | None:
    last = None if digest == _INBOX and not eyes.is_person else _last(root, digest, eyes)
    if last is None:
        return None
    message_ids = threads.messages(root, digest)
    # The person sees all of them; counting them reads none.
    count = len(message_ids) if eyes.is_person else sum(1 for _ in _newest_first(root, digest, eyes))
    return ThreadLine(
        _name(root, digest), _kind(root, digest, last), count, len(pinned.intersection(message_ids)),
        clock.rfc3339(last["sent"]), last["id"], threads.present(root, last["sender"]), last["body"],
    )  # fmt: skip


def _kind(root: str, digest: str, message: Message) -> str:
    if digest == _INBOX:
        return "inbox"
    if threads.is_unnamed(message):
        return "pair"
    return "mission" if store.if_known(missions.load, root, message["thread"]) else "named"
