"""The one module that writes files.

Every write is a private temporary file, fsynced when the caller needs it to survive a power cut, and renamed into
place, so a reader sees the old bytes or the new ones, never a part. Nothing here follows a link in the last
component, and what is read is checked for kind, owner and size first.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys

from turnpost.core import clock
from turnpost.core.errors import BadFile, LockBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import BinaryIO

RECORD_LIMIT = 4 * 1024 * 1024
_PASSING = (
    errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.EAGAIN,
)  # fmt: skip
_NAMES_GO_ALONG = sys.platform.startswith("linux")
"""Whether an fsync of a file also keeps the names it has just got: ext4, XFS, btrfs and F2FS all write them with it."""
_counter = 0


def mkdir(path: str) -> None:
    """Make a private folder and its parents; one that is there stays as it is.

    Not by `os.makedirs`: that makes the parents, and so the spool itself, as open as the umask allows.
    """
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if not parent:
            raise
        mkdir(parent)
        mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def names(path: str) -> list[str]:
    """The visible names in a folder, sorted; a missing folder has none."""
    try:
        found = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in found if name[0] != ".")


def is_passing(error: OSError) -> bool:
    """Whether an error tells nothing of a file: not that it is missing, nor that it is damaged. It may be read a moment later."""
    return error.errno in _PASSING


def exists(path: str) -> bool:
    """Whether something of this name is there (a dangling link counts)."""
    try:
        os.lstat(path)
    except OSError:
        return False
    return True


def read(path: str, limit: int = RECORD_LIMIT) -> bytes:
    """The bytes of a regular file of ours.

    Raises FileNotFoundError when there is none and BadFile for a link, a device, a FIFO, a foreign owner or a file
    over `limit` bytes. O_NONBLOCK keeps a FIFO planted under the name from hanging the open.
    """
    fd, size = _open(path)
    try:
        if size > limit:
            raise BadFile(f"{path} has {size} bytes, over the limit of {limit}", size=size, limit=limit)
        parts: list[bytes] = []
        room = size  # what is replaced is another file, so this one does not grow
        while room > 0 and (part := os.read(fd, min(room, 1 << 20))):
            parts.append(part)
            room -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def opened(path: str) -> BinaryIO:
    """A regular file of ours, open for reading, for what is too large to be read whole. Raises as `read` does."""
    return os.fdopen(_open(path)[0], "rb")


def _fault(info: os.stat_result) -> str | None:
    """Why an open file is none of ours; None when it is a regular file of this user."""
    if not stat.S_ISREG(info.st_mode):
        return "is not a regular file"
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}, not to {os.geteuid()}"
    return None


def _opened(fd: int, path: str) -> os.stat_result:
    """What a file is that was opened to be written in place. Raises OSError for one that is none of ours."""
    info = os.fstat(fd)
    if fault := _fault(info):
        raise OSError(errno.EPERM, fault, path)
    return info


def open_plain(path: str) -> int:
    """A regular file of anybody's, open to be read; links are followed. Raises OSError, at once, for all else.

    For what is not ours: a FIFO there would never end the open, and a device never the reading.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # NUL, or a lone surrogate, in a path that somebody told us
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)


