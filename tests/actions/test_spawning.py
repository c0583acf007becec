"""Starting a coordinator when many find at the same moment that none runs."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.actions.fakes import FakeHome
from turnpost.core import clock, registry
from turnpost.service import process

CALLERS = 8


class Spawned:
    """Processes in place of coordinators: they live, and have not come so far as to take the lock."""

    def __init__(self) -> None:
        self.made: list[subprocess.Popen[bytes]] = []
        self._start = subprocess.Popen

    def __call__(self, _words: object, **_named: Any) -> subprocess.Popen[bytes]:
        self.made.append(self._start(["sleep", "60"]))
        return self.made[-1]

    def kill(self) -> None:
        for one in self.made:
            one.kill()
            one.wait()


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spawned]:
    made = Spawned()
    monkeypatch.setattr("turnpost.service.process.subprocess.Popen", made)
    yield made
    made.kill()


def _all_at_once(root: str) -> None:
    gate = threading.Barrier(CALLERS)

    def call(_: int) -> None:
        gate.wait()
        process.ensure(root)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(call, range(CALLERS)))


def test_many_who_need_a_coordinator_at_once_start_one(home: FakeHome, spawned: Spawned) -> None:
    registry.prepare(home.root)
    _all_at_once(home.root)
    process.ensure(home.root)
    assert len(spawned.made) == 1


def test_one_that_was_killed_or_called_off_on_its_way_is_followed_by_another(
    home: FakeHome, spawned: Spawned
) -> None:
    registry.prepare(home.root)
    process.ensure(home.root)
    spawned.kill()
    _all_at_once(home.root)
    assert len(spawned.made) == 2
    process.stop(home.root)
    process.ensure(home.root)
    assert len(spawned.made) == 3


def test_a_stop_of_before_the_clock_was_set_back_calls_off_nobody(
    home: FakeHome, spawned: Spawned, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.prepare(home.root)
    process.stop(home.root)
    now = clock.now() - 3_600
    monkeypatch.setattr(clock, "now", lambda: now)
    for _ in range(2):
        process.ensure(home.root)
    assert len(spawned.made) == 1
    monkeypatch.setenv(process.SPAWNED, repr(now))
    assert not process._called_off(home.root)
