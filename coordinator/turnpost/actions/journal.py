"""Looking into the audit log: what happened, to whom, in which direction. Nothing is marked, and nothing is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from turnpost.actions.results import Entry, Log
from turnpost.actions.searching import moment
from turnpost.core import audit, clock, files, home, registry, store, text
from turnpost.core.errors import BadFile, NotFound, UsageError

NEWEST = 100
"""How many lines are shown unless more are asked for."""
ROUND = 0.2
"""Seconds between two looks of a follower."""
_SHOWN = ("at", "action", "from", "to", "direction", "by", "agent", "message")


class Query(NamedTuple):
    """What is asked for; None asks for nothing. `since` is a moment, a day or an age, as in a search."""

    agent: str | None = None
    action: str | None = None
    since: str | None = None


EVERYTHING = Query()


def entries(root: str, query: Query = EVERYTHING, *, newest: int = NEWEST) -> Log:
    """What fits the query, at most the `newest`, oldest first. Raises NotFound and UsageError."""
    return _newest(root, Fits(root, query), newest, Tail(root))


def follow(
    root: str, query: Query = EVERYTHING, *, newest: int = NEWEST, going: Callable[[], bool] = lambda: True
) -> Iterator[Entry]:
    """First what `entries` has, then what is added, for as long as it is `going`."""
    fits, tail = Fits(root, query), Tail(root)
    yield from _newest(root, fits, newest, tail).entries
    while going():
        yield from (_entry(root, line) for line in tail.more() if fits(line))
        clock.sleep(ROUND)


class Fits:
    """A query made ready: whether a line fits."""

    def __init__(self, root: str, query: Query) -> None:
        if query.action is not None and query.action not in audit.ACTIONS:
            raise UsageError(
                f"'{text.visible(query.action)}' is no action of the log; it is one of {', '.join(audit.ACTIONS)}"
            )
        self._action = query.action
        since = moment(query.since, clock.now()) if query.since is not None else None
        # Lines hold texts of one form, in which an earlier moment is also the smaller text.
        self._since = clock.rfc3339(since) or ""
        self._key, self._name = _party(root, query.agent) if query.agent is not None else ("", "")

    def __call__(self, line: dict[str, Any]) -> bool:
        """Whether all that is asked for is so."""
        return (
            (self._action is None or line["action"] == self._action)
            and line["at"] >= self._since
            and (not self._name or self._concerns(line))
        )

    def _concerns(self, line: dict[str, Any]) -> bool:
        keys = {str(line.get(field, "")).partition("~")[0] for field in ("agent", "by", "about")}
        if self._key:
            return self._key in keys
        return self._name in {text.name_key(str(line.get(field, ""))) for field in ("from", "to")}


class Tail:
    """The log's lines from its begin, and then those that are added, also when it is moved away meanwhile."""

    def __init__(self, root: str) -> None:
        self._path = home.log(root)
        self._file: _File | None = None
        self._left: _File | None = None

    def all(self) -> list[dict[str, Any]]:
        """The lines of the older file and of the present one."""
        self._file = _open(self._path)
        older = _open(self._path + ".1")
        lines = older.lines() if older is not None and not (self._file and older.same(self._file)) else []
        return [*lines, *self.more()]

    def more(self) -> list[dict[str, Any]]:
        """The lines added since the last look."""
        lines = [*self._drained(self._left), *self._drained(self._file)]
        self._left = None
        now = _open(self._path)
        if now is not None and not (self._file and now.same(self._file)):
            # Who had the moved file open may still write to it: it is looked at once more.
            self._left, self._file = self._file, now
            lines += self._drained(now)
        return lines

    @staticmethod
    def _drained(file: _File | None) -> list[dict[str, Any]]:
        return file.lines() if file is not None else []


class _File:
    """One file of the log, open, with the part of a line that was not whole yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""

    def __del__(self) -> None:
        self._file.close()

    def same(self, other: _File) -> bool:
        return os.path.samestat(os.fstat(self._file.fileno()), os.fstat(other._file.fileno()))

    def lines(self) -> list[dict[str, Any]]:
        """What was added since the last call. What is no line of ours is left out."""
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [line for one in whole if (line := _parsed(one)) is not None]


def _open(path: str) -> _File | None:
    try:
        return _File(files.opened(path))
    except (OSError, BadFile):
        return None


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    entry = cast("dict[str, Any]", found)
    return entry if isinstance(entry.get("at"), str) and isinstance(entry.get("action"), str) else None


def _newest(root: str, fits: Fits, newest: int, tail: Tail) -> Log:
    found = [line for line in tail.all() if fits(line)]
    return Log(tuple(_entry(root, line) for line in found[-newest:]), max(0, len(found) - newest))


def _entry(root: str, line: dict[str, Any]) -> Entry:
    key = line.get("agent")
    return Entry(
        line["at"], line["action"], _word(line, "from"), _word(line, "to") or _name(root, key), _word(line, "direction"),
        _word(line, "message"), {name: value for name, value in line.items() if name not in _SHOWN and value is not None},
    )  # fmt: skip


def _word(line: dict[str, Any], field: str) -> str | None:
    value = line.get(field)
    return str(value) if value is not None else None


def _name(root: str, key: object) -> str | None:
    """What an agent is called now; its key when it is gone."""
    if not isinstance(key, str):
        return None
    known = store.if_known(registry.load_agent, root, key)
    return known["name"] if known else key


def _party(root: str, name: str) -> tuple[str, str]:
    """The key and the name a line must have one of. Who is no agent any more is known by the name of then."""
    word = text.name_key(name)
    if word in (registry.PERSON, "system"):
        return word, word
    if word.startswith("foreign "):
        return "", word
    try:
        return registry.find(root, name.partition("/")[0])["key"], word
    except NotFound:
        if any(
            word in (text.name_key(str(line.get("from", ""))), text.name_key(str(line.get("to", ""))))
            for line in Tail(root).all()
        ):
            return "", word
        raise
