"""What the coordinator does while nothing happens: little, however many agents there are, and in the end all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from tests.core import spool
from turnpost.core import bell, clock
from turnpost.core import home as places
from turnpost.service import loop

AGENTS = 12


@pytest.fixture
def looked(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The agents that are looked at, in order; each look costs as much as a whole turn of the housekeeping may."""
    for number in range(AGENTS):
        home.agent(f"agent-{number}", "idle")
    found: list[str] = []
    worked = [0.0]

    def sweep(_root: str, key: str) -> None:
        found.append(key)
        worked[0] += loop.HOUSEKEEPING * loop.SHARE

    monkeypatch.setattr(bell, "sweep", sweep)
    monkeypatch.setattr(clock, "processor", lambda: worked[0])
    return found


def due(coordinator: loop.Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next part of the housekeeping."""
    now = clock.monotonic() + loop.HOUSEKEEPING + 1
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    coordinator.round()


def test_at_the_start_every_agent_is_looked_at(home: FakeHome, looked: list[str]) -> None:
    coordinator = loop.Coordinator(home.root)
    coordinator.round()
    assert len(set(looked)) == len(looked) == AGENTS
    coordinator.round()
    assert len(looked) == AGENTS, "not again before it is due"


def test_later_a_turn_of_it_ends_with_its_share_and_the_next_goes_on_there_until_all_are_looked_at(
    home: FakeHome, looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = loop.Coordinator(home.root)
    coordinator.round()
    first = list(looked)
    looked.clear()
    for turn in range(1, AGENTS + 1):
        due(coordinator, monkeypatch)
        assert looked == first[:turn]
    due(coordinator, monkeypatch)  # the end of the last turn
    due(coordinator, monkeypatch)
    assert looked == [*first, first[0]]


def test_trouble_with_an_agent_begins_it_anew(
    home: FakeHome, looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = loop.Coordinator(home.root)
    coordinator.round()
    first = looked[0]
    looked.clear()

    def broken(_root: str, _key: str) -> None:
        raise PermissionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(bell, "sweep", broken)
        due(coordinator, monkeypatch)
    due(coordinator, monkeypatch)
    assert looked == [first]


def test_a_message_whose_bell_was_lost_is_found_by_it(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = home.agent("alpha", "idle")
    coordinator = loop.Coordinator(home.root)
    coordinator.round()
    spool.send(home.root, "hello", agent)
    rung = Path(places.pending(home.root), agent["key"])
    rung.unlink()
    coordinator.round()
    assert not rung.exists()
    due(coordinator, monkeypatch)
    assert rung.exists()
