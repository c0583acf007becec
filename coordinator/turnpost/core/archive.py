"""Messages that are over, packed: one compressed file a day, in which each message has one record with all there is of it.

`archive/DAY.zip` is replaced as a whole, never changed. A message is looked for in its folder first, then here; so one
that a killed pack left in both places is there once. What is noted of a packed message later (a reply) makes its folder
anew, and is packed with the rest when it is old as well.
"""

from __future__ import annotations

import os
import threading
import zipfile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from turnpost.core import clock, fastjson, files, home, ids, mailbox, store, threads
from turnpost.core.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from turnpost.core.files import Stream
    from turnpost.core.records import Packed

_PACKED = {"message": {}, "receipts": {}, "replies": [str]}
FINAL = ("read", "cancelled", "undeliverable")
_DAY = 86_400.0
_BREATH = 20
"""Messages between two pauses: whoever else runs in this process is not to be held up by us."""


class Keeping(NamedTuple):
    """When messages are packed, and what of the archive is kept. 0 days or bytes keep all."""

    after_days: int = 7
    days: int = 0
    size: int = 0


def last_over(now: float, days: float) -> str:
    """The last day whose end is at least so many days ago."""
    return clock.day(now - (days + 1) * _DAY)


def to_pack(days: Collection[str], keeping: Keeping, now: float) -> list[str]:
    """Which of the days that have folders may be packed, the oldest first. Pure."""
    last = last_over(now, keeping.after_days)
    return sorted(day for day in days if clock.is_day(day) and day <= last)


def to_drop(sizes: Mapping[str, int], keeping: Keeping, now: float) -> list[str]:
    """Which packed days go, the oldest first; `sizes` are the bytes of each. Pure.

    What is too old, and then as many more as are over the size. Nothing goes unless the person said so.
    """
    days = sorted(sizes)
    last = last_over(now, keeping.days) if keeping.days else ""
    over = sum(sizes.values()) - keeping.size if keeping.size else 0
    found: list[str] = []
    for day in days:
        if day > last and over <= 0:
            break
        found.append(day)
        over -= sizes[day]
    return found


def sizes(root: str) -> dict[str, int]:
    """The packed days, with the bytes of each."""
    names = [name.removesuffix(".zip") for name in files.names(home.archive(root)) if name.endswith(".zip")]
    return {day: os.lstat(home.packed(root, day)).st_size for day in names if clock.is_day(day)}


def names(root: str, day: str) -> list[str]:
    """The ids of a packed day's messages, in order."""
    with _lock:
        opened = _open(home.packed(root, day))
        return sorted(opened.namelist()) if opened is not None else []


def is_whole(root: str, day: str) -> bool:
    """Whether a day's archive can be opened. Looks at its end only, where all is listed."""
    with _lock:
        return _open(home.packed(root, day)) is not None


def load(root: str, message_id: str) -> Packed | None:
    """A packed message with its final receipts and its replies; None when there is none. Raises Newer."""
    path = home.packed(root, ids.day(message_id))
    try:
        with _lock:
            opened = _open(path)
            data = opened.read(message_id) if opened is not None else b"null"
        found = fastjson.loads(data)
    except Exception as error:  # noqa: BLE001 - a byte that is off makes zipfile raise nearly anything
        _raise_if_passing(error)
        return None
    record = store.understood(found, f"{path}: {message_id}", _PACKED)
    if (
        record is None
        or store.understood(record["message"], f"{path}: {message_id}", mailbox.MESSAGE) is None
    ):
        return None
    return record  # type: ignore[return-value]


def pack(root: str, day: str, last: str, going: Callable[[], bool] = lambda: True) -> bool:
    """Pack a day's messages and take their folders away. False when one is not over yet, or `going` no more.

    `last` is the newest day that may be packed: a reply that is noted in an already packed message must be as old.
    Killed anywhere, the day is in its folders, in its archive, or in both, and the next call goes on. Raises Newer, and
    BadFile for an archive that is there and cannot be read.
    """
    folder, path = f"{root}/messages/{day}", home.packed(root, day)
    here = [name for name in files.names(folder) if ids.is_id(name, "msg")]
    before = set(names(root, day))
    if not before and files.exists(path):
        raise BadFile(f"{path} is damaged, and nothing is packed over it; restore it, or move it away")
    for message_id in _unhurried(here):
        if not going() or not _is_over(root, message_id, message_id in before, last):
            return False
    if not files.exists(home.archive(root)):
        files.mkdir(home.archive(root))
        files.sync_folder(root)
    taken: list[str] = []
    try:
        if before or any(files.exists(f"{folder}/{message_id}/message.json") for message_id in here):
            files.compose(path, lambda out: _write(root, out, before, here, taken, going))
        else:
            for message_id in here:  # sends that were taken back have left them
                _joined(root, message_id, taken)
    except _Stopped:
        return False
    _clear(folder, here, taken)
    return True


def drop(root: str, day: str) -> int:
    """Remove a packed day for good, with all that leads to its messages; how many there were. Raises Newer.

    What leads there goes first: killed in between, the day is there and the next call goes on.
    """
    gone = names(root, day)
    for message_id in _unhurried(gone):
        record = load(root, message_id)
        if record is not None:
            message = record["message"]
            threads.forget(root, message)
            for thread in threads.identities(message):
                files.rmdir(home.thread(root, threads.digest(thread)))
        files.unlink(home.report(root, message_id))
        folder = mailbox.message_folder(root, message_id)
        if not files.exists(folder + "/message.json"):
            for reply in files.names(folder + "/replies"):
                files.unlink(f"{folder}/replies/{reply}")
            files.rmdir(folder + "/replies")
            files.rmdir(folder)
    files.rmdir(f"{root}/messages/{day}")
    files.unlink(home.packed(root, day))
    return len(gone)


