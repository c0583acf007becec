"""The agents as another agent sees them: short, for a conversation has to carry it."""

from __future__ import annotations

from turnpost.actions import agents, people
from turnpost.actions.results import AgentView, Peer, Roster
from turnpost.core import registry
from turnpost.core.sender import Speaker


def roster(root: str, *, speaker: Speaker | None = None) -> Roster:
    """Who the caller is, and all other agents by name. Raises Refused (`foreign`)."""
    me = people.caller(root, speaker).agent
    others = [agents.view(root, agent) for agent in registry.everyone(root) if agent["key"] != me["key"]]
    return Roster(
        me["name"],
        people.name_of(root, me["parent"]),
        me.get("mission"),
        tuple(_peer(view) for view in others),
    )


def _peer(view: AgentView) -> Peer:
    return Peer(view.name, view.state, view.waiting, view.parent, view.mission, view.held)
