"""Text in columns of a terminal, where a character can be two wide or none."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from turnpost.core import text

WIDTH = 80


def width(words: str) -> int:
    """How many columns a text takes."""
    return sum(_width(c) for c in words)


def fit(words: str, room: int, *, keep_end: bool = False) -> str:
    """The text in at most `room` columns, an ellipsis where something was left out: at its end, or with `keep_end` at its start."""
    words = text.visible(words).replace("\n", " ").replace("\t", " ")
    if width(words) <= room:
        return words
    step = -1 if keep_end else 1
    kept = ""
    for c in words[::step]:
        if width(kept) + _width(c) > room - 1:
            break
        kept += c
    return f"…{kept[::-1]}" if keep_end else f"{kept}…"


def pad(words: str, room: int) -> str:
    """The text, filled up to `room` columns."""
    return words + " " * max(0, room - width(words))


def table(rows: Sequence[Sequence[str]], limits: Sequence[int], *, keep_end: bool = True) -> str:
    """Rows under each other; column n is at most `limits[n]` wide, the last one as wide as there is room.

    The last column is cut at its start, or without `keep_end` at its end.
    """
    shown = [[fit(cell, limit) for cell, limit in zip(row, limits, strict=False)] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(*shown, strict=True)]
    left = WIDTH - 1 - sum(size + 2 for size in widths)
    lines: list[str] = []
    for cells, row in zip(shown, rows, strict=True):
        start = "".join(pad(cell, size) + "  " for cell, size in zip(cells, widths, strict=True))
        lines.append((start + fit(row[-1], left, keep_end=keep_end)).rstrip())
    return "\n".join(lines)


def paragraph(words: str, indent: str = "") -> str:
    """One paragraph, wrapped. A word is broken only when it is longer than a line, so that an id can be copied."""
    room = WIDTH - 1 - width(indent)
    lines: list[str] = []
    line = ""
    for word in (part for long in text.visible(words).split() for part in _broken(long, room)):
        longer = f"{line} {word}" if line else word
        if line and width(longer) > room:
            lines.append(indent + line)
            longer = word
        line = longer
    return "\n".join([*lines, indent + line])


def literal(words: str, indent: str = "  ") -> str:
    """A text as it is, safe for a terminal, every line indented."""
    return textwrap.indent(text.visible(words), indent)


def _broken(word: str, room: int) -> list[str]:
    if width(word) <= room:
        return [word]
    parts = [""]
    for c in word:
        if width(parts[-1]) + _width(c) > room:
            parts.append("")
        parts[-1] += c
    return parts


def _width(c: str) -> int:
    if unicodedata.combining(c) or c in "\u200c\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
