"""What a message costs its reader's context: at most 1.1 times its body and 300 bytes, with all that comes with it."""

from __future__ import annotations

import pytest

from tests.real import costs
from tests.real.kit import Post
from turnpost.lab.fetch import NEWEST

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    # The words around ours are the newest version's; one turn at each boundary takes a while.
    pytest.mark.parametrize("claude_version", [NEWEST], scope="session"),
]

BOUNDARIES = {"stop-block", "rewake", "next-request", "prompt", "resume", "subagent-request", "subagent-stop"}


def over(cost: costs.Cost) -> bool:
    """What may cost more: a wake of a short message, for Claude Code's own 700 bytes that it is no input of the user's; and a
    short one that keeps a subagent going, whose long name stands there twice, and which is asked for its report."""
    notice = cost.boundary == "rewake" and cost.body < 4000
    return notice or (cost.boundary == "subagent-stop" and cost.body < 1000)


def test_a_message_adds_at_most_a_tenth_of_its_body_and_300_bytes_at_every_boundary(post: Post) -> None:
    found = list(costs.measure(post, sizes=(10, 8000), subagent_sizes=(10, 1000), resume_sizes=(10,)))
    assert {one.boundary for one in found} == BOUNDARIES
    assert {one.count for one in found} == {1, costs.BATCH[0]}
    assert [one for one in found if one.added > one.limit and not over(one)] == []
    # Our own words are within it at every boundary but that one, however short the message.
    ours = [one for one in found if one.boundary != "subagent-stop"]
    assert [one for one in ours if one.added - one.frame > one.limit] == []
    assert [one for one in found if one.added > 1.1 * one.body + 1000] == []
