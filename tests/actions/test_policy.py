"""The policy file: what it may say, one line about what it may not, and what it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost import policy
from turnpost.actions import holding, policies, sending
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.core.loops import Budget
from turnpost.core.routing import Rule

FULL = """
[[rule]]
from = "reviewer-*"
to = "mission:release"
relation = "stranger"
verdict = "allow"
why = "reviews cross teams"

[[rule]]
to = "Person"
verdict = "deny"

[[rule]]
may = "control"
verdict = "allow"

[loops]
hops = 3
seconds = 60

[delivery]
family_urgent = false
"""


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert policy.load(str(tmp_path)) == policy.Policy((), Budget(8, 20, 600.0), True)


def test_what_the_file_says_holds_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(FULL)
    assert policy.load(str(tmp_path)) == policy.Policy(
        (
            Rule("allow", "reviewer-*", "mission:release", "stranger", "write", "reviews cross teams"),
            Rule("deny", "*", "person"),
            Rule("allow", may="control"),
        ),
        Budget(3, 20, 60.0),
        False,
    )


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("[[rule]]", "rule 1, verdict"),
        ('[[rule]]\nverdict = "allow"\n[[rule]]\nverdict = "maybe"', "rule 2, verdict"),
        ('[[rule]]\nverdict = "allow"\nform = "alpha"', "rule 1, form"),
        ('[[rule]]\nverdict = "allow"\nfrom = "person"', "never routed"),
        ('[[rule]]\nverdict = "allow"\nfrom = "a b"', "rule 1, from"),
        ('[[rule]]\nverdict = "allow"\nto = "mission:*"', "rule 1, to"),
        ('[[rule]]\nverdict = "allow"\nto = "alpha?"', "rule 1, to"),
        ('[[rule]]\nverdict = "allow"\nto = ""', "rule 1, to"),
        ('[[rule]]\nverdict = "allow"\nrelation = "self"', "rule 1, relation"),
        ('[[rule]]\nverdict = "allow"\nmay = "launch"', "rule 1, may"),
        ('[[rule]]\nverdict = "allow"\nwhy = "a\\nb"', "rule 1, why"),
        ("rule = 3", "rule"),
        ("[loops]\nhops = 0", "loops, hops"),
        ("[loops]\nmessages = 2.5", "loops, messages"),
        ("[loops]\nseconds = nan", "loops, seconds"),
        ("[loop]\nhops = 3", "loop"),
        ("[delivery]\nfamily_urgent = 1", "delivery, family_urgent"),
        ("[", "no TOML"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_that_names_the_place(
    home: FakeHome, words: str, place: str
) -> None:
    home.agent("alpha")
    home.policy(words)
    before = home.tree()
    with pytest.raises(UsageError) as caught:
        sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    assert caught.value.rule == "policy"
    assert f"{home.root}/policy.toml" in caught.value.message
    assert place in caught.value.message
    assert "\n" not in caught.value.message
    assert home.tree() == before


def test_a_rule_opens_a_way_between_strangers_and_another_closes_one_in_a_family(home: FakeHome) -> None:
    mother = home.agent("mother")
    child = home.agent("child", parent=mother)
    home.agent("stranger")
    home.policy(
        '[[rule]]\nfrom = "child"\nto = "stranger"\nverdict = "allow"\n'
        '[[rule]]\nfrom = "child"\nverdict = "deny"\nwhy = "it only reports to me"\n'
    )
    assert sending.send(home.root, ["stranger"], "x", speaker=home.speaker(child)).id
    with pytest.raises(Refused) as caught:
        sending.send(home.root, ["parent"], "x", speaker=home.speaker(child))
    assert caught.value.numbers == {
        "caller": "child", "recipient": "mother", "relation": "parent", "policy_rule": 2,
    }  # fmt: skip
    assert "it only reports to me" in caught.value.message


def test_control_is_a_power_of_its_own(home: FakeHome) -> None:
    warden = home.agent("warden")
    home.agent("alpha")
    home.policy('[[rule]]\nfrom = "warden"\nmay = "control"\nverdict = "allow"\n')
    assert holding.hold(home.root, "alpha", speaker=home.speaker(warden)).held
    with pytest.raises(Refused):
        sending.send(home.root, ["alpha"], "x", speaker=home.speaker(warden))


def test_the_policy_decides_whether_families_are_urgent(home: FakeHome) -> None:
    mother = home.agent("mother")
    home.agent("child", parent=mother)
    home.policy("[delivery]\nfamily_urgent = false\n")
    assert not sending.send(home.root, ["child"], "x", speaker=home.speaker(mother)).urgent


def test_a_check_says_who_may_why_and_what_else_stands_in_the_way(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    refused = policies.check(home.root, "alpha", "beta")
    assert (refused.allowed, refused.relation, refused.rule) == (False, "stranger", None)
    home.team(alpha, beta)
    sending.send(home.root, ["beta"], "x", speaker=home.speaker(alpha))
    home.plan_mode(alpha)
    allowed = policies.check(home.root, "ALPHA", "beta")
    assert (allowed.from_, allowed.allowed, allowed.relation) == ("alpha", True, "mission")
    assert [note.partition(":")[0] for note in allowed.notes] == ["read-only", "loop"]
    assert "1 of 20" in allowed.notes[1]
    assert not policies.check(home.root, "alpha", "beta", "control").allowed
    assert policies.check(home.root, "alpha", "person").allowed
    assert policies.check(home.root, "person", "alpha", "control").allowed
    with pytest.raises(NotFound):
        policies.check(home.root, "alpha", "nobody")
