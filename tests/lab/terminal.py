"""An interactive Claude Code session in a pseudo-terminal, seen as a person sees it."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pexpect
import pyte

from turnpost.lab.errors import LabTimeout
from turnpost.lab.world import World

COLUMNS, LINES = 140, 50

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift-tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "backspace": "\x7f",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
}

# The empty input line; the dialogs that a seeded home must not show have words after this sign.
_PROMPT = re.compile(r"^❯(?! \d\.| No| Yes)", re.MULTILINE)


class Terminal:
    """One session; a context manager that ends it.

    A thread reads all the time: a program whose output nobody takes stops in the middle of a write.
    """

    def __init__(self, world: World, cwd: Path, *args: str) -> None:
        """Start `claude ARGS` in `cwd`. Wait for `ready` before typing."""
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        with warnings.catch_warnings():
            # Python warns of a fork in a process with threads; the child runs no Python before its exec.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child: Any = pexpect.spawn(
                str(world.claude_path),
                list(args),
                cwd=str(cwd),
                env=world.env(),
                dimensions=(LINES, COLUMNS),
                timeout=None,
            )
        # No pause before each write: it is there for programs that read a password.
        self._child.delaybeforesend = None
        self._reader = threading.Thread(target=self._read, name="lab-terminal", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the session."""
        return int(self._child.pid)

    def ready(self, timeout: float = 30.0) -> Self:
        """Wait until the session takes input."""
        self.wait_screen(_PROMPT, timeout)
        return self

    def screen(self) -> str:
        """What is on the screen now, without empty lines at its end and spaces at the end of lines."""
        with self._changed:
            return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def wait_screen(self, wanted: str | re.Pattern[str], timeout: float = 20.0) -> str:
        """The screen as soon as it shows `wanted`; raises LabTimeout with the screen as it then is."""
        pattern = re.compile(re.escape(wanted)) if isinstance(wanted, str) else wanted
        return self._wait(lambda text: pattern.search(text) is not None, f"{pattern.pattern!r}", timeout)

    def wait_gone(self, unwanted: str, timeout: float = 20.0) -> str:
        """The screen as soon as it no longer shows `unwanted`; raises LabTimeout."""
        return self._wait(lambda text: unwanted not in text, f"the end of {unwanted!r}", timeout)

    def send(self, text: str) -> None:
        """Type text, without Enter."""
        self._child.send(text)

    def key(self, name: str) -> None:
        """Press one of KEYS."""
        self._child.send(KEYS[name])

    def enter(self) -> None:
        """Press Enter."""
        self.key("enter")

    def escape(self) -> None:
        """Press Escape."""
        self.key("escape")

    def submit(self, text: str) -> None:
        """Type one line and press Enter once it shows: text and Enter that arrive together are taken for a paste."""
        self.send(text)
        self.wait_screen(text[:40])
        self.enter()

    def answer(
        self, dialog: str = "Do you want to proceed?", key: str = "enter", timeout: float = 30.0
    ) -> str:
        """Wait for a dialog and press `key` until it is gone; returns the screen after it, raises LabTimeout.

        A dialog ignores keys in its first moments, so that nobody confirms by accident what just appeared.
        """
        end = time.monotonic() + timeout
        self.wait_screen(dialog, timeout)
        while True:
            self.key(key)
            try:
                return self.wait_gone(dialog, min(1.0, max(0.0, end - time.monotonic())))
            except LabTimeout:
                if time.monotonic() >= end:
                    raise

    def close(self) -> None:
        """End the session's process, and no other."""
        if self._child.isalive():
            self._child.terminate(force=True)
        self._reader.join(5.0)
        self._child.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, satisfied: Callable[[str], bool], what: str, timeout: float) -> str:
        end = time.monotonic() + timeout
        with self._changed:
            while not satisfied(text := self.screen()):
                left = end - time.monotonic()
                if left <= 0:
                    raise LabTimeout(f"the screen did not show {what} within {timeout:g} s:\n{text}")
                self._changed.wait(left)
            return text

    def _read(self) -> None:
        while True:
            try:
                data = self._child.read_nonblocking(65536, timeout=0.2)
            except pexpect.TIMEOUT:
                continue
            except (pexpect.EOF, OSError, ValueError):
                return
            with self._changed:
                self._stream.feed(data)
                self._changed.notify_all()
