"""The coordinator of a home: whether it runs, and its start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.actions import people
from turnpost.actions.audited import refusing
from turnpost.actions.results import CoordinatorView
from turnpost.core import clock
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.service.process import Status


def status(root: str) -> CoordinatorView:
    """Whether a coordinator runs."""
    from turnpost.service import process

    return _shown(process.status(root))


def start(root: str) -> CoordinatorView:
    """Start one if none runs, and wait until it does. Raises TimedOut."""
    from turnpost.service import process

    return _shown(process.start(root))


def stop(root: str, *, speaker: Speaker | None = None) -> CoordinatorView:
    """End it. Live agents go on without; the next send starts one again. The person only."""
    from turnpost.service import process

    with refusing(root, "coordinator stop", "", speaker):
        people.person(root, "stop the coordinator", speaker)
    return _shown(process.stop(root))


def run(root: str) -> None:
    """Be the coordinator until a signal ends it."""
    from turnpost.service import process

    process.run(root)


def _shown(now: Status) -> CoordinatorView:
    return CoordinatorView(now.running, now.pid, clock.rfc3339(now.since))
