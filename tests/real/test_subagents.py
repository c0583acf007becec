"""In-process subagents, reports of children, and a last answer that waits for them."""

from __future__ import annotations

import time

import pytest

from tests.real.kit import SETTINGS, Post, bash, until
from turnpost.actions.results import SubagentView
from turnpost.core.render import mark
from turnpost.lab.model import ModelRequest, Say, Tool

pytestmark = [pytest.mark.real, pytest.mark.slow]

ALLOWED = {"permissions": {**SETTINGS["permissions"], "allow": ["Bash", "Agent"]}}


def agent_call(name: str, *, background: bool = False) -> Tool:
    task = {"description": "work", "prompt": f"[[lab:{name}]] work", "subagent_type": "general-purpose"}
    return Tool("Agent", {**task, "run_in_background": background})


def subagent(post: Post, agent: str, nth: int = 0) -> SubagentView:
    """A running subagent of an agent, in the order they started."""

    def look() -> list[SubagentView]:
        return sorted(post.agent(agent).subagents, key=lambda one: one.since or "")

    return until(lambda: look() if len(look()) > nth else [], f"{agent} runs subagent {nth + 1}")[nth]


def test_a_correction_is_in_the_subagents_next_request_only_and_its_report_stays_whole(post: Post) -> None:
    folder = post.project("works", settings=ALLOWED)
    go, begun = post.world.root / "go", post.world.root / "begun"
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    post.model.script("sub", [bash(f"touch {begun}; {wait}"), Say("part one"), Say("THE WHOLE REPORT")])
    post.model.script("other", [bash(wait), Say("other's report")])
    post.launch("alpha", agent_call("sub"), agent_call("other"), Say("waiting"), cwd=folder)
    until(begun.exists, "the subagent runs its command")
    first, second = subagent(post, "alpha"), subagent(post, "alpha", 1)
    assert first.about == "general-purpose"

    sent = post.send(first.name, "use the other file")
    assert sent.boundary == "next-request"
    go.touch()
    receipt = post.wait_receipt(first.name, sent.id, "read")
    assert receipt.boundary == "next-request"
    carried = [one for one in post.model.requests() if not one.side and one.has(mark(sent.id))]
    assert {one.name for one in carried} == {"sub"}
    assert carried[0].count(mark(sent.id)) == 1
    assert post.requests("sub")[1].has(mark(sent.id))
    post.model.wait_for(lambda request: request.name == "alpha" and request.has("part one"), 60)
    until(lambda: not post.agent("alpha").subagents, "both have ended")
    late = post.refused("send", second.name, "too late")
    assert late["rule"] == "ended"
    post.wait_idle("alpha")
    assert not any(one.has(mark(sent.id)) for one in post.requests("alpha"))


def test_a_subagents_requests_never_hold_its_agents_mail(post: Post) -> None:
    """The subagent passes each of its own boundaries while mail waits for its agent, which is in the middle of a turn."""
    folder = post.project("works", settings=ALLOWED)
    begun, sub_goes_on, goes_on = (post.world.root / name for name in ("begun", "sub-goes-on", "goes-on"))
    wait = "until [ -e {} ]; do sleep 0.1; done"
    post.model.script(
        "sub", [bash(f"touch {begun}; {wait.format(sub_goes_on)}"), bash("true"), Say("part one")]
    )
    post.launch("alpha", agent_call("sub"), bash(wait.format(goes_on)), Say("done"), cwd=folder)
    until(begun.exists, "the subagent runs its command")
    until(lambda: len(post.requests("alpha")) == 2, "its agent works on")
    ordinary, urgent = post.send("alpha", "ordinary"), post.send("alpha", "urgent", "--urgent")
    sub_goes_on.touch()
    until(lambda: not post.agent("alpha").subagents, "the subagent has ended")
    assert [post.receipt("alpha", one.id).state for one in (ordinary, urgent)] == ["queued", "queued"]
    goes_on.touch()

    receipts = post.assert_read_once("alpha", urgent.id, ordinary.id)
    assert [one.boundary for one in receipts] == ["next-request", "stop-block"]
    assert [one.attempts for one in receipts] == [1, 1]
    # Nor has the mail kept the subagent from ending: its last words are its report.
    assert len(post.requests("sub")) == 3
    marks = [mark(ordinary.id), mark(urgent.id)]
    assert not any(request.has(one) for request in post.requests("sub") for one in marks)
    post.model.wait_for(lambda request: request.name == "alpha" and request.has("part one"), 60)


