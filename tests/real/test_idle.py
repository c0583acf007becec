"""Messages to an agent whose turn is over."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.real.kit import Post, bash
from turnpost.actions import sending
from turnpost.core import registry
from turnpost.core.render import mark
from turnpost.core.sender import Speaker
from turnpost.lab.model import Say

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_an_idle_agent_is_woken_once_by_one_message_and_once_by_many(post: Post) -> None:
    session_id = post.launch_idle("alpha")
    one = post.send("alpha", "wake up")
    assert one.boundary == "rewake"
    (receipt,) = post.assert_read_once("alpha", one.id)
    assert (receipt.boundary, receipt.session_id, receipt.attempts) == ("rewake", session_id, 1)
    assert [request.has(mark(one.id)) for request in post.requests("alpha")] == [False, True]

    # Eight senders at once; the turn that the first of them starts lasts until the last one has sent.
    gate = post.gate()
    post.model.script("alpha", [gate])
    with ThreadPoolExecutor(8) as pool:
        sent = list(
            pool.map(lambda n: [post.send("alpha", f"{n}.{m}").id for m in range(1 + (n < 2))], range(8))
        )
    gate.open()
    many = [message_id for ids in sent for message_id in ids]
    assert len(many) == 10
    for ids in sent:
        post.assert_read_once("alpha", *ids)
    receipts = post.wait_read("alpha", *many)
    assert {one.boundary for one in receipts} == {"rewake", "stop-block"}
    assert len(post.requests("alpha")) == 4  # the launch, the first wake, and two for the ten


def test_no_message_is_missed_around_the_end_of_a_turn(post: Post) -> None:
    """Whether it lands before the Stop hook looks, between that and the waiter's arming, or after it."""
    post.launch_idle("alpha")
    person = Speaker(registry.person(post.root))
    sent = []
    for step in range(10):
        gate = post.gate()
        post.model.script("alpha", [gate])
        sent.append(post.send("alpha", f"turn {step}").id)
        gate.wait_reached()
        gate.open()
        time.sleep(step * 0.03)
        late = sending.send(post.root, ["alpha"], f"at the end of turn {step}", speaker=person)
        sent.append(late.id)
        post.wait_idle("alpha")
    receipts = post.assert_read_once("alpha", *sent)
    assert {one.attempts for one in receipts} == {1}


def test_a_command_in_an_agents_shell_speaks_as_that_agent(post: Post) -> None:
    """Whatever its flags and variables say."""
    post.launch_idle("beta")
    beta = post.agent("beta")
    claims = (
        f"TURNPOST_AGENT={post.key('beta')} CLAUDE_CODE_SESSION_ID={beta.session_id} CLAUDE_PID={beta.pid} "
        "CLAUDECODE= USER=person"
    )
    bare = f"env -i PATH=$PATH HOME=$HOME TURNPOST_HOME=$TURNPOST_HOME TURNPOST_AGENT={post.key('beta')}"
    commands = [
        "turnpost send person,beta plain",
        f"env {claims} turnpost send person,beta variables",
        f"{bare} turnpost send person,beta bare",
        f"(cd / && {bare} sh -c 'turnpost send person,beta nested')",
        "! turnpost send person,beta flag --from person",
        f"! env {claims} turnpost hold beta",
        f"! {bare} turnpost send alpha self",
        "echo all-as-expected",
    ]
    post.launch(
        "alpha", bash(" && ".join(commands)), Say("done"), options=("--parent", "beta", "--no-report")
    )
    post.wait_idle("alpha")
    assert post.requests("alpha")[-1].has("all-as-expected"), post.requests("alpha")[-1].last_user_texts
    inbox = post.run("inbox")["messages"]
    assert [(one["sender"], one["body"]) for one in inbox] == [
        ("alpha", "plain"),
        ("alpha", "variables"),
        ("alpha", "bare"),
        ("alpha", "nested"),
    ]
    post.assert_read_once("beta", *[one["id"] for one in inbox])
    last = post.requests("beta")[-1]
    assert all(last.count(f'{mark(one["id"])} from="alpha" to="beta"') == 1 for one in inbox)
