"""Messages to an agent whose session has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.real.kit import Post, until
from turnpost.core.render import mark

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_a_stopped_agent_is_resumed_as_itself_long_after_and_a_moment_after(post: Post) -> None:
    """Also when its process takes a second to end, in which a resume would make a copy."""
    post.add_hook("SessionEnd", "sleep 1.2", timeout=10)
    starts = post.record_starts()
    session_id = post.launch_idle("alpha")
    post.end_session("alpha")
    sent = [post.send("alpha", "long after")]
    assert sent[0].boundary == "resume"
    post.assert_read_once("alpha", sent[0].id)
    for number in range(3):
        post.end_session("alpha", wait=False)
        sent.append(post.send("alpha", f"a moment after {number}"))
        post.assert_read_once("alpha", *[one.id for one in sent])
    view = post.agent("alpha")
    assert view.session_id == session_id
    assert view.sessions == (session_id,)
    assert starts() == [("startup", session_id)] + [("resume", session_id)] * 4
    assert {one.session_id for one in post.requests("alpha")} == {session_id}


def test_many_commands_and_coordinators_at_once_make_one_resume(post: Post) -> None:
    starts = post.record_starts()
    session_id = post.launch_idle("alpha")
    post.run("coordinator", "stop")
    post.end_session("alpha")
    rivals = [post.world.start_turnpost("coordinator", "run", "--json") for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(lambda n: post.send("alpha", f"at once {n}"), range(4)))
    receipts = post.wait_read("alpha", *[one.id for one in sent])
    post.wait_idle("alpha")
    for message in sent:
        post.assert_read_once("alpha", message.id)
    assert starts() == [("startup", session_id), ("resume", session_id)]
    assert {one.boundary for one in receipts} <= {"resume", "stop-block"}
    until(lambda: sum(one.poll() is None for one in rivals) <= 1, "all coordinators but one have ended")
    assert all(one.poll() is None or one.poll().returncode == 3 for one in rivals)  # type: ignore[union-attr]


def faster(post: Post, pause: float) -> None:
    """Let a person resume each session just before the coordinator does, so that the coordinator's becomes a copy."""
    real = post.world.claude_path
    script = post.world.root / "faster"
    script.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "--bg --resume" ] && {{ echo hello | {real} "$@"; sleep {pause}; }} >/dev/null 2>&1\n'
        f'exec {real} "$@"\n'
    )
    script.chmod(0o755)
    post.world.claude_path = script


@pytest.mark.parametrize("pause", [0.0, 2.0])
def test_a_copy_that_a_resume_makes_after_all_is_not_left_beside_the_agent(post: Post, pause: float) -> None:
    faster(post, pause)
    post.launch_idle("alpha")
    post.end_session("alpha")
    message = post.send("alpha", "to one of the two")
    post.assert_read_once("alpha", message.id)
    until(lambda: sum(bool(one.get("pid")) for one in post.world.agents()) == 1, "one session lives on")
    last = {one.session_id: one for one in post.requests("alpha")}
    assert sum(one.has(mark(message.id)) for one in last.values()) == 1
    assert [one["name"] for one in post.run("agents") if one["state"] != "stopped"] == ["alpha"]
    again = post.send("alpha", "and another")
    post.assert_read_once("alpha", again.id)
