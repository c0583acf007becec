"""What a call goes on without because a newer turnpost wrote it: noted where that is passed over, told once in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from turnpost.core import ids, store
from turnpost.core.errors import Newer

_KINDS = ("agent", "message", "mission", "other record")


class LeftOut:
    """The records that were passed over, each once: what was looked at twice is not two."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str]] = set()

    def note(self, error: Newer) -> None:
        """Count the record that this was raised for."""
        self._found.add(_what(str(error.numbers["path"])))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The line that tells of them; nothing when there are none."""
        counts = {kind: sum(one == kind for one, _ in self._found) for kind in _KINDS}
        words = [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items() if count]
        if not words:
            return ()
        listed = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        were, them = ("was", "it") if sum(counts.values()) == 1 else ("were", "them")
        return (
            f"{listed} {were} written by a newer turnpost, and what needs {them} is left out; upgrade turnpost to see it",
        )


_noting: ContextVar[LeftOut | None] = ContextVar("left_out", default=None)
"""Of this call: the tools of agents run several side by side, each on a thread of its own."""


@contextmanager
def noted() -> Iterator[LeftOut]:
    """Note what is passed over in this block. What is noted in a block within it is told there, and not here again."""
    found = LeftOut()
    before = _noting.set(found)
    try:
        yield found
    finally:
        _noting.reset(before)


def _note(error: Newer) -> None:
    if (found := _noting.get()) is not None:
        found.note(error)


store.passed_over = _note


def _what(path: str) -> tuple[str, str]:
    """What a record is one of, and which: an agent has several files, and so has a message."""
    from turnpost.core import mailbox  # for those who need none it is not loaded

    folder, _, name = path.rpartition("/")
    inside = folder.rpartition("/")[2]
    if name in ("agent.json", "state.json"):
        return "agent", folder
    # A message's folder is called by its id, an entry by its place and its id, and an archive names it last.
    for word in (inside, mailbox.entry_id(name), name.removesuffix(".json").rpartition(" ")[2]):
        if ids.is_id(word, "msg"):
            return "message", word
    return ("mission" if inside == "missions" else "other record"), path
