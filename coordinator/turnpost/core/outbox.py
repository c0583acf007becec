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
from turnpost.core.errors import BadFile, Refused, TurnpostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from turnpost.core.records import Agent, Message, Party

BODY_LIMIT = 8_000
MAILBOX_LIMIT = 64
_RECENT = 64


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
) -> dict[str, tuple[int, int]]:
    """Put a message into every recipient's queue and return once it is durable.

    Per key: how many wait there with it, and which copy of the same text it is.

    Raises Refused (`mailbox-full`, `ended`) and LockBusy; then nothing was written. The locks are taken in one order, so two
    senders to the same pair cannot block each other.
    """
    digest = hashlib.sha256(f"{message['sender']['key']}\0{message['body']}".encode()).hexdigest()[:24]
    boxes = [mailbox.Mailbox(root, key) for key in sorted({agent["key"] for agent in recipients})]
    stands: dict[str, tuple[int, int]] = {}
    waiting: dict[str, list[str]] = {}
    with ExitStack() as stack:
        for box in boxes:
            stack.enter_context(box.lock(5.0))
        for box in boxes:
            name = next(agent["name"] for agent in recipients if agent["key"] == box.key)
            if subagents.is_subagent(box.key):
                _check_lives(root, box.key, name)
            waiting[box.key] = box.waiting()
            _check_room(
                len(waiting[box.key]),
                name,
                box.key,
                subagent_limit if subagents.is_subagent(box.key) else limit,
            )
        with files.Linked(_under_way(root, message["id"]), store.pack(message)) as record:
            try:
                _spread(
                    root, message, record, {box.key: box.place(message, waiting[box.key]) for box in boxes}
                )
            except OSError:
                _take_back(root, message, record)
                raise
        for box in boxes:  # while they are locked, so that no claim is told before it
            stands[box.key] = (1 + len(waiting[box.key]), _count_copy(box, digest))
            audit.moved(
                root, "send", message, box.key, thread=message["thread"], urgent=message["urgent"],
                redacted=message.get("redacted", 0),
            )  # fmt: skip
    for box in boxes:
        bell.ring_waiter(root, box.key)
    return stands


def recover(root: str, older_than: float = 10.0) -> list[str]:
    """Finish sends that were killed between their record and the last queue; the ids that were finished.

    One that cannot be finished stands in the log, and keeps no other.
    """
    finished: list[str] = []
    for name in files.names(home.outbox(root)):
        message_id = name.removesuffix(".json")
        try:
            message = store.if_known(mailbox.load_message, root, message_id)
            # One from the future was sent before the clock was set back.
            if message is None or 0 <= clock.now() - message["sent"] < older_than:
                continue
            if _finished(root, message):
                finished.append(message_id)
        except (OSError, TurnpostError) as error:
            audit.write(root, "trouble", about=message_id, error=str(error), kind=type(error).__name__)
    return finished


def _finished(root: str, message: Message) -> bool:
    """Finish a send; False for one whose sender was only slow."""
    with ExitStack() as stack:
        boxes = [mailbox.Mailbox(root, key) for key in sorted({party["key"] for party in message["to"]})]
        # A launch that failed has taken its agent away: the others still get theirs.
        boxes = [box for box in boxes if registry.is_key(box.key) and files.exists(box.queue)]
        for box in boxes:
            stack.enter_context(box.lock(5.0))
        if not files.exists(_under_way(root, message["id"])):
            return False
        places = {
            box.key: box.place(message, box.waiting()) if box.receipt(message["id"]) is None else None
            for box in boxes
        }
        with files.Linked(_under_way(root, message["id"])) as record:
            _spread(root, message, record, places)
        for box in boxes:
            audit.moved(root, "send-recovered", message, box.key)
    for box in boxes:
        bell.ring_waiter(root, box.key)
    return True


def _spread(root: str, message: Message, record: files.Linked, places: Mapping[str, str | None]) -> None:
    """Give a record in the outbox its places in the queues that miss it and in its own folder, and make all of them durable.

    In the outbox it is all recipients' or nobody's: killed anywhere before the move, `recover` does this again.
    """
    for key, place in places.items():
        if place:
            record.link(place)
        _announce(root, key)
    folder = mailbox.message_folder(root, message["id"])
    files.mkdir(folder)
    threads.index(root, message)
    record.move(f"{folder}/message.json")
    record.sync()


def _take_back(root: str, message: Message, record: files.Linked) -> None:
    """Undo a send that failed half way (disk full), under its locks: its sender is told so, and will send again."""
    record.remove()
    threads.forget(root, message)
    files.rmdir(mailbox.message_folder(root, message["id"]))


def _under_way(root: str, message_id: str) -> str:
    return f"{home.outbox(root)}/{message_id}.json"


def _check_room(waiting: int, name: str, key: str, limit: int) -> None:
    if waiting >= limit:
        whose = " for a subagent" if subagents.is_subagent(key) else ""
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


def _count_copy(box: mailbox.Mailbox, digest: str) -> int:
    """Remember a body among the last of the mailbox; how often it is there now."""
    path, line = box.folder + "/recent", digest.encode()
    try:
        found = files.read(path).split()
    except (OSError, BadFile):
        found = []
    try:
        if len(found) < 2 * _RECENT:
            files.append(path, line + b"\n", files.RECORD_LIMIT)
        else:
            files.write(path, b"\n".join([*found[-_RECENT:], line, b""]), durable=False)
    except OSError:
        pass  # the message is sent, whatever becomes of a count
    return 1 + found[1 - _RECENT :].count(line)
