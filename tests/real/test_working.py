"""Messages to an agent in the middle of a turn."""

from __future__ import annotations

import pytest

from tests.real.kit import PATIENCE, Post, bodies, until
from turnpost.core.render import mark
from turnpost.lab.model import ModelRequest, Say, Step

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_ordinary_messages_come_at_the_turns_end_and_an_urgent_one_with_the_next_request(post: Post) -> None:
    sent = post.world.root / "sent"
    post.launch_working("alpha", Say("done"), command=f"until [ -e {sent} ]; do sleep 0.1; done")
    first, second = post.send("alpha", "first"), post.send("alpha", "second")
    urgent = post.send("alpha", "at once", "--urgent")
    assert [first.boundary, second.boundary, urgent.boundary] == ["stop-block", "stop-block", "next-request"]
    assert [one.recipients[0]["waiting"] for one in (first, second, urgent)] == [1, 2, 3]
    assert len(post.requests("alpha")) == 1  # the command was not interrupted
    sent.touch()

    receipts = post.assert_read_once("alpha", urgent.id, first.id, second.id)
    assert [one.boundary for one in receipts] == ["next-request", "stop-block", "stop-block"]
    assert [one.attempts for one in receipts] == [1, 1, 1]
    _start, after_tool, after_stop = post.requests("alpha")
    assert after_tool.has(mark(urgent.id))
    assert not after_tool.has(mark(first.id))
    assert not after_tool.has(mark(second.id))
    assert bodies(after_stop, [first.id, second.id]) == ["first", "second"]


@pytest.mark.timeout(240)
def test_a_message_in_every_turn_passes_the_cap_on_blocks_and_leaves_one_waiter(post: Post) -> None:
    """Twenty, each sent while the one before is being read; then ten more, each to the idle agent."""
    sent: list[str] = []

    def send_another(_request: ModelRequest) -> Step:
        sent.append(post.send("alpha", f"number {len(sent)}").id)
        return Say("ok")

    post.launch("alpha", *[send_another] * 20)
    until(lambda: len(sent) == 20, "twenty were sent", 2 * PATIENCE)
    receipts = post.assert_read_once("alpha", *sent)
    assert {one.boundary for one in receipts} == {"stop-block", "rewake"}
    assert len(post.requests("alpha")) == 21

    for number in range(10):
        sent.append(post.send("alpha", f"idle {number}").id)
        post.wait_read("alpha", sent[-1])
    receipts = post.assert_read_once("alpha", *sent)
    assert [one.attempts for one in receipts] == [1] * 30
    until(lambda: len(post.waiters()) == 1, "one waiter is left")
