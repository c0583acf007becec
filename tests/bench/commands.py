"""What a command costs as a whole process, against a Python that only imports click."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.places import Played, stamped
from tests.bench.rounds import NotMeasured, alternate
from turnpost.core.mailbox import Mailbox, entry_id
from turnpost.lab.progress import Progress

ROUNDS, QUICK = 60, 12
CLICK = 'python -c "import click"'
LIMIT = 2.5
_WARM_UP = 2
_BODY = "The cart's total is wrong when a voucher is used: cart.py line 40 rounds before the discount, not after it."


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """A person's `turnpost send`, as installed, to an idle agent; a coordinator runs already."""
    with Played() as place:
        session_id = place.session()
        place.coordinator()
        parts: dict[str, Callable[[], float]] = {
            CLICK: lambda: _took(place, [sys.executable, "-c", "import click"]),
            "send": lambda: _send(place, session_id),
        }
        for part in parts.values():
            for _ in range(_WARM_UP):
                part()
        found = alternate("send", QUICK if quick else ROUNDS, parts, progress)
    return [Measured("turnpost send", "ms", found["send"], CLICK, found[CLICK], ratio_limit=LIMIT)]


def _send(place: Played, session_id: str) -> float:
    box = Mailbox(place.root, place.key(session_id))
    took = _took(
        place, [str(Path(sys.executable).with_name("turnpost")), "send", place.name(session_id), _BODY]
    )
    with box.lock(5.0):
        waiting = box.waiting()
        if len(waiting) != 1:
            raise NotMeasured(f"after a send {len(waiting)} messages wait, and not 1")
        box.end(entry_id(waiting[0]), "cancelled")  # else the mailbox would be full before the end
    return took


def _took(place: Played, command: list[str]) -> float:
    begin, end = stamped(command, cwd=place.project, env=place.bare_env())
    return (end - begin) * 1000
