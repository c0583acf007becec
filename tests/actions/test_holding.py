"""Holds, stops, wakes and the inbox: what belongs to the person, and what a parent may do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import agents, coordinating, holding, inbox, launching, receipts, sending, stopping
from turnpost.core import bell, files, outbox, registry, store
from turnpost.core import home as places
from turnpost.core.errors import HarnessError, NotFound, Refused, UsageError
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Waiter

STOPPER = """#!/bin/sh
# Ends the process of the session it is told to stop, as `claude stop` does.
echo "$@" >> "{folder}/calls"
kill -9 $(cat "{folder}/pid") 2>/dev/null
exit 0
"""


@pytest.fixture
def stopper(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A `claude` that kills the session of the agent the test names."""
    program = home.folder / "claude"
    program.write_text(STOPPER.format(folder=home.folder))
    program.chmod(0o700)
    monkeypatch.setenv("TURNPOST_CLAUDE", str(program))

    def aim(name: str) -> None:
        state = store.load_state(home.root, registry.find(home.root, name)["key"])
        assert state is not None
        (home.folder / "pid").write_text(str(state["pid"]))

    return aim


def test_a_stop_by_the_person_ends_the_session_and_holds_the_agent(
    home: FakeHome, stopper: Callable[[str], None]
) -> None:
    alpha = home.agent("alpha", "working")
    stopper("alpha")
    done = stopping.stop(home.root, "alpha", speaker=PERSON)
    assert (done.state, done.held) == ("stopped", True)
    state = store.load_state(home.root, alpha["key"])
    assert state is not None
    assert (home.folder / "calls").read_text().split() == ["stop", state["session_id"][:8]]


def test_a_stop_by_the_parent_is_no_hold_and_by_anybody_else_refused(
    home: FakeHome, stopper: Callable[[str], None]
) -> None:
    mother = home.agent("mother")
    child = home.agent("child", parent=mother)
    stopper("child")
    with pytest.raises(Refused, match="not-allowed"):
        stopping.stop(home.root, "mother", speaker=home.speaker(child))
    assert not stopping.stop(home.root, "child", speaker=home.speaker(mother)).held


