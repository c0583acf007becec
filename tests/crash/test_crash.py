"""Each thing that turnpost does is hit at each of its points, in runs of their own: afterwards all is well again.

`make long` deals every blow at every point; by default the kills of what is at the core are all dealt, of the others a spread.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.core import spool
from tests.crash.case import Run, Scenario
from tests.crash.points import BLOWS, Blow
from tests.crash.scenarios import ALL
from tests.long import scale
from turnpost.service import watch
from turnpost.service.loop import Coordinator

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the platform has that: thousands of small trees are made and removed."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="turnpost-", dir="/dev/shm") as made:
        yield Path(made)


def spread(places: Sequence[int], count: int) -> list[int]:
    """So many of them, the first and the last among them."""
    if len(places) <= count:
        return list(places)
    if count == 1:
        return [places[len(places) // 2]]
    step = (len(places) - 1) / (count - 1)
    return sorted({places[round(index * step)] for index in range(count)})


def chosen(scenario: Scenario, blow: Blow, places: Sequence[int]) -> list[int]:
    kills, others = {"core": (len(places), 3), "plain": (8, 2), "slow": (6, 1)}[scenario.how]
    return spread(places, scale(kills if blow == "kill" else others, len(places)))


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_whatever_hits_it_nothing_is_lost_or_doubled_or_left(scenario: Scenario, folder: Path) -> None:
    run = Run(scenario, folder)
    try:
        dealt = 0
        for blow in BLOWS:
            for at in chosen(scenario, blow, run.places(blow)):
                with_notes(run, blow, at)
                dealt += 1
        assert dealt >= 10, "it has next to no points"
    finally:
        run.case.close()


def with_notes(run: Run, blow: Blow, at: int) -> None:
    try:
        run.blow(blow, at)
    except BaseException as failure:
        failure.add_note(
            f"{run.scenario.name}: {blow} at point {at} of {len(run.found)}, {run.found[at - 1]}"
        )
        raise


def test_a_coordinator_that_can_watch_nothing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    root = spool.make(tmp_path)
    monkeypatch.setattr(watch, "Observer", none_left)
    coordinator = Coordinator(root)
    timer = threading.Timer(0.1, coordinator.stop)
    timer.start()
    coordinator.run()
    timer.join()
    assert [line["action"] for line in map(json.loads, Path(root, "turnpost.log").read_text().splitlines())] == [
        "coordinator-start", "coordinator-stop",
    ]  # fmt: skip