def test_what_comes_while_it_says_its_last_keeps_it_going_to_a_whole_report(post: Post) -> None:
    folder = post.project("works", settings=ALLOWED)
    gate = post.gate(Say("the draft"))
    post.model.script("sub", [gate, Say("THE WHOLE REPORT")])
    post.launch("alpha", agent_call("sub"), Say("waiting"), cwd=folder)
    gate.wait_reached()
    sent = post.send(subagent(post, "alpha").name, "also look at c.py")
    gate.open()
    post.model.wait_for(lambda request: request.name == "alpha" and request.has("THE WHOLE REPORT"), 60)
    assert not any(request.has("the draft") for request in post.requests("alpha"))
    assert post.requests("sub")[-1].has("end with your whole report")
    shown = post.run("show", sent.id)["receipts"]
    (receipt,) = shown.values()
    assert receipt["boundary"] == "subagent-stop"
    post.wait_idle("alpha")


def test_a_subagents_own_command_speaks_for_it_and_no_command_of_its_agents_does(post: Post) -> None:
    folder = post.project("works", settings=ALLOWED)
    (folder / "n.sh").write_text("turnpost send parent 'by a script'\n")
    begin, last = post.gate(bash("turnpost send parent found")), post.gate(Say("the report"))
    post.model.script("sub", [begin, bash("sh n.sh"), last])
    post.launch_idle("lead")
    own = [bash("turnpost send parent foundation"), bash("turnpost send parent found")]
    background = agent_call("sub", background=True)
    after = post.gate(own[0])
    post.launch("alpha", background, after, own[1], Say("waiting"), cwd=folder, options=("--parent", "lead"))
    after.wait_reached()
    begin.open()

    def sent(to: str) -> list[tuple[str, str]]:
        lines = [line for line in post.log("send") if line["to"] == to and line["kind"] == "note"]
        return [(line["from"].partition("/")[0], line["direction"]) for line in lines]

    until(lambda: len(sent("alpha")) == 2, "the subagent has sent both")
    last.wait_reached()
    after.open()
    until(lambda: len(sent("lead")) == 2, "its agent has sent its own")
    last.open()
    post.model.wait_for(lambda one: one.name == "alpha" and one.has("by a script\n</message>"), 60)
    until(lambda: not post.agent("alpha").subagents, "the subagent has ended")
    assert sent("alpha") == [("alpha", "subagent → parent")] * 2
    assert sent("lead") == [("alpha", "agent → parent")] * 2
    post.wait_idle("alpha")


def test_a_report_wakes_an_idle_parent_and_is_whole(post: Post) -> None:
    post.launch_idle("lead")
    said = "the result: " + "x" * 3000
    post.model.script("lead", [Say("noted")])
    post.launch("kid", Say(said), options=("--parent", "lead"))
    request = post.model.wait_for(lambda one: one.name == "lead" and one.has(said), 60)
    assert request.has('kind="report"')
    post.launch("quiet", Say("not told"), options=("--parent", "lead", "--no-report"))
    post.wait_idle("quiet")
    post.wait_idle("lead")
    assert not any(one.has("not told") for one in post.requests("lead"))


def test_the_last_answer_of_a_parent_that_holds_it_comes_after_its_childs_report(post: Post) -> None:
    go = post.world.root / "go"

    def last(request: ModelRequest) -> Say:
        return Say("with the result" if request.has("the figure is 42") else "without it")

    begin = post.gate(Say("early answer"))
    post.launch("lead", begin, last, last, options=("--hold-final",))
    begin.wait_reached()
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    post.launch("kid", bash(wait), Say("the figure is 42"), options=("--parent", "lead"))
    post.wait_state("kid", "working")
    begin.open()
    time.sleep(2.0)  # its turn would be over by now
    assert post.state("lead") == "working"
    go.touch()
    post.model.wait_for(lambda one: one.name == "lead" and one.has("the figure is 42"), 60)
    post.wait_idle("lead")
    assert post.requests("lead")[-1].has("the figure is 42")
    assert len(post.requests("lead")) == 2
    (sent,) = [line for line in post.log("send") if line["kind"] == "report"]
    assert post.receipt("lead", sent["message"]).boundary == "stop-block"
