"""Explaining the policy: who may do what to whom, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost import policy
from turnpost.actions import permits
from turnpost.actions.results import PolicyVerdict
from turnpost.core import clock, loops, missions, registry, store, text

if TYPE_CHECKING:
    from turnpost.core.records import Agent
    from turnpost.core.routing import Power


def check(root: str, from_: str, to: str, may: Power = "write") -> PolicyVerdict:
    """The verdict on two parties as they are now, with what else would stand in the way of a message this moment.

    Raises NotFound, and UsageError (`policy`) for a policy that cannot be used.
    """
    rules = policy.load(root)
    one, other = _party(root, from_), _party(root, to)
    found = permits.verdict(root, one, other, rules, may)
    notes = _notes(root, one, other, rules.loops) if may == "write" else ()
    return PolicyVerdict(
        one["name"],
        other["name"],
        may,
        found.allowed,
        found.relation,
        found.rule or None,
        found.reason,
        notes,
    )


def _party(root: str, name: str) -> Agent:
    return registry.unsaved_person() if text.name_key(name) == registry.PERSON else registry.find(root, name)


def _notes(root: str, one: Agent, other: Agent, budget: loops.Budget) -> tuple[str, ...]:
    notes: list[str] = []
    state = store.load_state(root, one["key"])
    if state is not None and state.get("mode") == "plan":
        notes.append(f"read-only: {one['name']} is in plan mode")
    mission = missions.over(root, other)
    if mission is not None:
        notes.append(f"mission-over: the mission {mission['name']} of {other['name']} is {mission['state']}")
    if one["kind"] != "person" and other["kind"] != "person":
        moments = loops.moments(root, one["key"], other["key"])
        used = loops.used(moments, loops.person_at(root, one["key"], other["key"]), budget, clock.now())
        if used:
            notes.append(f"loop: {used} of {budget.messages} messages in {budget.seconds:g} s are used")
    return tuple(notes)
