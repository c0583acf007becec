"""The agents as another agent sees them: short, for a conversation has to carry it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost import policy
from turnpost.actions import agents, left_out, people, permits
from turnpost.actions.results import Peer, Roster
from turnpost.core import missions, registry, store
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent
    from turnpost.policy import Policy


def roster(root: str, *, speaker: Speaker | None = None) -> Roster:
    """Who the caller is, and all other agents by name. Raises Refused (`foreign`), UsageError (`policy`)."""
    with left_out.noted() as found:
        me = people.caller(root, speaker).agent
        rules = policy.load(root)
        others = [agent for agent in registry.everyone(root) if agent["key"] != me["key"]]
        peers = tuple(peer for other in others if (peer := store.if_known(_peer, root, me, other, rules)))
        parent = people.name_of(root, me["parent"])
    return Roster(me["name"], parent, me["mission"], peers, found.warnings)


def _peer(root: str, me: Agent, other: Agent, rules: Policy) -> Peer:
    stands = agents.view(root, other)
    found = permits.verdict(root, me, other, rules, "write")
    writable = found.allowed and missions.over(root, other) is None
    return Peer(
        stands.name, stands.state, stands.waiting, stands.held, found.relation, writable, stands.mission
    )
