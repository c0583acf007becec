"""Sending: all checks first, then one durable record, then the recipients' queues. Either all get it or none."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack

from turnpost.core import (
    audit,
    bell,
    clock,
    files,
    home,
    ids,
    mailbox,
    registry,
    store,
    subagents,
    text,
    threads,
)
from turnpost.core.errors import Newer, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnpost.core.records import Agent, Message, Party

BODY_LIMIT = 8_000
MAILBOX_LIMIT = 64


def check_body(body: str, limit: int = BODY_LIMIT, whose: str = "") -> str:
    """The body as it will be stored; `whose` the limit is. Raises Refused (`empty`, `too-long`) with the numbers."""
    fixed, _ = text.clean(body)
    if not fixed.strip():
        raise Refused(
            "refused by rule 'empty': the body has no text; give it as an argument or on stdin with '-'",
            rule="empty",
            bytes=0,
        )
    size = len(fixed.encode())
    if size > limit:
        raise Refused(
            f"refused by rule 'too-long': the body has {size} bytes of UTF-8, the limit{whose} is {limit}; "
            "shorten it, or put the text in a file and send its path",
            rule="too-long", bytes=size, limit=limit,
        )  # fmt: skip
    return fixed


def compose(
    sender: Party,
    to: Sequence[Party],
    body: str,
    *,
    kind: str = "note",
    thread: str | None = None,
    urgent: bool = False,
    reply_to: str | None = None,
    refs: Sequence[str] = (),
    options: Sequence[str] = (),
    replied: Message | None = None,
    quiet: bool = False,
    redacted: int = 0,
    choice: int | None = None,
    anew: bool = False,
    among: Sequence[Party] = (),
) -> Message:
    """A new message. The body has passed `check_body`.

    `replied` is the one it answers, which begins a chain of its own if `anew`; `among` are those whose thread it is in.
    """
    now = clock.now()
    before = None if anew else replied
    identifier = ids.new("msg", now)
    message: Message = {
        "v": 1, "id": identifier, "sender": sender, "to": list(to), "kind": kind,
        "thread": thread or threads.of_names(party["name"] for party in (among or (sender, *to))), "body": body, "urgent": urgent, "sent": now, "reply_to": reply_to,
        "refs": list(refs), "options": list(options), "quiet": quiet, "redacted": redacted,
        "origin": before.get("origin", before["id"]) if before else identifier,
        # What the person says begins a chain anew: the count is of agents who answer each other.
        "hops": before.get("hops", 0) + 1 if before and sender["kind"] != "person" else 0,
    }  # fmt: skip
    if choice is not None:
        message["choice"] = choice
    if among:
        message["among"] = list(among)
    return message


def send(
    root: str,
    message: Message,
    recipients: Sequence[Agent],
    *,
    limit: int = MAILBOX_LIMIT,
    subagent_limit: int = subagents.MAILBOX_LIMIT,
) -> dict[str, int]:
    """Put a message into every recipient's queue and return once it is durable: per key, which copy of the same text it is.

    Raises Refused (`mailbox-full`, `ended`) and LockBusy; then nothing was written. The locks are taken in one order, so two
    senders to the same pair cannot block each other.
    """
    digest = hashlib.sha256(f"{message['sender']['key']}\0{message['body']}".encode()).hexdigest()[:24]
    boxes = [mailbox.Mailbox(root, key) for key in sorted({agent["key"] for agent in recipients})]
    copies: dict[str, int] = {}
    with ExitStack() as stack:
        for box in boxes:
            stack.enter_context(box.lock(5.0))
        for box in boxes:
            name = next(agent["name"] for agent in recipients if agent["key"] == box.key)
            if subagents.is_subagent(box.key):
                _check_lives(root, box.key, name)
            _check_room(box, name, subagent_limit if subagents.is_subagent(box.key) else limit)
        try:
            files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
            for box in boxes:
                copies[box.key] = _count_copy(box, digest)
                box.put(message, digest, clock.now())
                _announce(root, box.key)
            _keep(root, message)
        except OSError:
            _take_back(root, message, boxes)
            raise
        for box in boxes:  # while they are locked, so that no claim is told before it
            audit.moved(
                root, "send", message, box.key, thread=message["thread"], urgent=message["urgent"],
                redacted=message.get("redacted", 0),
            )  # fmt: skip
    for box in boxes:
        bell.ring_waiter(root, box.key)
    return copies


def recover(root: str, older_than: float = 10.0) -> list[str]:
    """Finish sends that were killed between their record and the last queue; the ids that were finished."""
    finished: list[str] = []
    for name in files.names(home.outbox(root)):
        message_id = name.removesuffix(".json")
        message = store.if_known(mailbox.load_message, root, message_id)
        if message is None or clock.now() - message["sent"] < older_than:
            continue
        with ExitStack() as stack:
            boxes = [mailbox.Mailbox(root, key) for key in sorted({party["key"] for party in message["to"]})]
            # A launch that failed has taken its agent away: the others still get theirs.
            boxes = [box for box in boxes if files.exists(box.queue)]
            for box in boxes:
                stack.enter_context(box.lock(5.0))
            if not files.exists(f"{home.outbox(root)}/{name}"):
                continue  # its sender was only slow
            for box in boxes:
                box.put(message, "", clock.now())
                _announce(root, box.key)
            _keep(root, message)
            for box in boxes:
                audit.moved(root, "send-recovered", message, box.key)
        for box in boxes:
            bell.ring_waiter(root, box.key)
        finished.append(message_id)
    return finished


def _take_back(root: str, message: Message, boxes: Sequence[mailbox.Mailbox]) -> None:
    """Undo a send that failed half way (disk full), under its locks: its sender is told so, and will send again."""
    for box in boxes:
        box.withdraw(message["id"])
    files.unlink(f"{home.outbox(root)}/{message['id']}.json")
    files.unlink(f"{mailbox.message_folder(root, message['id'])}/message.json")
    threads.forget(root, message)


def _check_room(box: mailbox.Mailbox, name: str, limit: int) -> None:
    waiting = len(box.waiting())
    if waiting >= limit:
        whose = " for a subagent" if subagents.is_subagent(box.key) else ""
        raise Refused(
            f"refused by rule 'mailbox-full': {waiting} messages wait for {name}, the limit{whose} is {limit}; "
            "wait until some are read, or cancel some",
            rule="mailbox-full", waiting=waiting, limit=limit, recipient=name,
        )  # fmt: skip


def _check_lives(root: str, key: str, name: str) -> None:
    """Under the mailbox's lock, as its end is: a message comes before the end, or is refused."""
    if not subagents.lives(root, key):
        raise Refused(
            f"refused by rule 'ended': the subagent {name} has ended and reads nothing any more; write to its agent",
            rule="ended", recipient=name,
        )  # fmt: skip


def _announce(root: str, key: str) -> None:
    if key != registry.PERSON:  # nobody delivers to the person, who looks into the inbox
        bell.announce(root, key)
    if subagents.is_subagent(key):
        subagents.announce(root, key)


def _keep(root: str, message: Message) -> None:
    folder = mailbox.message_folder(root, message["id"])
    files.mkdir(folder)
    # Before the move: a send killed in between is finished by `recover`, which indexes once more.
    threads.index(root, message)
    files.move(f"{home.outbox(root)}/{message['id']}.json", f"{folder}/message.json")
    for path in (folder, folder.rpartition("/")[0]):
        files.sync_folder(path)


def _count_copy(box: mailbox.Mailbox, digest: str) -> int:
    """Remember a body among the mailbox's last sixty-four; how often it is there now."""
    path = box.folder + "/recent"
    try:
        recent = (store.load(path) or {}).get("digests", [])
    except Newer:
        return 1
    recent = [*recent[-63:], digest] if isinstance(recent, list) else [digest]
    files.write(path, store.pack({"v": 1, "digests": recent}), durable=False)
    return recent.count(digest)
