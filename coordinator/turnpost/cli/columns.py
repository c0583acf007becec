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


def table(rows: Sequence[Sequence[str]], limits: Sequence[int]) -> str:
    """Rows under each other; column n is at most `limits[n]` wide, the last one as wide as there is room, cut at its start."""
    shown = [[fit(cell, limit) for cell, limit in zip(row, limits, strict=False)] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(*shown, strict=True)]
    left = WIDTH - 1 - sum(size + 2 for size in widths)
    lines: list[str] = []
    for cells, row in zip(shown, rows, strict=True):
        start = "".join(pad(cell, size) + "  " for cell, size in zip(cells, widths, strict=True))
        lines.append((start + fit(row[-1], left, keep_end=True)).rstrip())
    return "\n".join(lines)


def paragraph(words: str, indent: str = "") -> str:
    """One paragraph, wrapped; a long word stays whole, so that an id can be copied."""
    lines: list[str] = []
    line = ""
    for word in text.visible(words).split():
        longer = f"{line} {word}" if line else word
        if line and width(indent + longer) >= WIDTH:
            lines.append(indent + line)
            longer = word
        line = longer
    return "\n".join([*lines, indent + line])


def literal(words: str, indent: str = "  ") -> str:
    """A text as it is, safe for a terminal, every line indented."""
    return textwrap.indent(text.visible(words), indent)


def _width(c: str) -> int:
    if unicodedata.combining(c) or c in "\u200c\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
