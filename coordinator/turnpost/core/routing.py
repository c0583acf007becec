"""Who may write to whom, and who may stop, hold or rename whom. Pure: records and the policy in, a verdict out.

Between agents a message follows a line of work: to a parent, to an own child, within a mission, to and from a mission's
coordinator. The first rule of the policy that fits decides instead. The person's own word is never routed, and nothing
lets an agent write to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from turnpost.core import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from turnpost.core.records import Agent, Mission

Power = Literal["write", "control"]
"""`write` also covers waiting for somebody; `control` is to stop, hold, release and rename."""
Relation = Literal[
    "self", "person", "parent", "child", "mission", "coordinator", "led", "sibling", "stranger"
]
"""What the second of two is to the first: its mission's `coordinator`, or `led` by it."""

_WRITES: frozenset[Relation] = frozenset({"person", "parent", "child", "mission", "coordinator", "led"})
_CONTROLS: frozenset[Relation] = frozenset({"child"})
_WORDS: Mapping[Relation, str] = {
    "self": "{to} is {from_} itself",
    "person": "{to} is the person",
    "parent": "{to} is the parent of {from_}",
    "child": "{to} is a child of {from_}",
    "mission": "both are in the mission {mission}",
    "coordinator": "{to} coordinates the mission of {from_}",
    "led": "{from_} coordinates the mission of {to}",
    "sibling": "{to} and {from_} are children of one parent, and in no mission together",
    "stranger": "{to} is neither parent nor child of {from_}, and they share no mission",
}


class Rule(NamedTuple):
    """One rule of the policy: whom it is about, what it decides, and why in the person's own words.

    `from_` and `to` are names, in which `*` stands for any text, `mission:NAME`, or `person` for `to`. `*` alone is
    every agent.
    """

    verdict: Literal["allow", "deny"]
    from_: str = "*"
    to: str = "*"
    relation: Relation | None = None
    may: Power = "write"
    why: str = ""


class Verdict(NamedTuple):
    """What was decided and by what; `rule` is the number of the policy's rule, counted from 1, or 0 for the default."""

    allowed: bool
    relation: Relation
    reason: str
    rule: int = 0


def relation(one: Agent, other: Agent, missions: Mapping[str, Mission]) -> Relation:
    """What `other` is to `one`. `missions` holds the missions the two are in, by name; a mission that is over still counts.

    The nearest counts: a child in one's own mission is a child.
    """
    if one["key"] == other["key"]:
        return "self"
    if other["kind"] == "person":
        return "person"
    if one["parent"] == other["key"]:
        return "parent"
    if other["parent"] == one["key"]:
        return "child"
    if one["mission"] and one["mission"] == other["mission"]:
        return "mission"
    if _leads(other, one, missions):
        return "coordinator"
    if _leads(one, other, missions):
        return "led"
    return "sibling" if one["parent"] and one["parent"] == other["parent"] else "stranger"


def decide(
    one: Agent, other: Agent, missions: Mapping[str, Mission], rules: Sequence[Rule], power: Power = "write"
) -> Verdict:
    """Whether `one` may do this to `other`."""
    kin = relation(one, other, missions)
    words = _WORDS[kin].format(to=other["name"], from_=one["name"], mission=one["mission"])
    if one["kind"] == "person":
        return Verdict(kin != "self", kin, "the person may" if kin != "self" else words)
    if kin == "self":
        return Verdict(False, kin, words)
    for number, rule in enumerate(rules, 1):
        if rule.may == power and _fits(rule, kin, one, other):
            why = f"rule {number} of the policy {'allows' if rule.verdict == 'allow' else 'forbids'} it"
            return Verdict(rule.verdict == "allow", kin, f"{why}: {rule.why}" if rule.why else why, number)
    return Verdict(kin in (_WRITES if power == "write" else _CONTROLS), kin, words)


def _leads(one: Agent, other: Agent, missions: Mapping[str, Mission]) -> bool:
    mission = missions.get(other["mission"] or "")
    return mission is not None and mission["coordinator"] == one["key"]


def _fits(rule: Rule, kin: Relation, one: Agent, other: Agent) -> bool:
    if rule.relation is not None and rule.relation != kin:
        return False
    return _names(rule.from_, one) and _names(rule.to, other)


def _names(pattern: str, agent: Agent) -> bool:
    """Whether a pattern of the policy means this party. The person is meant by name only."""
    if agent["kind"] == "person":
        return pattern == "person"
    head, colon, mission = pattern.partition(":")
    if colon and head == "mission":
        return agent["mission"] is not None and text.name_key(agent["mission"]) == text.name_key(mission)
    if pattern == "*":
        return True
    from fnmatch import fnmatchcase

    # Names hold no brackets and no question marks, so only the star has a meaning.
    return fnmatchcase(text.name_key(agent["name"]), text.name_key(pattern))
