"""Agents that talk to each other and to the person: what arrives, what is refused, and where it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, SETTINGS, Post, bash, bodies, until
from tests.real.test_subagents import ALLOWED, agent_call, subagent
from tests.real.test_tools import asked, documents, load, results, use
from turnpost.core import clock
from turnpost.core.render import mark
from turnpost.lab.model import ModelRequest, Say, ScriptedStep, Tool

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.tools]

SECRET = "AKIA" + "QYLPMN5HHHFPZAM2"
"""Looks like a key of a well-known service; made up, and in two parts so that no scanner takes this file for a leak."""


def sent_between_agents(post: Post) -> list[dict[str, Any]]:
    return [line for line in post.log("send") if line["from"] != "person" and line["to"] != "person"]


def spool(post: Post) -> list[Path]:
    """Every file that stands for a message: what a refused one must not add to."""
    root = Path(post.root)
    agents = [path for folder in ("queue", "claimed") for path in root.glob(f"agents/*/{folder}/*")]
    return sorted([*root.glob("messages/*/*"), *root.glob("outbox/*"), *agents])


def test_a_parent_and_two_children_come_to_a_result_in_six_messages(post: Post) -> None:
    said: list[str] = []

    def decide(request: ModelRequest) -> Tool | Say:
        everything = json.dumps(request.body)
        if request.has("revised: 41"):
            said.append("the sum is 43")
        elif request.has("the figure is 40") and "count once more" not in everything:
            return use("send", to="kid1", body="count once more", kind="question")
        else:
            said.append("I wait")
        return Say(said[-1])

    def answers(body: str) -> list[ScriptedStep]:
        return [lambda request: use("reply", id=asked(request), body=body), Say("answered")]

    post.launch_idle("lead")
    for name, given in (("kid1", ["the figure is 40", "revised: 41"]), ("kid2", ["the figure is 2"])):
        post.launch_idle(name, options=("--parent", "lead", "--no-report"))
        post.model.script(name, [load("reply"), *(step for body in given for step in answers(body))])
    ask = [use("send", to=kid, body="what is your figure?", kind="question") for kid in ("kid1", "kid2")]
    post.model.script("lead", [load("send"), *ask, *[decide] * 8])
    post.send("lead", "collect the figures")

    until(lambda: "the sum is 43" in said, "lead has its result")
    for name in ("lead", "kid1", "kid2"):
        post.wait_idle(name)
    assert said[-1] == "the sum is 43"
    lines = sent_between_agents(post)
    assert len(lines) == 6
    for line in lines:
        (receipt,) = post.wait_read(line["to"], line["message"])
        # Nothing was decided without it: at most one request was on its way already.
        queued = clock.parse(receipt.queued_at or "")
        carried = next(one for one in post.requests(line["to"]) if one.has(mark(line["message"])))
        assert queued is not None
        assert len([one for one in post.requests(line["to"]) if queued < one.wall < carried.wall]) <= 1
    for name in ("lead", "kid1", "kid2"):
        counts = [
            post.requests(name)[-1].count(mark(line["message"])) for line in lines if line["to"] == name
        ]
        assert set(counts) == {1}
        assert post.agent(name).waiting == 0


def test_a_question_stays_pinned_over_a_restart_and_its_answer_wakes_the_stopped_asker(post: Post) -> None:
    session_id = post.launch_idle("alpha")
    question = use("send", to="person", body="Which colour?", kind="question", options=["red", "blue"])
    post.model.script(
        "alpha", [load("send"), question, use("send", to="person", body="a note"), Say("asked")]
    )
    post.send("alpha", "ask me")
    first, _note = documents(post, "alpha", 2)
    post.wait_idle("alpha")
    post.end_session("alpha")
    post.run("coordinator", "stop")

    assert [one["pinned"] for one in post.run("inbox")["messages"]] == [True, False]
    again = post.run("inbox")["messages"]
    assert [(one["id"], one["pinned"], one["options"]) for one in again] == [
        (first["id"], True, ["red", "blue"])
    ]
    post.run("coordinator", "start")
    assert [one["id"] for one in post.run("inbox")["messages"]] == [first["id"]]

    answer = post.run("reply", first["id"], "2")
    assert answer["thread"] == first["thread"]
    (receipt,) = post.assert_read_once("alpha", answer["id"])
    assert receipt.boundary in ("resume", "rewake")
    assert post.agent("alpha").session_id == session_id
    request = next(one for one in post.requests("alpha") if one.has(mark(answer["id"])))
    assert bodies(request, [answer["id"]]) == ["blue"]
    assert request.has(f'thread="{first["thread"]}"')
    assert post.run("inbox")["messages"] == []
    assert post.run("show", first["id"])["answers"] == [answer["id"]]


def test_a_ring_of_three_that_answer_everything_stops_at_the_limit(post: Post) -> None:
    post.run("mission", "start", "ring")
    names = ["a1", "b2", "c3"]
    for name in names:
        post.launch_idle(name, options=("--mission", "ring"))
    for name, to in zip(names, [*names[1:], names[0]], strict=True):

        def on(request: ModelRequest, to: str = to) -> Tool:
            return use("send", to=to, body="and you?", kind="question", reply_to=asked(request))

        turn: list[ScriptedStep] = [on, Say("passed on")]
        post.model.script(name, [load("send"), *turn * 6])
    post.send("a1", "begin")

    def refusals() -> list[dict[str, Any]]:
        last = [post.requests(name)[-1] for name in names]
        return [one["error"] for request in last for one in results(request) if "error" in one]

    (error,) = until(refusals, "somebody is refused")
    assert (error["rule"], error["counted"], error["limit"]) == ("loop", 9, 8)
    for name in names:
        post.wait_idle(name)
    assert len(sent_between_agents(post)) == 8
    (told,) = post.run("inbox")["messages"]
    assert told["kind"] == "alert"
    assert "'loop'" in told["body"]


def test_a_secret_does_not_reach_the_recipients_request(post: Post) -> None:
    post.launch_idle("alpha")
    answer = post.run("send", "alpha", "-", input=f"log in with aws_key={SECRET} please")
    assert answer["redacted"] == 1
    post.assert_read_once("alpha", answer["id"])
    assert post.requests("alpha")[-1].has("log in with")
    assert not any(SECRET in json.dumps(request.body) for request in post.model.requests())
    assert post.run("show", answer["id"])["redacted"] == 1
    spooled = [
        path for path in Path(post.root).rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert spooled == []


def test_what_an_agent_may_not_send_is_refused_by_name_and_numbers(post: Post) -> None:
    post.launch_idle("lead")
    for name, parent in (("kid1", "lead"), ("kid2", "lead"), ("grandkid", "kid2")):
        post.launch_idle(name, options=("--parent", parent, "--no-report"))
    tries = [
        use("send", to="lead", body=" \n"),
        use("send", to="lead", body="é" * 4000 + "x"),
        use("send", to="kid1", body="to me"),
        use("send", to="kid2", body="to a sibling"),
        use("send", to="grandkid", body="to another's child"),
        use("cancel", target="grandkid"),
    ]
    post.model.script("kid1", [load("send", "cancel"), *tries, Say("done")])
    sent = post.send("kid1", "try")
    errors = [one["error"] for one in documents(post, "kid1", len(tries))]
    post.wait_idle("kid1")
    assert [one["rule"] for one in errors] == ["empty", "too-long", "self", *["not-allowed"] * 3]
    assert errors[0]["bytes"] == 0
    assert (errors[1]["bytes"], errors[1]["limit"]) == (8001, 8000)
    assert [one["recipient"] for one in errors[3:5]] == ["kid2", "grandkid"]
    assert [path.name for path in spool(post)] == [sent.id], "only the person's message, which was read"
    assert post.state("grandkid") == "idle"
    assert sent_between_agents(post) == []


def test_an_agent_in_plan_mode_does_not_send_even_when_the_person_permits_the_call(post: Post) -> None:
    """Claude Code asks about every call in plan mode that changes something; the rule is ours all the same."""
    post.model.script("alpha", [load("send"), use("send", to="person", body="hello"), Say("the-answer")])
    with Terminal(post.world, post.shop, "--name", "alpha", "--permission-mode", "plan") as terminal:
        terminal.ready(PATIENCE)
        terminal.submit("[[lab:alpha]] begin")
        terminal.answer()
        terminal.wait_screen("the-answer", PATIENCE)
        (refused,) = documents(post, "alpha", 1)
    assert (refused["error"]["rule"], refused["error"]["mode"]) == ("read-only", "plan")
    assert spool(post) == []


def test_full_mailboxes_refuse_the_next_message_with_their_limit(post: Post) -> None:
    """64 wait for an agent, 8 for a subagent; a body to that may have 4,096 bytes."""
    folder = post.project("works", settings=ALLOWED)
    go, begun = post.world.root / "go", post.world.root / "begun"
    post.model.script(
        "sub", [bash(f"touch {begun}; until [ -e {go} ]; do sleep 0.1; done"), Say("the report")]
    )
    post.launch("alpha", agent_call("sub"), Say("over"), cwd=folder)
    until(begun.exists, "the subagent runs its command")
    name = subagent(post, "alpha").name
    long = post.refused("send", name, "x" * 4097)
    assert (long["rule"], long["bytes"], long["limit"]) == ("too-long", 4097, 4096)
    to_sub = [post.send(name, f"note {number}").id for number in range(8)]
    before = spool(post)
    ninth = post.refused("send", name, "one more")
    assert (ninth["rule"], ninth["waiting"], ninth["limit"]) == ("mailbox-full", 8, 8)
    assert spool(post) == before
    go.touch()
    post.model.wait_for(
        lambda one: one.name == "sub" and all(one.has(mark(each)) for each in to_sub), PATIENCE
    )

    post.launch_idle("beta")
    post.end_session("beta")
    post.pause_coordinator()
    post.send_many("beta", [f"number {number}" for number in range(64)])
    before = spool(post)
    last = post.refused("send", "beta", "one more")
    assert (last["rule"], last["waiting"], last["limit"]) == ("mailbox-full", 64, 64)
    assert spool(post) == before


def test_a_correction_behind_a_subagents_permission_prompt_waits_and_leaves_it_alone(post: Post) -> None:
    folder = post.project("asks", settings={"permissions": {**SETTINGS["permissions"], "allow": ["Agent"]}})
    dialog = "Do you want to proceed?"
    with Terminal(post.world, folder, "--name", "alpha") as terminal:
        terminal.ready(PATIENCE)
        post.model.script("sub", [bash("touch made.txt"), Say("THE WHOLE REPORT")])
        post.model.script("alpha", [agent_call("sub"), Say("the-answer")])
        terminal.submit("[[lab:alpha]] begin")
        terminal.wait_screen(dialog, PATIENCE)
        sent = post.send(subagent(post, "alpha").name, "make the other one")
        until(lambda: post.log("coordinator-start"), "a coordinator runs")
        shown = terminal.screen().partition("Bash command")[2].partition("Esc to cancel")[0]
        with pytest.raises(AssertionError):
            until(
                lambda: (
                    post.run("show", sent.id)["receipts"][sent.recipients[0]["name"]]["state"] != "queued"
                ),
                "",
                3.0,
            )
        assert terminal.screen().partition("Bash command")[2].partition("Esc to cancel")[0] == shown
        assert not (folder / "made.txt").exists()
        terminal.answer(dialog)
        until(lambda: post.requests("alpha")[-1].has("THE WHOLE REPORT"), "its report is there")
    assert (folder / "made.txt").exists()
    assert [one.has(mark(sent.id)) for one in post.requests("sub")] == [False, True]
    assert not any(one.has(mark(sent.id)) for one in post.requests("alpha"))
