"""Many and long messages: none is cut, none becomes a preview."""

from __future__ import annotations

import pytest

from tests.real.kit import Post, bodies

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.timeout(300)
def test_a_full_mailbox_of_long_messages_to_a_stopped_agent_is_read_in_order(post: Post) -> None:
    post.launch_idle("alpha")
    go_on = post.pause_coordinator()
    post.end_session("alpha")
    texts = [(f"{number}: " + f"line of message {number}\n" * 400)[:8000] for number in range(64)]
    sent = post.send_many("alpha", texts)
    assert len(sent) == 64
    refusal = post.refused("send", "alpha", "one more")
    assert (refusal["rule"], refusal["waiting"], refusal["limit"]) == ("mailbox-full", 64, 64)
    assert post.refused("send", "alpha", "-", input="x" * 8001)["rule"] == "too-long"
    go_on()
    receipts = post.assert_read_once("alpha", *sent, timeout=200.0)
    assert bodies(post.requests("alpha")[-1], sent) == texts
    assert {one.boundary for one in receipts} == {"resume", "stop-block", "rewake"}
    assert [one.attempts for one in receipts] == [1] * 64


def test_long_bodies_arrive_whole_at_every_boundary(post: Post) -> None:
    post.configure(body_bytes=40_000)
    emoji, long = "\U0001f9ea" * 2000, "0123456789" * 4000
    post.launch_idle("alpha")

    idle = [post.send("alpha", body).id for body in (emoji, long)]
    post.assert_read_once("alpha", idle[0])
    post.wait_read("alpha", idle[1])
    assert bodies(post.requests("alpha")[-1], idle) == [emoji, long]

    post.end_session("alpha")
    stopped = [post.send("alpha", body).id for body in (long, emoji)]
    receipts = post.wait_read("alpha", *stopped)
    post.wait_idle("alpha")
    last = post.requests("alpha")[-1]
    assert bodies(last, [*idle, *stopped]) == [emoji, long, long, emoji]
    assert [one.attempts for one in receipts] == [1, 1]
