"""The points at which a process can be hit, found as they come: every call that can change the disk or concerns another process.

Most of these calls announce themselves to Python's audit hooks, whoever makes them (`os`, `posix`, `pathlib`, `filelock`,
`open`); those that do not are wrapped. So no list of places exists that a new one could be missing from. What exists is a
list of what is harmless: a call that is neither known to be that nor counted fails the run, see `Points.unknown`.

A kill is dealt before a call, and once after the last. A call of `core.files` is no point of its own: between it and its
first system call nothing changes. Nor is a close, which changes nothing that dying does not.
"""

from __future__ import annotations

import errno
import os
import pickle
import posix
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from turnpost.core import clock

Blow = Literal["none", "kill", "torn", "full", "broken", "denied", "clock"]
"""`kill`: SIGKILL. `torn`: half of a write, then SIGKILL. `full`: no room on the disk from here on. `broken`: this fsync
fails with EIO. `denied`: this call fails with EACCES. `clock`: the clock goes back an hour."""
BLOWS: tuple[Blow, ...] = ("kill", "torn", "full", "broken", "denied", "clock")
JUMP = -3600.0
SECONDS = 60
"""After which an act counts as hung."""

EVENTS = frozenset({
    "os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.truncate", "os.chmod", "os.chown",
    "os.setxattr", "os.removexattr", "os.chflags", "os.lockf", "fcntl.flock", "fcntl.lockf", "subprocess.Popen", "os.posix_spawn", "os.spawn",
    "os.exec", "os.fork", "os.forkpty", "os.system", "os.kill", "os.killpg",
})  # fmt: skip
"""Audit events that are points. `open` is one too, when it can write."""
HARMLESS = frozenset({
    "os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.chdir", "os.putenv", "os.unsetenv", "os.getxattr", "os.listxattr",
    "fcntl.fcntl", "fcntl.ioctl", "shutil.copyfile", "shutil.copytree", "shutil.copymode", "shutil.copystat", "shutil.move", "shutil.rmtree",
    "shutil.chown", "tempfile.mkdtemp", "tempfile.mkstemp", "pathlib.Path.glob", "pathlib.Path.rglob",
})  # fmt: skip
"""Audit events that change nothing, or announce calls that are counted one by one."""
SILENT = (
    "write", "writev", "pwrite", "pwritev", "sendfile", "copy_file_range", "splice", "fsync", "fdatasync", "sync", "mkfifo", "mknod",
    "posix_fallocate", "waitpid", "wait4", "waitid",
)  # fmt: skip
"""Calls of `os` that no audit event tells of: these are wrapped."""
_FAMILIES = ("os.", "fcntl.", "subprocess.", "shutil.", "tempfile.", "pathlib.")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ROOM = (
    "write",
    "writev",
    "pwrite",
    "mkfifo",
    "mknod",
    "create",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.rename",
)
_SYNC = ("fsync", "fdatasync", "sync")
_DENIABLE = (
    "open", "create", "os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.chmod", "os.truncate",
    "mkfifo", "subprocess.Popen",
)  # fmt: skip


def concerns(blow: Blow, point: str) -> bool:
    """Whether a blow can be dealt at a point of this kind."""
    if blow in ("kill", "clock"):
        return blow == "kill" or point != "end"
    kinds = {"torn": ("write",), "full": _ROOM, "broken": _SYNC, "denied": _DENIABLE}
    return point in kinds.get(blow, ())


class Points:
    """Counts the points of this process from `begin` on, and deals one blow at the `at`th. There is no way back: fork first."""

    def __init__(self, blow: Blow = "none", at: int = 0) -> None:
        self.blow: Blow = blow
        self.at = at
        self.found: list[str] = []
        self.unknown: list[str] = []
        self._on = False
        self._full = False

    def begin(self) -> None:
        sys.dont_write_bytecode = True
        for name in SILENT:
            if hasattr(os, name):
                self._wrap(name)
        for name in ("communicate", "wait"):
            setattr(subprocess.Popen, name, self._after(getattr(subprocess.Popen, name), name))
        sys.addaudithook(self._heard)
        self._on = True

    def end(self) -> None:
        """The act is done: its last point."""
        self._meet("end", "")
        self._on = False

    def _heard(self, event: str, words: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event == "open":
            flags = words[2] if isinstance(words[2], int) else 0
            if flags & _WRITING:
                self._meet("create" if flags & os.O_CREAT else "open", str(words[0]))
        elif event in EVENTS:
            self._meet(event, str(words[0]) if words else "")
        elif event.startswith(_FAMILIES) and event not in HARMLESS:
            self.unknown.append(event)

    def _meet(self, point: str, about: str) -> None:
        self.found.append(point)
        if self._full and point in _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), about)
        if len(self.found) != self.at or not concerns(self.blow, point):
            return
        if self.blow == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.blow == "full":
            self._full = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), about)
        elif self.blow in ("broken", "denied"):
            number = errno.EIO if self.blow == "broken" else errno.EACCES
            raise OSError(number, os.strerror(number), about)
        elif self.blow == "clock":
            before = clock.now
            clock.now = lambda: before() + JUMP

    def _wrap(self, name: str) -> None:
        real = getattr(os, name)

        def call(*words: Any, **named: Any) -> Any:
            if self._on:
                if name == "write" and self.blow == "torn" and len(self.found) + 1 == self.at:
                    real(words[0], words[1][: len(words[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                self._meet(name, "")
                if name in _SYNC:
                    return None  # a kill loses nothing that was written: it need not be done
            return real(*words, **named)

        setattr(os, name, call)
        setattr(posix, name, call)

    def _after(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            try:
                return real(*words, **named)
            finally:
                if self._on:
                    self._meet(f"subprocess.{name}", "")

        return call


@dataclass(frozen=True)
class Outcome:
    """How an act in a process of its own ended. `killed`: by the blow; else `result`, or the `error` it raised."""

    killed: bool
    result: Any = None
    error: BaseException | None = None
    trace: str = ""
    found: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def struck(act: Callable[[], object], blow: Blow = "none", at: int = 0) -> Outcome:
    """Do something in a process of its own that meets a blow at its `at`th point."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            _act(act, Points(blow, at), writer)
        finally:
            os._exit(70)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        told = file.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"it hung, or died by signal {os.WTERMSIG(status)}"
        return Outcome(True)
    assert os.WEXITSTATUS(status) == 0, "the test's own process broke"
    found: Outcome = pickle.loads(told)
    return found


def _act(act: Callable[[], object], points: Points, writer: int) -> None:
    result, error, trace = None, None, ""
    points.begin()
    try:
        result = act()
        points.end()
    except BaseException as failure:  # noqa: BLE001 - told to the test
        points._on = False
        error, trace = failure, traceback.format_exc()
    told = Outcome(False, result, None, trace, tuple(points.found), tuple(points.unknown))
    try:
        told = Outcome(False, result, error, trace, told.found, told.unknown)
        data = pickle.dumps(told)
        pickle.loads(data)
    except Exception:  # noqa: BLE001 - an error that cannot be carried over
        data = pickle.dumps(
            Outcome(False, None, RuntimeError(trace or repr(result)), trace, told.found, told.unknown)
        )
    view = memoryview(data)
    while view:
        view = view[posix.write(writer, view) :]
    os._exit(0)
