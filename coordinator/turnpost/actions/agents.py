"""The agents as they are now, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost import policy, redaction
from turnpost.actions import people, permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Agents, AgentView, Renamed, SubagentView
from turnpost.core import audit, clock, files, missions, registry, store, subagents
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent


def agents(root: str) -> Agents:
    """Every agent this home knows, by name; `doctor` names those that a newer turnpost wrote."""
    found = (store.if_known(view, root, agent) for agent in registry.everyone(root))
    return Agents(tuple(one for one in found if one is not None))


def view(root: str, agent: Agent) -> AgentView:
    """One agent as it is now."""
    stands = people.standing(root, agent["key"])
    state = stands.state
    runs = state is not None and stands.doing not in ("stopped", "lost")
    return AgentView(
        name=agent["name"],
        kind=agent["kind"],
        state=stands.doing,
        deaf=stands.deaf,
        held=stands.held,
        waiting=stands.waiting,
        session_id=state["session_id"] if state else None,
        sessions=tuple(agent["sessions"]),
        parent=people.name_of(root, agent["parent"]),
        mission=agent.get("mission"),
        pid=state["pid"] if state and runs else None,
        cwd=(state["cwd"] if state else "") or agent["cwd"],
        since=clock.rfc3339(state["since"]) if state else None,
        mission_over=missions.over(root, agent) is not None,
        subagents=tuple(_subagent(root, key) for key in subagents.running(root, agent["key"])),
    )


def _subagent(root: str, key: str) -> SubagentView:
    record = subagents.load(root, key)
    stands = people.standing(root, key)
    return SubagentView(
        name=record["name"] if record else key,
        about=record.get("about", "") if record else "",
        waiting=stands.waiting,
        since=clock.rfc3339(stands.state["since"]) if stands.state else None,
    )


@refusals("rename")
def rename(root: str, name: str, new: str, *, speaker: Speaker | None = None) -> Renamed:
    """Give an agent another name; its mail and its sessions stay its own.

    Raises NotFound, UsageError (`name`) and Refused (`taken`, `not-allowed`).
    """
    agent = people.agent(root, name)
    redaction.refuse("agent's name", new, policy.load(root).secrets, "name")
    voice = permits.controlling(root, agent, "rename it", speaker)
    old = agent["name"]
    # A session that starts right now writes the same record, under the same lock.
    with files.Lock(root + "/registry.lock", 5.0):
        fresh = registry.load_agent(root, agent["key"]) or agent
        renamed = registry.rename(root, fresh, new)
    audit.acted(root, "rename", voice.agent, renamed, old=old)
    return Renamed(old, renamed["name"])
