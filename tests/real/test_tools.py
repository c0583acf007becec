"""Agents that use turnpost's tools: the scripted model calls them, and what comes back is in its next request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.real.kit import Post, bodies, until
from turnpost.actions import agents
from turnpost.core import mailbox
from turnpost.core.render import mark
from turnpost.lab.model import ModelRequest, Say, ScriptedStep, Tool

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.tools]

BRIEFING = "turnpost: you are the agent {name}"


def load(*tools: str) -> Tool:
    """The tools' schemas are deferred: the model loads them before the first call."""
    return Tool("ToolSearch", {"query": "select:" + ",".join(f"mcp__turnpost__{tool}" for tool in tools)})


def use(tool: str, **given: Any) -> Tool:
    """A call of one of turnpost's tools."""
    return Tool(f"mcp__turnpost__{tool}", given)


def results(request: ModelRequest) -> list[dict[str, Any]]:
    """The documents among the tool results of a conversation, in order. Claude Code may add a note of its own to one."""
    read = json.JSONDecoder().raw_decode
    return [read(said)[0] for role, said in request.texts if role == "tool" and said.startswith("{")]


def wait_for_last(**given: Any) -> ScriptedStep:
    """Wait for the message that was sent last."""
    return lambda request: use("wait", target=results(request)[-1]["id"], **given)


def asked(request: ModelRequest) -> str:
    """The id of the newest message in a conversation."""
    text = "\n".join(said for role, said in request.texts if role != "tool")
    return text.rpartition('<message about="')[2].partition('"')[0]


def documents(post: Post, name: str, count: int) -> list[dict[str, Any]]:
    """The first `count` documents that an agent got from its tools, waited for."""

    def look() -> list[dict[str, Any]]:
        found = [results(request) for request in post.requests(name)]
        return max(found, key=len, default=[])[:count]

    return until(
        lambda: found if len(found := look()) == count else [], f"{name} has {count} answers of tools"
    )


def test_a_parent_asks_its_child_through_the_tools_and_each_knows_who_speaks(post: Post) -> None:
    post.launch_idle("alpha")
    post.launch_idle("beta", options=("--parent", "alpha"))
    post.model.script(
        "beta",
        [load("reply"), lambda request: use("reply", id=asked(request), body="seven"), Say("answered")],
    )
    post.model.script(
        "alpha",
        [
            load("send", "wait"),
            use("send", to="beta", body="how many tests?", kind="question"),
            wait_for_last(timeout=30),
            use("send", to="beta", body="x" * 8001),
            use("send", to="alpha", body="to me"),
            Say("done"),
        ],
    )
    post.send("alpha", "ask beta")
    sent, waited, too_long, myself = documents(post, "alpha", 4)

    assert [one["name"] for one in sent["recipients"]] == ["beta"]
    assert (waited["done"], waited["state"], waited["for"]) == (True, "read", "read")
    error = too_long["error"]
    assert (error["rule"], error["bytes"], error["limit"]) == ("too-long", 8001, 8000)
    assert myself["error"]["rule"] == "self"

    post.assert_read_once("beta", sent["id"])
    message = mailbox.load_message(post.root, sent["id"])
    assert message is not None
    assert (message["sender"]["name"], message["kind"]) == ("alpha", "question")
    carried = next(request for request in post.requests("beta") if request.has(mark(sent["id"])))
    assert bodies(carried, [sent["id"]]) == ["how many tests?"]
    assert carried.has(f'{mark(sent["id"])} from="alpha"')

    (answer,) = documents(post, "beta", 1)
    post.assert_read_once("alpha", answer["id"])
    assert post.requests("alpha")[-1].has(f'{mark(answer["id"])} from="beta"')


def test_a_resumed_agent_has_its_tools_and_is_told_again_who_it_is(post: Post) -> None:
    post.launch_idle("alpha")
    first = post.requests("alpha")[0]
    assert first.count(BRIEFING.format(name="alpha")) == 1
    assert first.has("You may write to `person`")
    post.end_session("alpha")
    post.model.script("alpha", [load("send"), use("send", to="person", body="I am back"), Say("done")])
    post.send("alpha", "go on")
    (sent,) = documents(post, "alpha", 1)
    assert [one["boundary"] for one in sent["recipients"]] == ["inbox"]
    post.wait_idle("alpha")
    assert post.requests("alpha")[-1].count(BRIEFING.format(name="alpha")) == 1, (
        "Claude Code shows the last one only"
    )
    assert [one["body"] for one in post.run("inbox")["messages"]] == ["I am back"]


def test_a_session_started_by_hand_uses_the_tools_that_install_has_registered(post: Post) -> None:
    """Approved, or a background session would stand still and ask; permitted only because that was asked for."""
    allowed = post.project("allowed")
    post.run("install", "--project", str(allowed), "--allow-tools")
    steps: list[ScriptedStep] = [
        load("send"),
        use("send", to="person", body="hello from a stranger's session"),
        Say("done"),
    ]
    for name, folder in (("gamma", allowed), ("delta", post.shop)):
        post.model.script(name, steps)
        post.world.claude("--bg", "--name", name, cwd=folder, input=f"[[lab:{name}]] begin").check()

    (sent,) = documents(post, "gamma", 1)
    message = mailbox.load_message(post.root, sent["id"])
    assert message is not None
    assert message["sender"]["name"] == "gamma"
    until(lambda: "delta" in [one.name for one in agents.agents(post.root).agents], "delta is an agent")
    post.wait_state("delta", "blocked")
