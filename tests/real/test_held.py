"""Agents that a person keeps from being woken, and sessions that turnpost does not know."""

from __future__ import annotations

import json

import pytest

from tests.real.kit import SETTINGS, Post, bash, bodies, until

pytestmark = [pytest.mark.real, pytest.mark.slow]


def by_agent(post: Post, speaker: str, words: str) -> dict[str, object]:
    """What a turnpost command answers in an agent's shell."""
    file = post.world.root / "answer.json"
    file.unlink(missing_ok=True)
    post.model.script(speaker, [bash(f"turnpost {words} --json > {file}.draft; mv {file}.draft {file}")])
    post.send(speaker, "go on")
    until(file.exists, f"{speaker} ran its command")
    post.wait_idle(speaker)
    return dict(json.loads(file.read_text()))


def test_a_hold_is_lifted_by_the_person_and_by_nobody_else(post: Post) -> None:
    session_id = post.launch_idle("alpha")
    post.launch_idle("beta", options=("--parent", "alpha", "--no-report"))

    assert post.run("stop", "alpha")["held"]
    assert post.state("alpha") == "stopped"
    first = by_agent(post, "beta", "send alpha 'while it is stopped'")
    assert [one["boundary"] for one in first["recipients"]] == ["held"]  # type: ignore[attr-defined]
    for words in ("release alpha", "wake alpha", "stop alpha"):
        refusal = by_agent(post, "beta", words)
        assert refusal["error"]["rule"] == "not-allowed"  # type: ignore[index]
    # All the while a coordinator worked for beta; it has left alpha alone.
    view = post.agent("alpha")
    assert (view.state, view.held, view.waiting) == ("stopped", True, 1)
    assert len(post.requests("alpha")) == 1

    second = post.send("alpha", "go on")
    assert second.boundary == "resume"
    post.assert_read_once("alpha", str(first["id"]), second.id)
    assert post.agent("alpha").session_id == session_id
    assert bodies(post.requests("alpha")[-1], [str(first["id"])]) == ["while it is stopped"]

    # A hold without a stop: the agent sits there idle, its waiter alive, and is not woken.
    assert post.run("hold", "alpha")["held"]
    asked = len(post.requests("alpha"))
    third = by_agent(post, "beta", "send alpha 'while it is held' --urgent")
    assert [one["boundary"] for one in third["recipients"]] == ["held"]  # type: ignore[attr-defined]
    assert post.agent("alpha").waiting == 1
    assert len(post.requests("alpha")) == asked
    assert not post.run("release", "alpha")["held"]
    (receipt,) = post.assert_read_once("alpha", str(third["id"]))
    assert receipt.boundary == "rewake"


def test_waking_a_foreign_session_forks_it_and_leaves_it_as_it_is(post: Post) -> None:
    folder = post.project("plain", settings=SETTINGS, install=False)
    post.world.claude("--bg", "[[lab:foreign]] begin", cwd=folder).check()
    original = until(lambda: post.requests("foreign"), "the foreign session works")[0].session_id
    assert original
    until(lambda: any(one.get("status") == "idle" for one in post.world.agents()), "it is idle")
    assert post.refused("send", original, "hello")["rule"] == "foreign"

    woken = post.run("wake", original, "-", input="wake up")
    assert woken["forked"]
    request = post.model.wait_for(lambda one: one.name == "foreign" and one.has("wake up"), 45.0)
    assert request.session_id != original
    assert request.count("<message about=") == 1
    assert [one.session_id for one in post.requests("foreign") if one.session_id == original] == [original]
    assert not any(one.has("wake up") for one in post.requests("foreign") if one.session_id == original)
    copy = next(one for one in post.run("agents") if one["session_id"] == request.session_id)
    post.wait_idle(copy["name"])
    again = post.send(copy["name"], "and now by its name")
    post.assert_read_once(copy["name"], again.id)
    assert post.requests("foreign")[-1].count("wake up") == 1
