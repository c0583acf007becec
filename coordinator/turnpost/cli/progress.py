"""What is seen while a command waits: one line that is rewritten on a terminal, a line per change in a pipe. On stderr."""

from __future__ import annotations

import sys
from types import TracebackType

from turnpost.actions.results import Waited
from turnpost.core import text

_CLEAR = "\r\x1b[K"


class Progress:
    """A context that tells on stderr how a wait goes; with `quiet` on a terminal only."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = sys.stderr.isatty()
        self._silent = quiet and not self._live
        self._last = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live and self._last:
            self._write(_CLEAR)

    def waited(self, seen: Waited) -> None:
        """How a `wait` stands."""
        self.tell(f"{seen.target}: {seen.state}", seen.waited)

    def tell(self, what: str, seconds: float) -> None:
        """Show what is waited for, and on a terminal for how long by now."""
        line = text.visible(what)
        if self._live:
            shown = f"{line}  {seconds:.1f} s"
            if shown != self._last:
                self._write(f"{_CLEAR}{shown[:79]}")
            self._last = shown
        elif not self._silent and line != self._last:
            self._write(f"{line}\n")
            self._last = line

    def _write(self, words: str) -> None:
        sys.stderr.write(words)
        sys.stderr.flush()
