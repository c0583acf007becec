"""Progress for a person: one line that changes on a terminal, now and then a plain line in a pipe."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Shows how a long step goes; on standard error unless told otherwise."""

    def __init__(self, stream: TextIO | None = None, *, every: float = 10.0) -> None:
        """In a pipe `update` prints at most once in `every` seconds."""
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._every = every
        self._last = 0.0
        self._width = 0

    def update(self, text: str) -> None:
        """Where the step is now."""
        if self._terminal:
            self._rewrite(text)
        elif time.monotonic() - self._last >= self._every:
            self.say(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._terminal and self._width:
            self._rewrite("")
            self._stream.write("\r")
        self._stream.write(f"{text}\n")
        self._stream.flush()
        self._width = 0
        self._last = time.monotonic()

    def _rewrite(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)


class Silent(Progress):
    """Shows nothing."""

    def update(self, text: str) -> None:
        """Show nothing."""

    def say(self, text: str) -> None:
        """Show nothing."""
