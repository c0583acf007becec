"""`mission` and `policy` as commands."""

from __future__ import annotations

from collections.abc import Callable

from tests.actions.fakes import FakeHome
from tests.cli.conftest import Run
from turnpost.core.sender import Speaker


def test_the_life_of_a_mission_in_commands(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "working")
    home.agent("beta", "stopped")
    assert run("mission", "show").out.startswith("no missions yet")
    made = run("mission", "start", "release", "- ship it", "--agent", "alpha", "--json").json
    assert (made["name"], made["state"], made["goal"]) == ("release", "running", "- ship it")
    added = run("mission", "add", "release", "alpha,beta", "--json").json
    assert [seat["name"] for seat in added["members"]] == ["alpha", "beta"]
    assert [agent["mission"] for agent in run("agents", "--json").json] == ["release", "release"]
    assert "release  running  2" in run("mission", "show").out
    ended = run("mission", "abort", "release", "-", "--json", input=b"no time left").json
    assert (ended["state"], ended["reason"], ended["told"]) == ("aborted", "no time left", ["alpha"])
    text = run("mission", "show", "release").out
    assert "reason: no time left" in text
    assert "beta: stopped; 0 waiting" in text
    assert "stopped,over" in run("agents").out
    refused = run("send", "beta", "x", "--json")
    assert (refused.code, refused.json["error"]["rule"], refused.json["error"]["mission"]) == (
        3,
        "mission-over",
        "release",
    )
    assert run("mission", "finish", "release").code == 3
    assert run("mission", "show", "relaese", "--json").json["error"]["near"] == ["release"]
    assert run("mission", "add", "release").code == 2


def test_a_policy_check_explains_the_verdict_with_exit_0_either_way(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    home.agent("beta")
    done = run("policy", "check", "alpha", "beta", "--json")
    assert done.code == 0
    assert done.json == {
        "from": "alpha", "to": "beta", "may": "write", "allowed": False, "relation": "stranger", "rule": None,
        "reason": "beta is neither parent nor child of alpha, and they share no mission", "notes": [],
    }  # fmt: skip
    assert "alpha may not write to beta" in run("policy", "check", "alpha", "beta").out
    home.policy('[[rule]]\nfrom = "alpha"\nverdict = "allow"\nwhy = "they review"\n')
    text = run("policy", "check", "alpha", "beta").out
    assert "alpha may write to beta: rule 1 of the policy allows it: they review" in text
    assert "may not control" in run("policy", "check", "alpha", "beta", "--for", "control").out
    assert run("policy", "check", "alpha", "betta").code == 4
    home.policy("[[rule]]\n")
    assert (run("policy", "check", "alpha", "beta", "--json").code) == 2


def test_a_quiet_message_says_that_it_wakes_nobody_and_how_it_would(
    home: FakeHome, run: Run, speaks: Callable[[Speaker], None]
) -> None:
    mother = home.agent("mother")
    home.agent("child", "stopped", parent=mother)
    speaks(home.speaker(mother))
    assert "--wake would" in " ".join(run("send", "child", "for your files").out.split())
    sent = run("send", "child", "at once", "--wake", "--json").json
    assert (sent["quiet"], sent["recipients"][0]["boundary"]) == (False, "resume")


def test_a_refusal_by_routing_has_its_numbers_in_the_document(
    home: FakeHome, run: Run, speaks: Callable[[Speaker], None]
) -> None:
    alpha = home.agent("alpha")
    home.agent("beta")
    speaks(home.speaker(alpha))
    done = run("send", "beta", "x", "--json")
    assert done.code == 3
    error = done.json["error"]
    assert error.pop("message").startswith(
        "refused by rule 'not-allowed': you are alpha; you may not write to beta"
    )
    assert error == {"rule": "not-allowed", "caller": "alpha", "recipient": "beta", "relation": "stranger"}