def write(path: str, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Replace `path` by `data` in one step. Raises OSError (disk full, read-only, …) and then leaves the old file."""
    temporary = _complete(path, data, durable, mode)
    try:
        os.rename(temporary, path)
    except BaseException:
        unlink(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(path))


class Linked:
    """A private file under several names, durable under all of them after one `sync`; a context manager.

    With `data` it is new, else the one that has the name. The names are given before the sync, which is what a disk is
    waited for: one for all of them costs a third of one for each. Raises OSError.
    """

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self._path = path
        self._names = [path]
        if data is None:
            self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            return
        temporary, self._fd = _temporary(path, data, 0o600)
        try:
            os.rename(temporary, path)
        except BaseException:
            os.close(self._fd)
            unlink(temporary)
            raise

    def link(self, path: str) -> None:
        """Give it one more name, which nothing else may have."""
        os.link(self._path, path, follow_symlinks=False)
        self._names.append(path)

    def move(self, path: str) -> None:
        """Give it another name in place of its first."""
        os.rename(self._path, path)
        self._names[0] = self._path = path

    def sync(self) -> None:
        """Make the file and its names survive a power cut."""
        os.fsync(self._fd)
        if not _NAMES_GO_ALONG:
            for folder in {os.path.dirname(name) for name in self._names}:
                sync_folder(folder)

    def remove(self) -> None:
        """Take all its names away."""
        for name in self._names:
            unlink(name)

    def __enter__(self) -> Linked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


class Stream:
    """A file that is being written, in order."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def write(self, data: bytes) -> int:
        """Add bytes; how many they were."""
        write_all(self._fd, data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def compose(path: str, fill: Callable[[Stream], None]) -> None:
    """Replace `path`, durably and in one step, by what `fill` writes: for what is too large to be in memory.

    Raises what `fill` raises, and OSError; then the old file stays.
    """
    temporary, fd = _fresh(path, 0o600)
    try:
        try:
            fill(Stream(temporary, fd))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        unlink(temporary)
        raise
    sync_folder(os.path.dirname(path))


def create(path: str, data: bytes, *, durable: bool = True) -> bool:
    """Write `path` only if nothing has that name; False when something has. The link call decides between rivals."""
    temporary = _complete(path, data, durable, 0o600)
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        unlink(temporary)
    if durable:
        sync_folder(os.path.dirname(path))
    return True


def move(source: str, target: str) -> None:
    """Rename within the spool: the step that changes a record's state."""
    os.rename(source, target)


def unlink(path: str) -> None:
    """Remove a file; one that is gone already is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def rmdir(path: str) -> None:
    """Remove an empty folder; one that is not empty, or not there, is fine."""
    try:
        os.rmdir(path)
    except OSError:
        pass


def mark(path: str) -> None:
    """Make sure an empty file of this name exists, in a folder that is made when it is missing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        mkdir(os.path.dirname(path))
        fd = os.open(path, flags, 0o600)
    try:
        _opened(fd, path)
    finally:
        os.close(fd)


def touch(path: str, moment: float | None = None) -> None:
    """Make sure an empty file of this name exists and its time is now, or `moment`: a bell for whoever watches the folder."""
    times = None if moment is None else (moment, moment)
    try:
        os.utime(path, times, follow_symlinks=False)
    except FileNotFoundError:
        mark(path)
        if times:
            os.utime(path, times, follow_symlinks=False)


def time_of(path: str) -> float:
    """When a file was touched last, 0 for one that is not there."""
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def fifo(path: str) -> None:
    """Make a private FIFO."""
    os.mkfifo(path, 0o600)


def write_all(fd: int, data: bytes) -> None:
    """Write bytes to an open file, however few a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append(path: str, line: bytes, limit: int) -> None:
    """Add a line to a log; past `limit` bytes the log becomes `path.1` first, so it never grows for ever.

    Of writers that find it full at once, one moves it; a second move would put the new log in the place of the old one.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        if _opened(fd, path).st_size > limit and _is_mine_to_move(fd, path):
            os.rename(path, path + ".1")
            os.close(fd)
            fd = os.open(path, flags, 0o600)
        os.write(fd, line)
    finally:
        os.close(fd)


def _is_mine_to_move(fd: int, path: str) -> bool:
    """Whether an open file still has this name, and nobody else is about to move it. The lock goes with the file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def sync_folder(path: str) -> None:
    """Make a rename survive a power cut."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sweep(folder: str, older_than: float, base: str = "") -> int:
    """Remove temporary files that a killed writer left, older than `older_than` seconds; how many there were.

    In a folder that is not ours only those of the file `base`.
    """
    swept = 0
    limit = clock.now() - older_than
    try:
        found = os.listdir(folder)
    except OSError:
        return 0
    for name in found:
        if name.startswith("." + base) and name.endswith(".tmp") and (not base or _is_of(name, base)):
            path = f"{folder}/{name}"
            try:
                if os.lstat(path).st_mtime < limit:
                    os.unlink(path)
                    swept += 1
            except FileNotFoundError:
                pass
    return swept


def _is_of(name: str, base: str) -> bool:
    """Whether a name is one that `_temporary` gives for this file."""
    pid, dot, number = name.removeprefix(f".{base}.").removesuffix(".tmp").partition(".")
    return bool(dot) and pid.isdigit() and number.isdigit()


class Lock:
    """An exclusive flock on a file that is never deleted, shared with `filelock` on the same path.

    Entering raises LockBusy after `timeout` seconds. The kernel drops the lock when its holder dies, so there is
    nothing to steal and nothing to clean up.
    """

    def __init__(self, path: str, timeout: float = 0.5) -> None:
        self._path = path
        self._timeout = timeout
        self._fd = -1

    def __enter__(self) -> Lock:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self._path, flags, 0o600)
        end = clock.monotonic() + self._timeout
        try:
            _opened(fd, self._path)
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if error.errno not in (errno.EAGAIN, errno.EACCES):
                        raise
                    if clock.monotonic() >= end:
                        raise LockBusy(
                            f"{self._path} was held by another process for {self._timeout:g} s; try again",
                            seconds=self._timeout,
                        ) from error
                    clock.sleep(0.002)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        self._fd = -1


def _complete(path: str, data: bytes, durable: bool, mode: int) -> str:
    """A closed temporary file with this content, beside where it will be."""
    temporary, fd = _temporary(path, data, mode)
    try:
        if durable:
            os.fsync(fd)
    except BaseException:
        unlink(temporary)
        raise
    finally:
        os.close(fd)
    return temporary


def _open(path: str) -> tuple[int, int]:
    """A regular file of ours, open for reading, and its size."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise BadFile(f"{path} is a link; turnpost does not follow it") from error
        raise
    try:
        info = os.fstat(fd)
        if fault := _fault(info):
            raise BadFile(f"{path} {fault}")
    except BaseException:
        os.close(fd)
        raise
    return fd, info.st_size


def _fresh(path: str, mode: int) -> tuple[str, int]:
    """A new temporary file beside `path`: its name, and it open."""
    global _counter
    _counter += 1
    folder, _, base = path.rpartition("/")
    temporary = f"{folder}/.{base}.{os.getpid()}.{_counter}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return temporary, os.open(temporary, flags, mode)
    except FileExistsError:
        # A writer with our pid was killed here once; its half file is nobody's.
        os.unlink(temporary)
        return temporary, os.open(temporary, flags, mode)


def _temporary(path: str, data: bytes, mode: int) -> tuple[str, int]:
    """The same with this content."""
    temporary, fd = _fresh(path, mode)
    try:
        write_all(fd, data)
    except BaseException:
        os.close(fd)
        unlink(temporary)
        raise
    return temporary, fd