def test_stopping_a_stopped_agent_only_holds_it_and_needs_no_claude(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("alpha", "stopped")
    monkeypatch.setenv("TURNPOST_CLAUDE", "/nowhere/claude")
    assert stopping.stop(home.root, "alpha", speaker=PERSON).held


def test_a_stop_without_claude_is_refused_and_holds_nothing(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("alpha", "working")
    monkeypatch.setenv("TURNPOST_CLAUDE", "/nowhere/claude")
    before = home.tree()
    with pytest.raises(HarnessError):
        stopping.stop(home.root, "alpha", speaker=PERSON)
    assert home.tree() == before


def test_a_session_that_does_not_end_is_told_and_stays_held(
    home: FakeHome, stopper: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = home.agent("alpha", "working")
    (home.folder / "pid").write_text("")
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.3)
    with pytest.raises(HarnessError, match="did not end"):
        stopping.stop(home.root, "alpha", speaker=PERSON)
    assert home.box(alpha).held()


def test_a_release_lifts_the_hold_and_rings_for_what_waits(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.team(alpha, beta)
    holding.hold(home.root, "alpha", speaker=PERSON)
    sending.send(home.root, ["alpha"], "x", speaker=home.speaker(beta))
    pending = Path(home.root, "pending", alpha["key"])
    pending.unlink()
    done = holding.release(home.root, "alpha", speaker=PERSON)
    assert (done.held, done.waiting) == (False, 1)
    assert pending.exists()


def test_holding_twice_is_holding_once(home: FakeHome) -> None:
    home.agent("alpha")
    assert holding.hold(home.root, "alpha", speaker=PERSON).held
    assert holding.hold(home.root, "alpha", speaker=PERSON).held
    assert not holding.release(home.root, "alpha", speaker=PERSON).held
    assert not holding.release(home.root, "alpha", speaker=PERSON).held


def test_a_wake_lifts_the_hold_and_brings_the_text_or_a_note(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    holding.hold(home.root, "alpha", speaker=PERSON)
    woken = holding.wake(home.root, "alpha", speaker=PERSON)
    assert not home.box(alpha).held()
    assert woken.sent is not None
    assert receipts.show(home.root, woken.sent.id).body == holding.WAKE_NOTE
    by_session = holding.wake(home.root, alpha["sessions"][0], "go on", speaker=PERSON)
    assert (by_session.target, by_session.forked) == ("alpha", False)


@pytest.mark.parametrize("target", ["alphb", "alphabeta", "1234567", "../agents", "person"])
def test_a_mistyped_name_is_never_taken_for_a_foreign_session(home: FakeHome, target: str) -> None:
    home.agent("alpha")
    before = home.tree()
    with pytest.raises((NotFound, UsageError)):
        holding.wake(home.root, target, speaker=PERSON)
    assert home.tree() == before


Call = Callable[[FakeHome, Speaker], object]

THE_PERSONS: list[tuple[str, Call]] = [
    ("hold", lambda h, s: holding.hold(h.root, "alpha", speaker=s)),
    ("release", lambda h, s: holding.release(h.root, "alpha", speaker=s)),
    ("wake", lambda h, s: holding.wake(h.root, "alpha", speaker=s)),
    ("wake foreign", lambda h, s: holding.wake(h.root, "0a1b2c3d", speaker=s)),
    ("stop", lambda h, s: stopping.stop(h.root, "alpha", speaker=s)),
    ("rename", lambda h, s: agents.rename(h.root, "alpha", "gamma", speaker=s)),
    ("inbox", lambda h, s: inbox.waiting(h.root, speaker=s)),
    ("mark read", lambda h, s: inbox.mark_read(h.root, [], speaker=s)),
    ("stop coordinator", lambda h, s: coordinating.stop(h.root, speaker=s)),
    ("launch for another", lambda h, s: launching.launch(h.root, "new", parent="alpha", speaker=s)),
]


@pytest.mark.parametrize("call", [c for _, c in THE_PERSONS], ids=[n for n, _ in THE_PERSONS])
def test_what_is_the_persons_is_refused_to_agents_and_foreign_sessions(home: FakeHome, call: Call) -> None:
    home.agent("alpha")
    beta = home.agent("beta")
    before = home.tree()
    for speaker, rule in ((home.speaker(beta), "not-allowed"), (FOREIGN, "foreign")):
        with pytest.raises(Refused) as caught:
            call(home, speaker)
        assert caught.value.rule == rule
    assert home.tree() == before


def test_what_the_person_has_seen_is_read_and_what_came_meanwhile_is_not(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    first = sending.send(home.root, ["person"], "one", speaker=home.speaker(alpha))
    shown = inbox.waiting(home.root, speaker=PERSON)
    second = sending.send(home.root, ["person"], "two", speaker=home.speaker(alpha))
    inbox.mark_read(home.root, [message.id for message in shown.messages], speaker=PERSON)
    receipt = receipts.show(home.root, first.id).receipts["person"]
    assert receipt.state == "read"
    assert receipt.read_at is not None
    assert [m.id for m in inbox.waiting(home.root, speaker=PERSON).messages] == [second.id]


def test_an_alert_of_turnpost_itself_is_in_the_inbox_and_takes_no_answer(home: FakeHome) -> None:
    registry.prepare(home.root)
    me = registry.person(home.root)
    alert = outbox.compose(
        {"kind": "system", "name": "system", "key": "system"}, [registry.party(me)], "undeliverable"
    )
    outbox.send(home.root, alert, [me])
    assert [m.sender for m in inbox.waiting(home.root, speaker=PERSON).messages] == ["system"]
    with pytest.raises(Refused):
        sending.reply(home.root, alert["id"], "thanks", speaker=PERSON)


def test_an_inbox_nobody_wrote_to_is_empty_and_makes_nothing(home: FakeHome) -> None:
    assert inbox.waiting(home.root, speaker=PERSON).messages == ()
    inbox.mark_read(home.root, [], speaker=PERSON)
    assert home.tree() == {}


def test_the_list_shows_each_agent_as_it_is(home: FakeHome) -> None:
    mother = home.agent("mother", "working")
    home.agent("child", "idle", parent=mother, ago=60)
    home.kill(home.agent("gone", "working"))
    listening = home.agent("ready", "idle", ago=60)
    with a_live_waiter(home, listening):
        shown = {agent.name: agent for agent in agents.agents(home.root).agents}
    assert list(shown) == ["child", "gone", "mother", "ready"]
    assert [a.state for a in shown.values()] == ["idle", "lost", "working", "idle"]
    assert [a.deaf for a in shown.values()] == [True, False, False, False]
    assert (shown["child"].parent, shown["gone"].pid) == ("mother", None)
    assert shown["mother"].pid is not None


@contextmanager
def a_live_waiter(home: FakeHome, agent: Agent) -> Iterator[None]:
    """Somebody has the FIFO of the agent's waiter open."""
    path = bell.fifo(home.root, agent["key"], "w1")
    os.mkfifo(path)
    record: Waiter = {
        "v": 1, "id": "w1", "pid": os.getpid(), "token": None, "session_id": agent["sessions"][0], "harness_pid": 0,
        "since": 0.0,
    }  # fmt: skip
    files.write(home.box(agent).folder + "/waiter.json", store.pack(record), durable=False)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    yield
    os.close(end)


def test_a_rename_keeps_mail_and_sessions_and_frees_the_old_name(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    home.agent("beta")
    sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    assert agents.rename(home.root, "alpha", "gamma", speaker=PERSON).old == "alpha"
    shown = {agent.name: agent for agent in agents.agents(home.root).agents}
    assert (shown["gamma"].waiting, shown["gamma"].sessions) == (1, tuple(alpha["sessions"]))
    for wrong, error in (("beta", Refused), ("person", UsageError), ("a/b", UsageError), ("", UsageError)):
        with pytest.raises(error):
            agents.rename(home.root, "gamma", wrong, speaker=PERSON)
    with pytest.raises(NotFound):
        agents.rename(home.root, "alpha", "delta", speaker=PERSON)


@pytest.mark.parametrize("digits", [8, 36])
def test_an_agent_is_known_by_its_session_id_too(home: FakeHome, digits: int) -> None:
    """As `turnpost agents` and `claude agents` show it; nothing is forked for one that turnpost knows."""
    session_id = home.agent("alpha")["sessions"][-1][:digits]
    woken = holding.wake(home.root, session_id, "up", speaker=PERSON)
    assert (woken.target, woken.forked) == ("alpha", False)
    sent = sending.send(home.root, [session_id], "hello", speaker=PERSON)
    assert [one.name for one in sent.recipients] == ["alpha"]


def test_a_hold_that_cannot_be_lifted_fails_no_message_that_is_sent(home: FakeHome) -> None:
    alpha = home.agent("alpha", "idle")
    (Path(places.agent(home.root, alpha["key"])) / "hold").mkdir()
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    (warning,) = [one for one in sent.warnings if "hold" in one]
    assert warning.startswith("the hold on alpha cannot be lifted (Is a directory")
    assert receipts.show(home.root, sent.id).receipts["alpha"].state == "queued"
