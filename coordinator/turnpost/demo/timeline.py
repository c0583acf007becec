"""The story as it happens: one line per event, in 80 columns."""

from __future__ import annotations

import textwrap
import threading
import time
from typing import TextIO

WIDTH = 79
_INDENT = " " * 20


class Timeline:
    """Prints `seconds  who  what`; may be used from several threads."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.begin = time.monotonic()
        self.begin_wall = time.time()

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begin

    def tell(self, who: str, what: str) -> None:
        """Add an event of now."""
        line = f"{self.seconds():7.2f} s  {who:<8}  {what}"
        shown = textwrap.fill(
            line, WIDTH, subsequent_indent=_INDENT, drop_whitespace=True, break_long_words=False
        )
        with self._lock:
            self._stream.write(f"{shown}\n")
            self._stream.flush()
