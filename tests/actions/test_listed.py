"""What the coordinator learns from Claude Code's own list, where no hook speaks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import agents, sending
from turnpost.core import clock, deliver, rules, store
from turnpost.core import home as places
from turnpost.core.records import TYPE_CHECKING
from turnpost.service import loop
from turnpost.service.loop import Coordinator

if TYPE_CHECKING:
    from turnpost.core.records import Agent

CLAUDE = """
# `claude agents --json`: what the test has written; before that, what the test lets a hook do meanwhile.
import os, sys
folder = {folder!r}
open(folder + "/asked", "a").write(".")
while os.path.exists(folder + "/wait"):
    pass
print(open(folder + "/list.json").read())
"""
Lists = Callable[..., None]


@pytest.fixture
def lists(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> Lists:
    """Say how Claude Code lists an agent's session."""
    monkeypatch.setenv("TURNPOST_CLAUDE", home.claude(CLAUDE))

    def write(agent: Agent, status: str, *, runs: bool = True) -> None:
        one = {"sessionId": agent["sessions"][-1], "status": status, **({"pid": 1} if runs else {})}
        (home.folder / "list.json").write_text(json.dumps([one]))

    return write


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


def doing(home: FakeHome, agent: Agent) -> str:
    state = store.load_state(home.root, agent["key"])
    assert state is not None
    return state["doing"]


def asked(home: FakeHome) -> bool:
    return (home.folder / "asked").exists()


def test_a_dialog_is_seen_and_its_end_too(home: FakeHome, lists: Lists) -> None:
    agent = home.agent("alpha", "working", ago=10.0)
    Path(places.woken(home.root, agent["key"])).touch()  # the waiter's wake is held behind the dialog
    sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    lists(agent, "waiting")
    Coordinator(home.root).round()
    until(lambda: doing(home, agent) == "blocked")
    assert agents.agents(home.root).agents[0].state == "blocked"
    (told,) = sending.send(home.root, ["alpha"], "more", speaker=PERSON).recipients
    assert told.boundary == "next-request"
    assert not Path(places.woken(home.root, agent["key"])).exists(), "its prompt hook records the turn"
    assert Path(places.agent(home.root, agent["key"]), "blocked").exists()
    lists(agent, "idle")
    state = store.load_state(home.root, agent["key"])
    assert state is not None
    store.save_state(home.root, agent["key"], {**state, "since": state["since"] - 10.0})
    Coordinator(home.root).round()
    until(lambda: doing(home, agent) == "idle")
    assert not Path(places.agent(home.root, agent["key"]), "blocked").exists()
    until(lambda: "found-idle" in (Path(home.root) / "turnpost.log").read_text())


@pytest.mark.parametrize(("status", "runs"), [("busy", True), ("waiting", False), ("idle", False)])
def test_a_session_that_works_or_is_gone_is_left_as_its_hooks_said(
    home: FakeHome, lists: Lists, status: str, runs: bool
) -> None:
    agent = home.agent("alpha", "working", ago=10.0)
    sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    lists(agent, status, runs=runs)
    before = store.load_state(home.root, agent["key"])
    Coordinator(home.root).round()
    until(lambda: asked(home))
    time.sleep(0.3)
    assert store.load_state(home.root, agent["key"]) == before


def test_a_hook_that_speaks_meanwhile_knows_better(home: FakeHome, lists: Lists) -> None:
    agent = home.agent("alpha", "working", ago=10.0)
    sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    lists(agent, "waiting")
    (home.folder / "wait").touch()
    Coordinator(home.root).round()
    until(lambda: asked(home))
    deliver.record(home.root, agent["key"], {"session_id": agent["sessions"][-1]}, "idle")
    (home.folder / "wait").unlink()
    time.sleep(0.5)
    assert doing(home, agent) == "idle"


def keep_house(coordinator: loop.Coordinator, monkeypatch: pytest.MonkeyPatch, later: float) -> None:
    now = clock.monotonic() + later
    with monkeypatch.context() as patch:
        patch.setattr(clock, "monotonic", lambda: now)
        coordinator.round()


def times_asked(home: FakeHome) -> int:
    file = home.folder / "asked"
    return len(file.read_text()) if file.exists() else 0


def test_a_silent_session_without_mail_is_asked_once_and_found_idle(
    home: FakeHome, lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Esc, or when a Stop hook was killed, no hook says that the turn is over."""
    agent = home.agent("alpha", "working", ago=10.0)
    home.agent("beta", "idle", ago=10.0)
    lists(agent, "idle")
    coordinator = loop.Coordinator(home.root)
    coordinator.round()
    keep_house(coordinator, monkeypatch, rules.SILENT - 1)
    time.sleep(0.3)
    assert not asked(home), "not silent for long"
    keep_house(coordinator, monkeypatch, 2 * rules.SILENT)
    until(lambda: doing(home, agent) == "idle")
    assert times_asked(home) == 1


def test_a_session_that_works_in_silence_is_asked_again_only_once_it_has_said_something(
    home: FakeHome, lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = home.agent("alpha", "working", ago=10.0)
    lists(agent, "busy")
    coordinator = loop.Coordinator(home.root)
    for later in range(5):
        keep_house(coordinator, monkeypatch, later * (rules.SILENT + 1))
    until(lambda: times_asked(home) == 1 and not coordinator._busy(agent["key"]))
    state = store.load_state(home.root, agent["key"])
    assert state is not None
    store.save_state(home.root, agent["key"], {**state, "since": state["since"] + 1.0})
    for later in range(5, 9):
        keep_house(coordinator, monkeypatch, later * (rules.SILENT + 1))
    until(lambda: times_asked(home) == 2)
    time.sleep(0.3)
    assert times_asked(home) == 2
    assert doing(home, agent) == "working"
