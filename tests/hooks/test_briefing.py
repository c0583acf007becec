"""What an agent is told when its session starts."""

from __future__ import annotations

import uuid

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import briefing, registry, text

pytestmark = pytest.mark.process


def other(session: FakeSession, name: str, *, parent: str | None = None, mission: str | None = None) -> str:
    """Another agent's key."""
    agent = registry.create_agent(session.root, name, kind="managed", cwd="/", project="/")
    agent["parent"], agent["mission"] = parent, mission
    registry.save_agent(session.root, agent)
    return agent["key"]


def test_a_session_is_told_who_it_is_whom_it_may_write_to_and_how(session: FakeSession) -> None:
    told = session.start("resume").context
    assert f"you are the agent {session.agent['name']}." in told
    assert "You may write to `person`, to agents that you launch" in told
    assert "mcp__turnpost__send" in told
    assert "`turnpost send NAME" in told
    assert len(told.splitlines()) == 3
    assert text.units(told) < 1000


def test_parent_children_and_fellows_are_named_and_nobody_else(session: FakeSession) -> None:
    lead = other(session, "lead", mission="sale")
    agent = session.agent
    agent["parent"], agent["mission"] = lead, "sale"
    registry.save_agent(session.root, agent)
    other(session, "kid", parent=agent["key"], mission="sale")
    other(session, "fellow", mission="sale")
    other(session, "sibling", parent=lead)
    told = session.start("resume").context
    assert f"{agent['name']} in the mission sale." in told
    assert (
        "`person`, `parent` (lead), your children (kid), your mission's members (fellow), to agents" in told
    )
    assert "sibling" not in told


@pytest.mark.parametrize("source", ["startup", "resume", "compact"])
def test_it_is_told_again_at_every_start(session: FakeSession, source: str) -> None:
    assert session.start(source).briefs


def test_it_is_told_again_after_a_clear(session: FakeSession) -> None:
    session.turn()
    session.end("clear")
    assert session.start("clear", str(uuid.uuid4())).briefs


def test_many_children_and_long_instructions_stay_within_a_hooks_context(session: FakeSession) -> None:
    agent = session.agent
    agent["instructions"] = "\N{PARTY POPPER}" * 50_000
    registry.save_agent(session.root, agent)
    for number in range(40):
        other(session, f"{number:02}-{'n' * 61}", parent=agent["key"])
    told = briefing.brief(session.root, agent, "fork")
    assert "28 more" in told
    assert text.units(told) <= 9000


def test_a_copy_which_has_lost_the_options_of_its_launch_is_told_its_instructions(
    session: FakeSession,
) -> None:
    agent = session.agent
    agent["instructions"] = "be brief"
    assert briefing.brief(session.root, agent, "fork").endswith("\nbe brief")
    assert "be brief" not in briefing.brief(session.root, agent, "resume")


def test_a_subagents_start_and_claude_p_are_told_nothing(session: FakeSession) -> None:
    assert session.hook("SessionStart", source="startup", waiter=False, agent_id="a1").silent
    session.entrypoint = "sdk-cli"
    assert session.hook("SessionStart", source="startup", waiter=False).silent
    assert spool.tree(session.root)
