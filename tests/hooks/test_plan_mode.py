"""The hooks note the session's permission mode: an agent in plan mode may not send."""

from __future__ import annotations

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import clock, files, home, registry, store


def mode(root: str, session: FakeSession) -> str | None:
    key = registry.key_of_session(root, session.session_id)
    assert key is not None
    state = store.load_state(root, key)
    assert state is not None
    assert files.exists(home.agent(root, key) + "/plan") == (state.get("mode") == "plan")
    return state.get("mode")


def test_a_prompt_and_a_stop_say_in_which_mode_the_session_is(root: str, session: FakeSession) -> None:
    assert mode(root, session) is None
    assert session.hook("UserPromptSubmit", prompt="go", permission_mode="plan").silent
    assert mode(root, session) == "plan"
    assert session.hook("Stop", permission_mode="default").silent
    assert mode(root, session) == "default"
    assert session.hook("Stop", permission_mode=7).silent
    assert mode(root, session) == "default"


def test_a_wake_says_in_which_mode_the_session_is_by_its_waiter(root: str, session: FakeSession) -> None:
    session.turn()
    assert mode(root, session) == "default"
    assert session.settled(1)
    spool.send(root, "wake up", session.agent)
    session.wake(permission_mode="plan")
    end = clock.monotonic() + 10
    while mode(root, session) != "plan":
        assert clock.monotonic() < end
        clock.sleep(0.05)


def test_plan_mode_that_ends_within_a_turn_is_seen_with_the_next_tools(
    root: str, session: FakeSession
) -> None:
    session.hook("UserPromptSubmit", prompt="go", permission_mode="plan")
    assert session.hook("PostToolBatch", permission_mode="plan").silent
    assert mode(root, session) == "plan"
    since = state_since(root, session)
    assert session.hook("PostToolBatch", permission_mode="acceptEdits").silent
    assert mode(root, session) == "acceptEdits"
    assert state_since(root, session) == since


def test_a_subagents_mode_is_not_its_agents(root: str, session: FakeSession) -> None:
    session.hook("UserPromptSubmit", prompt="go", permission_mode="plan")
    session.hook("PostToolBatch", permission_mode="default", agent_id="sub1")
    assert mode(root, session) == "plan"


def test_the_mode_outlives_a_compaction_and_a_respawn(root: str, session: FakeSession) -> None:
    session.hook("UserPromptSubmit", prompt="go", permission_mode="plan")
    assert session.start("compact").code == 0
    assert mode(root, session) == "plan"
    assert session.start("resume").code == 0
    assert mode(root, session) == "plan"


def state_since(root: str, session: FakeSession) -> float:
    key = registry.key_of_session(root, session.session_id)
    assert key is not None
    state = store.load_state(root, key)
    assert state is not None
    assert spool.log(root) == ""
    return state["since"]
