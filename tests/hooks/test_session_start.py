"""Which agent a starting session is, and what a copy that was retired may still do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import clock, files, registry, store

pytestmark = pytest.mark.process


@pytest.fixture
def copy(session: FakeSession) -> Iterator[FakeSession]:
    """Another process, for a copy of the session."""
    with FakeSession(session.root, session.folder) as made:
        yield made


def doing(session: FakeSession) -> str:
    state = store.load_state(session.root, session.key)
    assert state is not None
    return state["doing"]


def wakes(session: FakeSession) -> None:
    """The session's agent is reached in this session."""
    assert session.settled(len(session.live_waiters()))
    sent = spool.send(session.root, "are you there?", session.agent)
    session.wake()
    assert session.read[-1:] == [sent]


def test_a_new_session_is_named_after_its_folder_and_is_idle(session: FakeSession) -> None:
    assert session.agent["name"] == f"project-{session.session_id[:8]}"
    assert session.agent["kind"] == "registered"
    assert doing(session) == "idle"


def test_a_background_session_is_starting_until_its_prompt(root: str, tmp_path: Path) -> None:
    with FakeSession(root, tmp_path / "bg", background=True) as session:
        session.start()
        assert doing(session) == "starting"
        sent = spool.send(root, "at once", session.agent)
        session.prompt()
        assert session.read == [sent]


def test_a_resume_keeps_the_agent(session: FakeSession) -> None:
    before = session.agent
    session.end()
    assert doing(session) == "stopped"
    with FakeSession(session.root, session.folder, session_id=session.session_id) as again:
        again.start("resume")
        assert again.agent["key"] == before["key"]
        assert doing(again) == "idle"
        wakes(again)


def test_a_clear_moves_the_agent_to_the_new_session(session: FakeSession) -> None:
    before, old = session.agent, session.session_id
    session.turn()
    session.end("clear")
    assert doing(session) == "idle"
    session.start("clear", str(uuid.uuid4()))
    assert session.agent["key"] == before["key"]
    assert session.agent["sessions"] == [old, session.session_id]
    assert session.settled(1)
    wakes(session)


def test_a_compaction_in_the_middle_of_a_turn_changes_nothing_it_does(session: FakeSession) -> None:
    session.prompt()
    session.start("compact")
    assert doing(session) == "working"
    sent = spool.send(session.root, "go on", session.agent)
    session.stop()
    assert session.read == [sent]


def test_a_fork_of_a_session_that_lives_on_is_an_agent_of_its_own(
    session: FakeSession, copy: FakeSession
) -> None:
    copy.env["TURNPOST_AGENT"] = session.key
    copy.start("fork")
    assert copy.key != session.key
    assert copy.agent["name"] != session.agent["name"]
    wakes(session)


def test_a_copy_made_by_a_resume_takes_the_agent_over_and_the_old_one_gets_nothing(
    session: FakeSession, copy: FakeSession
) -> None:
    session.turn()
    key, old = session.key, session.session_id
    state = store.load_state(session.root, key)
    assert state is not None
    state["resume"] = {"at": clock.now(), "tries": 0, "next": 0.0, "error": None, "pending": True}
    store.save_state(session.root, key, state)
    session.end_waiters()
    agent = session.agent
    copy.background = True
    copy.start("fork")
    # Its waiter goes along when the copy is adopted, and may be first; here the prompt's own hook is looked at.
    copy.end_waiters()
    # A start does not tell whose copy it is; the transcript, written with the first turn, does.
    copy.transcript.write_bytes(session.transcript.read_bytes())
    sent = spool.send(session.root, "once", agent, urgent=True)
    copy.prompt()
    assert copy.key == key
    assert copy.agent["retire"] == [old]
    copy.stop()
    assert copy.settled(1)
    before = {path: data for path, data in spool.tree(session.root).items() if "waiter" not in path}
    assert session.hook("UserPromptSubmit", prompt="x", waiter=False).silent
    assert session.hook("PostToolBatch").silent
    assert session.hook("PermissionRequest").silent
    assert session.hook("Stop", waiter=False).silent
    assert session.hook("SessionEnd", reason="other").silent
    after = {path: data for path, data in spool.tree(session.root).items() if "waiter" not in path}
    assert after == before
    assert (copy.read, session.read) == ([sent], [])


def test_an_idle_session_killed_and_brought_back_is_idle_and_reached(session: FakeSession) -> None:
    session.turn()
    session.kill()
    with FakeSession(session.root, session.folder, session_id=session.session_id, background=True) as again:
        again.start("resume")
        assert doing(again) == "idle"
        wakes(again)


def test_a_working_session_killed_and_brought_back_goes_on_with_its_turn(session: FakeSession) -> None:
    session.prompt()
    session.kill()
    with FakeSession(session.root, session.folder, session_id=session.session_id, background=True) as again:
        again.start("resume")
        assert doing(again) == "working"
        sent = spool.send(session.root, "at its end", session.agent)
        again.stop()
        assert again.read == [sent]


def test_a_session_the_agent_had_left_takes_it_back_with_its_waiter(session: FakeSession) -> None:
    first = session.session_id
    session.turn()
    session.end("clear")
    session.start("clear", str(uuid.uuid4()))
    session.end("resume")
    session.start("resume", first)
    assert session.settled(1)
    assert session.agent["sessions"][-1] == first
    wakes(session)


def test_a_message_claimed_by_a_session_that_was_killed_is_read_once_by_the_next(
    session: FakeSession,
) -> None:
    session.prompt()
    sent = spool.send(session.root, "hello", session.agent)
    assert session.hook("Stop").goes_on  # claimed, and killed before it entered
    session.kill()
    with FakeSession(session.root, session.folder, session_id=session.session_id) as again:
        again.start("resume")
        again.wake()
        again.stop()
        assert again.read == [sent]


def test_two_sessions_of_one_folder_are_two_agents(session: FakeSession, copy: FakeSession) -> None:
    copy.start()
    assert copy.key != session.key
    assert {agent["key"] for agent in registry.everyone(session.root)} == {session.key, copy.key}


def test_claude_p_leaves_no_file_at_all(tmp_path: Path) -> None:
    root = tmp_path / "state"
    with FakeSession(str(root), tmp_path / "claude", entrypoint="sdk-cli") as session:
        assert session.start().silent
        assert session.prompt().silent
        assert session.tool_batch().silent
        assert session.stop().silent
        assert session.hook("SessionEnd", reason="other").silent
        for waiter in session.waiters:
            assert waiter.communicate(timeout=10) == (b"", b"")
            assert waiter.returncode == 0
    assert not root.exists()


def test_claude_p_is_left_alone_where_agents_live(session: FakeSession) -> None:
    before = spool.tree(session.root)
    with FakeSession(
        session.root, session.folder, session_id=session.session_id, entrypoint="sdk-cli"
    ) as other:
        other.start("resume")
        other.prompt()
        other.stop()
    assert spool.tree(session.root) == before


def test_a_session_that_never_started_records_nothing(root: str, tmp_path: Path) -> None:
    with FakeSession(root, tmp_path / "claude") as session:
        assert session.prompt().silent
        assert session.tool_batch().silent
        assert session.hook("Stop", waiter=False).silent
    assert files.names(f"{root}/agents") == []
