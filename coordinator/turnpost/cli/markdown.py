"""Markdown for a terminal. The one module that imports `rich`, loaded only where there is a terminal to show it."""

from __future__ import annotations

import shutil

from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding

from turnpost.core import text

WIDEST = 100
"""Columns. A longer line is hard to read, however wide the terminal is."""


def body(words: str, indent: str = "  ") -> str:
    """A body as formatted text, indented. What could drive the terminal is made visible first."""
    console = Console(
        width=min(WIDEST, shutil.get_terminal_size().columns), force_terminal=True, highlight=False, markup=False,
        emoji=False,
    )  # fmt: skip
    # Without links that hide where they lead, and with HTML as the text it is: left to rich it would vanish.
    shown = Markdown("", hyperlinks=False)
    shown.parsed = (
        MarkdownIt("commonmark", {"html": False})
        .enable(["strikethrough", "table"])
        .parse(text.visible(words))
    )
    with console.capture() as capture:
        console.print(Padding(shown, (0, 0, 0, len(indent))))
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))
