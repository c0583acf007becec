"""A child's last words of a turn, and a parent that waits for its children."""

from __future__ import annotations

import os
import threading

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import clock, finals, registry, render, reporting, rules, store
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Doing

pytestmark = pytest.mark.process


def words(session: FakeSession) -> list[str]:
    """The reports that wait to be sent."""
    found = [reporting.load(path) for path in reporting.waiting(session.root, session.key)]
    return [one["text"] for one in found if one]


@pytest.fixture
def child(session: FakeSession) -> FakeSession:
    reporting.switch_on(session.root, session.key)
    return session


def test_a_turns_last_words_are_kept_once(child: FakeSession) -> None:
    child.prompt()
    assert child.stop(last_assistant_message="done: 3 files").silent
    assert child.stop(last_assistant_message="said again for somebody else's hook").silent
    assert words(child) == ["done: 3 files"]
    child.prompt()
    child.stop(last_assistant_message="more")
    assert words(child) == ["done: 3 files", "more"]


def test_a_turn_that_goes_on_for_a_message_is_reported_at_its_real_end(child: FakeSession) -> None:
    child.prompt()
    spool.send(child.root, "also this", child.agent)
    assert child.stop(last_assistant_message="first half").goes_on
    child.stop(last_assistant_message="both halves")
    assert words(child) == ["both halves"]


def test_a_turn_that_was_only_a_reminder_reports_nothing(child: FakeSession) -> None:
    child.prompt(f"<task-notification>{render.REMINDER}</task-notification>")
    child.stop(last_assistant_message="I see it")
    assert words(child) == []


def test_a_turn_that_failed_or_said_nothing_reports_nothing(child: FakeSession) -> None:
    child.prompt()
    child.hook("StopFailure", last_assistant_message="API Error")
    child.prompt()
    child.stop(last_assistant_message="  ")
    child.prompt()
    child.stop()
    assert words(child) == []


def test_an_agent_without_the_flag_keeps_nothing(session: FakeSession) -> None:
    session.prompt()
    session.stop(last_assistant_message="done")
    assert words(session) == []


# Holding the last answer back


def grow(session: FakeSession, doing: Doing) -> Agent:
    """A child of the session's agent; this test's process stands for its session."""
    agent = spool.agent(session.root, "kid")
    agent["parent"] = session.key
    registry.save_agent(session.root, agent)
    spool.state(
        session.root, agent["key"], "kid-session", "", doing=doing, since=clock.now(), pid=os.getpid()
    )
    return agent


def rest(session: FakeSession, child: Agent) -> None:
    state = store.load_state(session.root, child["key"])
    assert state is not None
    store.save_state(session.root, child["key"], store.change_state(state, "idle"))


def test_the_turn_is_held_until_the_childs_report_is_there_and_goes_on_with_it(session: FakeSession) -> None:
    finals.switch_on(session.root, session.key, 20.0)
    child = grow(session, "working")
    session.prompt()

    def finish() -> None:
        spool.send(session.root, "the result", session.agent)
        rest(session, child)

    later = threading.Timer(0.5, finish)
    later.start()
    ran = session.stop(last_assistant_message="early")
    later.join()
    assert 0.4 < ran.seconds < 15
    assert "the result" in ran.context
    assert len(session.read) == 1
    assert session.stop(last_assistant_message="late").silent


def test_no_waiter_takes_what_comes_while_the_end_is_held(session: FakeSession) -> None:
    """Also where it was armed long after the hook had begun, and so could believe that the hook had failed."""
    finals.switch_on(session.root, session.key, 20.0)
    child = grow(session, "working")
    session.prompt()
    held = threading.Thread(target=lambda: session.hook("Stop", waiter=False))
    held.start()
    while (state := store.load_state(session.root, session.key)) is None or "holding" not in state:
        clock.sleep(0.01)
    clock.sleep(0.2)
    session.arm()
    assert session.settled()
    clock.sleep(rules.IDLE_DOUBT + 0.5)
    spool.send(session.root, "the result", session.agent)
    held.join()
    assert len(session.live_waiters()) == 1
    rest(session, child)


def test_a_step_ends_after_its_seconds_and_tells_who_still_works(session: FakeSession) -> None:
    finals.switch_on(session.root, session.key, 0.2)
    grow(session, "working")
    session.prompt()
    steps = 0
    while "kid" in (ran := session.stop()).goes_on:
        steps += 1
        assert ran.goes_on == render.CHILDREN_WORK.format(names="kid")
    assert steps == 5
    assert ran.silent


@pytest.mark.parametrize("doing", ["idle", "stopped", "lost"])
def test_children_that_do_not_work_hold_nothing(session: FakeSession, doing: Doing) -> None:
    finals.switch_on(session.root, session.key, 20.0)
    grow(session, doing)
    session.prompt()
    assert session.stop().silent


def test_a_report_on_its_way_holds_the_answer(session: FakeSession) -> None:
    child = grow(session, "idle")
    assert not finals.works(session.root, child)
    reporting.switch_on(session.root, child["key"])
    reporting.leave(session.root, child["key"], {"last_assistant_message": "done"})
    assert finals.works(session.root, child)
