"""Who may do what to whom, as a table over every relation, and what the policy's rules change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnpost.core import registry, routing
from turnpost.core.routing import Power, Rule

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Mission


def agent(name: str, *, parent: str | None = None, mission: str | None = None) -> Agent:
    made = registry.unsaved_person()
    made.update({"key": f"ag-{name}", "name": name, "kind": "managed", "mission": mission})
    made["parent"] = f"ag-{parent}" if parent else None
    return made


def mission(name: str, coordinator: str | None = None) -> dict[str, Mission]:
    return {
        name: {
            "v": 1, "name": name, "state": "running", "coordinator": f"ag-{coordinator}" if coordinator else None,
            "goal": None, "started": 0.0, "ended": None, "reason": None,
        }
    }  # fmt: skip


PERSON = registry.unsaved_person()
ALPHA = agent("alpha")
TABLE: list[tuple[str, Agent, Agent, dict[str, Mission], bool, bool]] = [
    ("self", ALPHA, ALPHA, {}, False, False),
    ("self", agent("a", mission="m"), agent("a", mission="m"), mission("m"), False, False),
    ("person", ALPHA, PERSON, {}, True, False),
    ("parent", agent("child", parent="alpha"), ALPHA, {}, True, False),
    ("child", ALPHA, agent("child", parent="alpha"), {}, True, True),
    ("child", agent("alpha", mission="m"), agent("c", parent="alpha", mission="m"), mission("m"), True, True),
    ("mission", agent("a", mission="m"), agent("b", mission="m"), mission("m"), True, False),
    ("mission", agent("a", parent="p", mission="m"), agent("b", parent="p", mission="m"), {}, True, False),
    ("coordinator", agent("a", mission="m"), ALPHA, mission("m", "alpha"), True, False),
    ("led", ALPHA, agent("a", mission="m"), mission("m", "alpha"), True, False),
    ("sibling", agent("a", parent="p"), agent("b", parent="p"), {}, False, False),
    ("sibling", agent("a", parent="p", mission="m"), agent("b", parent="p"), mission("m"), False, False),
    ("stranger", ALPHA, agent("beta"), {}, False, False),
    ("stranger", ALPHA, agent("b", parent="p"), {}, False, False),
    ("stranger", agent("a", mission="m"), agent("b", mission="n"), mission("m") | mission("n"), False, False),
    ("stranger", agent("grandchild", parent="child"), ALPHA, {}, False, False),
]


@pytest.mark.parametrize(
    ("relation", "one", "other", "missions", "writes", "controls"), TABLE, ids=[f"{n}-{r[0]}" for n, r in enumerate(TABLE)]
)  # fmt: skip
def test_without_a_policy_the_lines_of_work_decide(
    relation: str, one: Agent, other: Agent, missions: dict[str, Mission], writes: bool, controls: bool
) -> None:
    write = routing.decide(one, other, missions, (), "write")
    control = routing.decide(one, other, missions, (), "control")
    assert (write.relation, write.allowed, control.allowed, write.rule) == (relation, writes, controls, 0)
    assert other["name"] in write.reason


RULES: list[tuple[Rule, Agent, Agent, bool]] = [
    (Rule("allow"), ALPHA, agent("beta"), True),
    (Rule("allow", "alpha", "beta"), ALPHA, agent("Beta"), True),
    (Rule("allow", "ALPHA", "be*"), ALPHA, agent("beta"), True),
    (Rule("allow", "al*", "gamma"), ALPHA, agent("beta"), False),
    (Rule("allow", "mission:m", "*"), agent("a", mission="M"), agent("beta"), True),
    (Rule("allow", "mission:m", "*"), ALPHA, agent("beta"), False),
    (Rule("allow", relation="sibling"), agent("a", parent="p"), agent("b", parent="p"), True),
    (Rule("allow", relation="sibling"), ALPHA, agent("beta"), False),
    (Rule("allow", may="control"), ALPHA, agent("beta"), False),
    (Rule("deny"), ALPHA, agent("child", parent="alpha"), False),
    (Rule("deny", to="person"), ALPHA, PERSON, False),
    (Rule("deny"), ALPHA, PERSON, True),
    (Rule("deny", relation="parent"), agent("child", parent="alpha"), ALPHA, False),
]


@pytest.mark.parametrize(("rule", "one", "other", "allowed"), RULES)
def test_a_rule_widens_or_narrows_for_those_it_names(
    rule: Rule, one: Agent, other: Agent, allowed: bool
) -> None:
    assert routing.decide(one, other, {}, [rule]).allowed is allowed


def test_the_first_rule_that_fits_decides_and_says_which_it_was_and_why() -> None:
    rules = [Rule("deny", "gamma"), Rule("allow", to="beta", why="reviews"), Rule("deny", to="beta")]
    found = routing.decide(ALPHA, agent("beta"), {}, rules)
    assert (found.allowed, found.rule) == (True, 2)
    assert found.reason == "rule 2 of the policy allows it: reviews"


_rules = st.lists(
    st.builds(
        Rule, st.sampled_from(["allow", "deny"]), st.sampled_from(["*", "alpha", "a*", "mission:m"]),
        st.sampled_from(["*", "person", "beta"]), st.none(), st.sampled_from(["write", "control"]),
    ),
    max_size=6,
)  # fmt: skip


@given(_rules, st.sampled_from(["write", "control"]))
def test_no_policy_lets_an_agent_write_to_itself_or_routes_the_person(
    rules: list[Rule], power: Power
) -> None:
    assert not routing.decide(ALPHA, ALPHA, {}, rules, power).allowed
    assert routing.decide(PERSON, ALPHA, {}, rules, power).allowed
    assert not routing.decide(PERSON, PERSON, {}, rules, power).allowed