def close() -> None:
    """Let go of the archive that was read last."""
    with _lock:
        _forget()


class _Stopped(Exception):
    """The caller wants no more."""


_lock = threading.Lock()
_last: tuple[str, tuple[int, int, int], zipfile.ZipFile, BinaryIO] | None = None
"""The archive that was read last, with what tells whether it is still the same: messages are read day by day."""


def _open(path: str) -> zipfile.ZipFile | None:
    """A day's archive, None when there is none or it cannot be read. Holding the lock."""
    global _last
    try:
        info = os.lstat(path)
    except OSError as error:
        _raise_if_passing(error)
        return None
    same = (info.st_ino, info.st_size, info.st_mtime_ns)
    if _last is not None and _last[:2] == (path, same):
        return _last[2]
    _forget()
    try:
        file = files.opened(path)
    except (OSError, BadFile) as error:
        _raise_if_passing(error)
        return None
    try:
        opened = zipfile.ZipFile(file)
    except Exception as error:  # noqa: BLE001 - as in `load`
        file.close()
        _raise_if_passing(error)
        return None
    _last = (path, same, opened, file)
    return opened


def _raise_if_passing(error: Exception) -> None:
    if isinstance(error, OSError) and files.is_passing(error):
        raise error


def _forget() -> None:
    global _last
    if _last is not None:
        _last[2].close()
        _last[3].close()
        _last = None


def _is_over(root: str, message_id: str, packed: bool, last: str) -> bool:
    """Whether nothing becomes of a message any more. Raises Newer."""
    folder = mailbox.message_folder(root, message_id)
    if packed:
        return all(ids.day(reply) <= last for reply in _replies(folder))
    if files.exists(f"{home.outbox(root)}/{message_id}.json"):
        return False
    message = store.load(folder + "/message.json", mailbox.MESSAGE)
    if message is None:
        return not files.exists(folder + "/message.json")  # a damaged one stays where it can be mended
    if files.exists(f"{home.asked(root)}/{message_id}") and threads.is_open(root, message):  # type: ignore[arg-type]
        return False
    return all(_has_ended(root, folder, party["key"]) for party in message["to"])


def _has_ended(root: str, folder: str, key: str) -> bool:
    receipt = store.load(f"{folder}/{key}.json", mailbox.RECEIPT)
    if receipt is None:  # a launch that failed has taken its agent away
        return not files.exists(f"{folder}/{key}.json") and not files.exists(home.agent(root, key) + "/queue")
    return receipt["state"] in FINAL


def _write(
    root: str, out: Stream, before: set[str], here: list[str], taken: list[str], going: Callable[[], bool]
) -> None:
    """Write the archive of a day: what is packed `before`, and what is `here`. Raises _Stopped, BadFile and Newer."""
    count = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:  # type: ignore[call-overload]
        for message_id in _unhurried(sorted({*before, *here})):
            if not going():
                raise _Stopped
            record = _joined(root, message_id, taken)
            if record is not None:
                made.writestr(zipfile.ZipInfo(message_id), store.pack(record), zipfile.ZIP_DEFLATED)
                count += 1
            elif message_id in before:
                raise BadFile(f"{message_id} cannot be read in the archive, which is left as it is")
    _verify(out.path, count)


def _joined(root: str, message_id: str, taken: list[str]) -> dict[str, object] | None:
    """All there is of a message, from its folder and its archive; what was read in the folder is added to `taken`.

    None for a folder without a message: a send that was taken back left it.
    """
    folder = mailbox.message_folder(root, message_id)
    old = load(root, message_id)
    receipts: dict[str, object] = dict(old["receipts"]) if old is not None else {}
    message: object = old["message"] if old is not None else None
    for name in files.names(folder):
        if not name.endswith(".json"):
            continue
        record = store.load(f"{folder}/{name}")
        if record is None:
            continue  # damaged: it stays, and its folder with it
        if name == "message.json":
            message = record
        else:
            receipts[name.removesuffix(".json")] = record
        taken.append(f"{folder}/{name}")
    replies = _replies(folder)
    taken += [f"{folder}/replies/{reply}" for reply in replies]
    if message is None:
        return None
    every = sorted({*replies, *(old["replies"] if old is not None else ())})
    return {"v": 1, "message": message, "receipts": receipts, "replies": every}


def _replies(folder: str) -> list[str]:
    return [name for name in files.names(folder + "/replies") if ids.is_id(name, "msg")]


def _verify(path: str, count: int) -> None:
    """Read a new archive once more before it takes its place. Raises BadFile."""
    try:
        with files.opened(path) as file, zipfile.ZipFile(file) as made:
            names = made.namelist()
            for number, name in enumerate(_unhurried(names)):
                made.read(name)
                if number % 1_000 == 0:
                    files.touch(path)  # or the housekeeping would take it for a killed writer's
    except Exception as error:
        raise BadFile(f"{path} cannot be read as it was written: {error}") from error
    if len(names) != count:
        raise BadFile(f"{path} has {len(names)} messages, and not the {count} that were written")


def _clear(folder: str, message_ids: list[str], taken: list[str]) -> None:
    """Remove what was packed, and the folders that are empty by that: what came meanwhile stays."""
    for path in _unhurried(taken):
        files.unlink(path)
    for message_id in _unhurried(message_ids):
        files.rmdir(f"{folder}/{message_id}/replies")
        files.rmdir(f"{folder}/{message_id}")
    files.rmdir(folder)


def _unhurried(items: Iterable[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        if number % _BREATH == _BREATH - 1:
            clock.sleep(0.001)
        yield item
