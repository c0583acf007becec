"""Many and long messages: none is cut, none becomes a preview."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.real.kit import Post, bodies
from turnpost.core.render import mark
from turnpost.core.rules import CONTEXT_UNITS
from turnpost.lab.model import Say

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


def emoji(number: int) -> str:
    return f"{number}: " + "\U0001f9ea" * 2000


def long(number: int) -> str:
    return (f"{number}: " + "0123456789" * 4000)[:40_000]


def assert_whole_and_once(post: Post, name: str, sent: Mapping[str, str]) -> dict[str, str]:
    """Each message stands in the last request with its whole body, once; the boundaries at which they came.

    What is too long for context is left to the waiter. Where none begins in time it is the reason of a block, which the
    harness shows twice.
    """
    receipts = post.wait_read(name, *sent)
    post.wait_idle(name)
    assert [one.attempts for one in receipts] == [1] * len(sent)
    boundaries = {one: str(receipt.boundary) for one, receipt in zip(sent, receipts, strict=True)}
    last = post.present_requests(name)[-1]
    for one, body in sent.items():
        shown = 2 if boundaries[one] == "stop-block" and len(body) > CONTEXT_UNITS else 1
        counts = last.count(mark(one)), last.count(f">\n{body}\n</message>")
        assert counts == (shown, shown), boundaries[one]
    return boundaries


def test_long_bodies_arrive_whole_at_every_boundary(post: Post) -> None:
    post.configure(body_bytes=40_000)
    post.launch_idle("alpha")
    idle: dict[str, str] = {}
    for body in (emoji(0), long(1)):
        idle[post.send("alpha", body).id] = body
        assert set(assert_whole_and_once(post, "alpha", idle).values()) == {"rewake"}

    go = post.world.root / "go"
    post.launch_working("beta", Say("done"), command=f"until [ -e {go} ]; do sleep 0.1; done")
    working = {post.send("beta", body).id: body for body in (emoji(2), long(3))}
    urgent = {post.send("beta", body, "--urgent").id: body for body in (emoji(4), long(5))}
    go.touch()
    boundaries = assert_whole_and_once(post, "beta", working | urgent)
    # There is no room for 40,000 bytes in what is added to a request: the turn ends, and the waiter brings it at once.
    assert list(boundaries.values())[:3] == ["stop-block", "rewake", "next-request"]

    post.end_session("alpha")
    stopped = {post.send("alpha", body).id: body for body in (long(6), emoji(7))}
    assert_whole_and_once(post, "alpha", idle | stopped)
