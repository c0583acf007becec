"""What a demo answers, frozen. Moments are seconds since its start, spans are milliseconds."""

from __future__ import annotations

from typing import NamedTuple


class Delivery(NamedTuple):
    """One message: who it was for and in what situation, how it entered, and how often the model saw it.

    `seen` counts its mark in the last model request of the conversation that lives on, `elsewhere` the other
    conversations whose requests have it. `reached_ms` is from queued to the first such request, `read_ms` to the
    answer.
    """

    agent: str
    situation: str
    id: str
    state: str
    boundary: str | None = None
    queued: float | None = None
    reached_ms: int | None = None
    read_ms: int | None = None
    seen: int = 0
    elsewhere: int = 0


class Failure(NamedTuple):
    """A check that failed: about which agent, what was expected, what was seen."""

    agent: str
    expected: str
    seen: str


class Shown(NamedTuple):
    """A demo that ran to its end. It has worked when there are no failures."""

    claude_version: str
    seconds: float
    deliveries: tuple[Delivery, ...]
    failures: tuple[Failure, ...] = ()
    kept: str | None = None

    @property
    def worked(self) -> bool:
        """Whether every message was read exactly once, in the way it was meant to be."""
        return not self.failures
