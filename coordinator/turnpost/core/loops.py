"""How long agents may go on answering each other before the person is asked. Pure but for the counters at the end.

A pair's counter is a short list of moments, appended to and turned over by size: it costs what one window holds, however
much the two have ever written. Two messages sent in the same instant may both pass as the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnpost.core import files, home, store
from turnpost.core.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE = 15  # ten digits, a point, three digits, a newline


class Budget(NamedTuple):
    """How much agents may say to each other: replies in a chain, and messages of a pair in `seconds` without the person."""

    hops: int = 8
    messages: int = 20
    seconds: float = 600.0


class Loop(NamedTuple):
    """A budget that is used up: what was counted, its limit, and the words for it."""

    counted: int
    limit: int
    words: str
    seconds: float | None = None


def chain(hops: int, budget: Budget) -> Loop | None:
    """Whether a message that is the `hops`th reply since a chain began is one too many."""
    if hops <= budget.hops:
        return None
    return Loop(hops, budget.hops, f"this would be reply {hops} of one exchange, the limit is {budget.hops}")


def pair(moments: Sequence[float], person_at: float, budget: Budget, now: float) -> Loop | None:
    """Whether one more message of a pair is too many, after those sent at `moments`.

    `person_at`: when the person last wrote to either. A wall clock that was set back counts nothing from the future.
    """
    counted = used(moments, person_at, budget, now)
    if counted < budget.messages:
        return None
    words = (
        f"{counted} messages within {budget.seconds:g} s without the person, the limit is {budget.messages}"
    )
    return Loop(counted, budget.messages, words, budget.seconds)


def used(moments: Sequence[float], person_at: float, budget: Budget, now: float) -> int:
    """How many of a pair's messages count now."""
    since = max(person_at, now - budget.seconds)
    return sum(since < moment <= now for moment in moments)


def moments(root: str, one: str, other: str) -> list[float]:
    """When the two last wrote to each other, as far back as the counter goes."""
    path = home.pair(root, one, other)
    return [moment for part in (path + ".1", path) for moment in _moments(part)]


def count(root: str, one: str, other: str, now: float, budget: Budget) -> None:
    """Count a message of a pair. Both files together always hold the budget's last messages."""
    files.mkdir(home.loops(root))
    # Cut, not rounded: a moment must not lie after the look that follows it.
    line = f"{int(now * 1000) / 1000:.3f}\n".encode()
    files.append(home.pair(root, one, other), line, _LINE * budget.messages)


def person_wrote(root: str, key: str, now: float) -> None:
    """Note that the person wrote to an agent: its pairs begin anew."""
    files.mkdir(home.loops(root))
    files.write(home.heard(root, key), store.pack({"v": 1, "at": now}), durable=False)


def person_at(root: str, *keys: str) -> float:
    """When the person last wrote to one of these agents; 0 for never."""
    found = [store.load(home.heard(root, key), {"at": float}) for key in keys]
    return max((float(record["at"]) for record in found if record), default=0.0)


def _moments(path: str) -> list[float]:
    try:
        return [float(line) for line in files.read(path).split()]
    except (FileNotFoundError, ValueError, BadFile):
        return []
