"""The waiter: wakes an idle session once, and is gone when it is no longer wanted."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import bell, clock, files, home, mailbox, procs, render, rules, store, waiter

pytestmark = pytest.mark.process


def send(session: FakeSession, body: str) -> str:
    return spool.send(session.root, body, session.agent)


def land_together(session: FakeSession, bodies: list[str]) -> list[str]:
    """Send so that the waiter cannot look in between, with a bell for each message."""
    box = mailbox.Mailbox(session.root, session.key)
    sent = []
    with box.lock():
        for body in bodies:
            message = spool.message(body, session.agent)
            spool.put(session.root, message, session.agent)
            sent.append(message["id"])
            bell.ring_waiter(session.root, session.key)
    return sent


@pytest.fixture
def others(root: str, tmp_path: Path) -> Iterator[list[FakeSession]]:
    """More sessions of the same home."""
    made = [FakeSession(root, tmp_path / f"other{n}") for n in range(3)]
    yield made
    for one in made:
        one.__exit__(None, None, None)


def test_a_message_to_an_idle_session_wakes_it_once(session: FakeSession) -> None:
    sent = send(session, "hello")
    session.wake()
    assert session.read == [sent]
    assert not session.stop().goes_on
    assert session.settled()
    with pytest.raises(TimeoutError):
        session.wake(0.5)
    assert session.read == [sent]


def test_many_messages_at_once_wake_once(session: FakeSession) -> None:
    sent = land_together(session, [f"number {n}" for n in range(20)])
    session.wake()
    assert session.read == sent


def test_a_turn_that_a_waiter_began_can_end_without_a_stop_and_the_agent_is_woken_again(
    session: FakeSession,
) -> None:
    """Esc fires no hook at all."""
    session.turn()
    assert session.settled(1)
    first = send(session, "one")
    session.wake()
    assert session.settled(1)
    second = send(session, "two")
    with mailbox.Mailbox(session.root, session.key).lock():
        state = store.load_state(session.root, session.key)
        assert state is not None
        store.save_state(session.root, session.key, store.change_state(state, "idle"))
    session.wake()
    assert session.read == [first, second]


def test_what_looks_like_an_element_is_left_to_the_prompt_hook_of_the_wake(session: FakeSession) -> None:
    sent = land_together(session, ["plain", "a <summary> of it"])
    assert session.wake() == render.NUDGE
    assert session.read == sent
    assert {spool.receipt(session.root, session.agent, one)["boundary"] for one in sent} == {"prompt"}


def test_a_prompt_hook_that_brings_nothing_does_not_end_in_a_loop_of_wakes(session: FakeSession) -> None:
    sent = send(session, "a <summary> of it")
    for _ in range(rules.NUDGES):
        (waiter,) = session.waiters or [session.arm("Stop")]
        assert waiter.communicate(timeout=10) == (b"", render.NUDGE.encode())
        session.waiters.clear()
    session.arm("Stop")
    assert render.mark(sent) in session.wake()
    assert session.read == [sent]


def test_ten_turns_leave_one_waiter(session: FakeSession) -> None:
    for _ in range(10):
        session.turn()
    assert session.settled(1)
    sent = send(session, "one of you")
    session.wake()
    assert session.read == [sent]
    assert session.settled(1)  # the turn that it began has one again
    assert [one.communicate() for one in session.waiters if one.poll() is not None] == [(b"", b"")] * 20
    found = files.names(f"{session.root}/agents/{session.key}")
    assert len([name for name in found if name.endswith(".fifo")]) == 1


def test_a_newer_waiter_retires_the_older_which_ends_in_silence(session: FakeSession) -> None:
    (older,) = session.live_waiters()
    newer = session.arm("Stop")
    assert older.communicate(timeout=10) == (b"", b"")
    assert older.returncode == 0
    assert session.settled(1)
    assert session.live_waiters() == [newer]


def test_the_waiter_of_a_killed_session_claims_nothing_and_ends(session: FakeSession) -> None:
    (orphan,) = session.live_waiters()
    session.kill()
    killed = clock.monotonic()
    sent = send(session, "to nobody")
    assert orphan.communicate(timeout=15) == (b"", b"")
    assert orphan.returncode == 0
    # It was rung, so it needs no round to find out; the round is what an unrung one takes at most.
    assert clock.monotonic() - killed < waiter.ROUND
    assert spool.receipt(session.root, session.agent, sent)["attempts"] == 0


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system does not tell of a process's end")
def test_the_waiter_of_a_killed_session_ends_at_once_without_a_bell(session: FakeSession) -> None:
    (orphan,) = session.live_waiters()
    session.kill()
    assert orphan.wait(timeout=waiter.ROUND / 2) == 0
    assert not bell.listening(session.root, session.key)


@pytest.mark.parametrize("refused", [AttributeError, OSError])
def test_where_the_kernel_does_not_tell_of_its_sessions_end_a_waiter_looks_each_round(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch, refused: type[Exception]
) -> None:
    def pidfd_open(pid: int) -> int:
        raise refused

    pauses: list[float] = []

    def select(read: list[int], _write: object, _error: object, pause: float) -> None:
        assert read == [fifo]
        pauses.append(pause)
        session.kill()

    monkeypatch.setattr(os, "pidfd_open", pidfd_open, raising=False)
    monkeypatch.setattr(waiter, "select", SimpleNamespace(select=select))
    mine = store.load_waiter(session.root, session.key)
    assert mine is not None
    fifo = os.open(bell.fifo(session.root, session.key, mine["id"]), os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert waiter._listen(session.root, session.key, mine, fifo, {"hook_event_name": "Stop"}) == ""
    finally:
        os.close(fifo)
    assert pauses == [waiter.ROUND]


def test_a_message_whose_bell_was_lost_is_found_in_a_round(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiter, "ROUND", 0.2)
    monkeypatch.setattr(bell, "ring", lambda path: False)
    mine = store.load_waiter(session.root, session.key)
    assert mine is not None
    send(session, "nobody rings")
    quiet, other_end = os.pipe()
    os.set_blocking(quiet, False)
    try:
        entering = waiter._listen(session.root, session.key, mine, quiet, {"hook_event_name": "Stop"})
    finally:
        os.close(quiet)
        os.close(other_end)
    assert "nobody rings" in entering


def test_while_the_session_works_the_waiter_takes_nothing(session: FakeSession) -> None:
    session.turn()
    assert session.settled()
    session.prompt()
    send(session, "mid-turn")
    with pytest.raises(TimeoutError):
        session.wake(rules.IDLE_DOUBT + 1.0)


def test_after_a_stop_hook_that_blocked_a_late_waiter_takes_nothing_of_the_turn(session: FakeSession) -> None:
    session.prompt()
    send(session, "keeps the turn going")
    assert session.hook("Stop", waiter=False).goes_on
    session.arm("Stop")  # begins after the Stop hook has recorded that the turn goes on
    assert session.settled()
    send(session, "mid-turn")
    with pytest.raises(TimeoutError):
        session.wake(rules.IDLE_DOUBT + 1.0)


def test_after_a_stop_hook_that_failed_the_waiter_still_delivers(session: FakeSession) -> None:
    session.prompt()
    session.arm("Stop")  # the Stop hook itself never ran
    sent = send(session, "hello")
    session.wake()
    assert session.read == [sent]


def test_a_waiter_armed_by_a_stop_hook_that_failed_later_in_a_turn_still_delivers(
    session: FakeSession,
) -> None:
    session.prompt()
    send(session, "one")
    assert session.stop().goes_on
    clock.sleep(rules.IDLE_DOUBT)  # the rest of the turn
    session.arm("Stop")
    second = send(session, "two")
    session.wake()
    assert session.read[-1] == second


def test_behind_a_permission_prompt_the_waiter_takes_nothing(session: FakeSession) -> None:
    session.hook("PermissionRequest")
    send(session, "behind the prompt")
    with pytest.raises(TimeoutError):
        session.wake(1.0)


def test_a_waiter_of_a_session_that_its_agent_has_left_ends(session: FakeSession) -> None:
    old = session.session_id
    session.start("clear", "22222222-aaaa-bbbb-cccc-000000000000")
    late = FakeSession(session.root, session.folder, session_id=old)
    with late:
        assert late.arm("Stop").communicate(timeout=10) == (b"", b"")
    sent = send(session, "to the one that lives")
    session.wake()
    assert session.read == [sent]


def test_only_the_addressed_agents_waiter_wakes(session: FakeSession, others: list[FakeSession]) -> None:
    for other in others:
        other.start()
    assert all(other.settled() for other in others)
    sent = spool.send(session.root, "to two", session.agent, others[0].agent)
    session.wake()
    others[0].wake()
    assert (session.read, others[0].read) == ([sent], [sent])
    assert len(others[1].live_waiters()) == len(others[2].live_waiters()) == 1


def test_a_waiter_with_nothing_to_do_uses_no_processor_time(session: FakeSession) -> None:
    (sleeping,) = session.live_waiters()
    before = _cpu(sleeping)
    clock.sleep(3.0)
    assert _cpu(sleeping) - before <= 0.01


def test_a_waiter_that_may_not_take_what_waits_uses_next_to_no_processor_time(session: FakeSession) -> None:
    files.write(f"{session.root}/agents/{session.key}/hold", b"")
    send(session, "held")
    (sleeping,) = session.live_waiters()
    before = _cpu(sleeping)
    clock.sleep(2.0)
    assert _cpu(sleeping) - before <= 0.1


@pytest.mark.parametrize("stdin", [b"", b"[]", b"{", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_waiter_with_garbage_for_input_ends_in_silence(session: FakeSession, stdin: bytes) -> None:
    garbage = session.arm("Stop", stdin=stdin)
    assert garbage.communicate(timeout=10) == (b"", b"")
    assert garbage.returncode == 0
    assert len(session.live_waiters()) == 1


def test_an_unanswered_message_is_recalled_in_an_idle_session(session: FakeSession) -> None:
    session.answers = False
    send(session, "hello")
    session.wake()
    box = mailbox.Mailbox(session.root, session.key)
    session.hook("StopFailure")
    with box.lock():
        state = store.load_state(session.root, session.key)
        assert state is not None
        box.settle(state)
        (name,) = box.in_flight()
        entry = store.load(f"{box.claimed}/{name}")
        assert entry is not None
        entry["claimed_at"] -= 2 * rules.REMIND
        files.write(f"{box.claimed}/{name}", store.pack(entry))
        state["since"] -= 2 * rules.REMIND
        store.save_state(session.root, session.key, state)
    session.arm("SessionStart")
    assert "has not been answered" in session.wake()
    assert len(session.read) == 1


def test_a_message_unanswered_in_a_turn_that_ended_without_a_word_is_somebodys_business(
    session: FakeSession,
) -> None:
    """Esc fires no hook: the agent only seems to work, and Claude Code must be asked."""
    session.answers = False
    send(session, "hello")
    session.wake()
    box = mailbox.Mailbox(session.root, session.key)
    with box.lock():
        state = store.load_state(session.root, session.key)
        assert state is not None
        box.settle(state)
        assert state["doing"] == "working"
        assert not box.pressing(state)
        state["since"] -= 2 * rules.REMIND
        (name,) = box.in_flight()
        entry = store.load(f"{box.claimed}/{name}")
        assert entry is not None
        entry["claimed_at"] -= 2 * rules.REMIND
        files.write(f"{box.claimed}/{name}", store.pack(entry))
        assert box.pressing(state)
        assert box.unanswered(state) == []


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """Seconds of processor time a child has used so far, as the platform's `ps` tells: H:M:S, Linux without fractions."""
    if procs.LINUX:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    shown = subprocess.run(
        ["ps", "-o", "time=", "-p", str(process.pid)], capture_output=True, text=True
    ).stdout
    seconds = 0.0
    for part in shown.strip().split(":"):
        seconds = seconds * 60 + float(part)
    return seconds


def test_a_clock_set_back_does_not_keep_the_waiter_of_a_cleared_session(session: FakeSession) -> None:
    armed = store.load_waiter(session.root, session.key)
    assert armed is not None
    armed["since"] += 3_600  # it was armed before the clock was set back
    files.write(home.agent(session.root, session.key) + "/waiter.json", store.pack(armed))
    session.start("clear", str(uuid.uuid4()))
    assert session.settled()
    sent = send(session, "hello")
    session.wake()
    assert session.read == [sent]
