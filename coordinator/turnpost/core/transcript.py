"""The proof that a message was read: its mark in the conversation, and a reply of the model after it.

Only two kinds of entries are the conversation: what a user entry says outside tool results (a rewake, a block's reason),
and the attachments in `CONVERSATION` (added context). The transcript also keeps a hook's raw output, a queue of what has
yet to enter, and copies of requests; a mark there proves nothing, and none of it comes back after a crash.

A transcript is JSON lines, written by Claude Code while we read. Only whole lines count; a line over the limit is
skipped, since no entry that carries our text is that long.
"""

from __future__ import annotations

import os

from turnpost.core import clock, fastjson, files, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CONVERSATION = ("hook_additional_context", "queued_command")
LINE_LIMIT = 8 * 1024 * 1024


class Seen:
    """What a transcript shows of one message. `at` is the offset of the entry that carries it, -1 when there is none.

    `enqueued`: the harness holds the text for its next request; it enters as long as this process lives.
    `rewound`: the conversation went on from an earlier point (Esc before the answer), without the message.
    """

    __slots__ = ("at", "delivered_at", "enqueued", "line", "read_at", "rewound")

    def __init__(self) -> None:
        self.at = -1
        self.enqueued = False
        self.rewound = False
        self.line: set[str] = set()
        self.delivered_at: float | None = None
        self.read_at: float | None = None


def size(path: str) -> int:
    """The transcript's length in bytes, 0 when there is none."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def look(path: str, message_ids: list[str], offset: int) -> dict[str, Seen]:
    """What the transcript shows of each message from `offset` on. A missing file, or none of ours to read, shows nothing.

    Raises OSError where nothing is known of it: what could not be looked at must not count as not there.
    A subagent's conversation is in a file of its own; in its session's, what it said is beside the conversation.
    """
    aside = os.path.basename(os.path.dirname(path)) == "subagents"
    seen = {message_id: Seen() for message_id in message_ids}
    try:
        for at, line in _lines(path, offset):
            _take_in(line, at, seen, aside)
            if all(one.read_at is not None for one in seen.values()):
                break
    except OSError as error:
        if files.is_passing(error):
            raise
    return seen


def _take_in(line: bytes, at: int, seen: dict[str, Seen], aside: bool) -> None:
    """What one line adds. Lines that cannot matter are not even parsed."""
    carried = [message_id for message_id in seen if message_id.encode() in line]
    entered = [one for one in seen.values() if one.at >= 0 and one.read_at is None]
    if not carried and not (entered and b'"parentUuid"' in line):
        return
    entry = _entry(line)
    if entry is None or (entry.get("isSidechain") and not aside):
        return
    for one in entered:
        _follow(one, entry)
    text = _entered(entry) if carried else ""
    for message_id in carried:
        one = seen[message_id]
        if entry.get("operation") == "enqueue":
            one.enqueued = True
        elif render.mark(message_id) in text:
            if one.at < 0:
                one.at, one.delivered_at = at, _moment(entry)
            one.line.add(_word(entry, "uuid"))


def _follow(one: Seen, entry: dict[str, object]) -> None:
    """Follow the conversation from the entry that carries a message to the answer.

    The order of the lines lies after an Esc: the next prompt then hangs on an earlier entry, and neither it nor its
    answer descends from ours. A compaction cuts the chain and names the entry it follows.
    """
    parent = _word(entry, "parentUuid") or _word(entry, "logicalParentUuid")
    if parent and parent in one.line:
        one.line.add(_word(entry, "uuid"))
        if _is_reply(entry):
            # The harness stamps an answer when it begins and a hook's text when it is stored: the stamps may cross.
            one.read_at = max(_moment(entry), one.delivered_at or 0.0)
    elif _is_reply(entry):
        one.rewound = True


def _lines(path: str, offset: int) -> Iterator[tuple[int, bytes]]:
    with os.fdopen(files.open_plain(path), "rb") as file:
        file.seek(offset if offset <= size(path) else 0)
        while True:
            at = file.tell()
            line = file.readline(LINE_LIMIT)
            if line.endswith(b"\n"):
                yield at, line
            elif len(line) < LINE_LIMIT:
                return  # the end, or a line that is still being written
            else:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LINE_LIMIT)


def _entry(line: bytes) -> dict[str, object] | None:
    try:
        entry = fastjson.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _is_reply(entry: dict[str, object]) -> bool:
    """A real answer of the model: no error text, nothing synthetic."""
    message = entry.get("message")
    return (
        entry.get("type") == "assistant"
        and not entry.get("isApiErrorMessage")
        and not (isinstance(message, dict) and message.get("model") == "<synthetic>")
    )


def _entered(entry: dict[str, object]) -> str:
    """The text by which a hook adds to the conversation: never an assistant's or a person's words nor a tool's result."""
    found: list[str] = []
    attachment, origin = entry.get("attachment"), entry.get("origin")
    if isinstance(origin, dict) and origin.get("kind") == "human":
        return ""
    if entry.get("type") == "user" and entry.get("toolUseResult") is None:
        _collect(entry.get("message"), found)
    elif isinstance(attachment, dict) and attachment.get("type") in CONVERSATION:
        _collect(attachment, found)
    return "\n".join(found)


def _collect(value: object, found: list[str]) -> None:
    """All texts in a value. Not by recursion: what the parser nests deepest may be too deep for it."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict) and value.get("type") not in ("tool_result", "tool_use"):
            left += value.values()
        elif isinstance(value, list):
            left += value


def _word(entry: dict[str, object], field: str) -> str:
    word = entry.get(field)
    return word if isinstance(word, str) else ""


def _moment(entry: dict[str, object]) -> float:
    stamp = entry.get("timestamp")
    return (clock.parse(stamp) if isinstance(stamp, str) else None) or clock.now()
