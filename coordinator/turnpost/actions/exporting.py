"""All messages, as JSON Lines: each as `show` shows it, from the archive and from the folders alike."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from turnpost.actions import conversations, documents, left_out, people, receipts, searching
from turnpost.actions.audited import refusing
from turnpost.actions.results import Exported
from turnpost.core import archive, files, ids, mailbox, registry, store, text
from turnpost.core.errors import UsageError
from turnpost.core.sender import Speaker


def export(
    root: str,
    write: Callable[[bytes], object],
    *,
    since: str | None = None,
    until: str | None = None,
    threads: Sequence[str] = (),
    speaker: Speaker | None = None,
) -> Exported:
    """Hand every message that fits to `write`, a line each, the oldest first; what that came to.

    `since` and `until` are moments, days or ages; with `threads` only what stands in one of these. The person only.
    Raises NotFound for a thread that there is not, UsageError, and what `write` raises. What needs records
    of a newer turnpost is left out, and told of.
    """
    with refusing(root, "export", registry.PERSON, speaker):
        people.person(root, "export messages", speaker)
    fits = searching.Fits(searching.Query(since=since, until=until))
    count = size = 0
    first = last = None
    with left_out.noted() as found:
        wanted = {one for name in threads for one in conversations.messages_of(root, name, speaker=speaker)}
        for message_id in _every(root):
            if threads and message_id not in wanted:
                continue
            message = store.if_known(mailbox.load_message, root, message_id)
            shown = store.if_known(receipts.full, root, message) if message and fits(message) else None
            if shown is None:
                continue
            line = json.dumps(documents.plain(shown), separators=(",", ":")).encode() + b"\n"
            write(line)
            count, size, first, last = count + 1, size + len(line), first or shown.sent, shown.sent
    return Exported(None, count, size, first, last, found.warnings)


def export_to(
    root: str,
    path: str,
    *,
    since: str | None = None,
    until: str | None = None,
    threads: Sequence[str] = (),
    speaker: Speaker | None = None,
) -> Exported:
    """Like `export`, into a file: private, and there as a whole or not at all. Raises UsageError for what is no plain file.

    A file that is there is replaced; a device, a FIFO or a link of the same name would be gone.
    """
    try:
        there: int | None = os.lstat(path).st_mode
    except OSError:
        there = None
    folder = os.path.dirname(path) or "."
    if not path or not os.path.isdir(folder) or (there is not None and not stat.S_ISREG(there)):
        raise UsageError(
            f"'{text.visible(path)}' cannot be written: it must be a plain file, or a new name in a folder that is there; "
            "`-o -` writes to standard output"
        )
    done: list[Exported] = []

    def fill(out: files.Stream) -> None:
        parts: list[bytes] = []

        def write(line: bytes) -> None:
            parts.append(line)
            if len(parts) >= 1000:
                out.write(b"".join(parts))
                parts.clear()

        done.append(export(root, write, since=since, until=until, threads=threads, speaker=speaker))
        out.write(b"".join(parts))

    files.compose(path, fill)
    return done[0]._replace(file=path)


def _every(root: str) -> Iterator[str]:
    """The ids of all messages, in order."""
    for day in sorted({*archive.sizes(root), *files.names(root + "/messages")}):
        here = files.names(f"{root}/messages/{day}")
        yield from (one for one in sorted({*here, *archive.names(root, day)}) if ids.is_id(one, "msg"))
