"""Missions on the real Claude Code: their end resumes nobody, and what a resume brings back of an agent."""

from __future__ import annotations

import json

import pytest

from tests.real.kit import Post, bash, until
from turnpost.core.render import mark

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_an_abort_reaches_the_live_agent_only_and_nothing_resumes_the_stopped_one(post: Post) -> None:
    post.run("mission", "start", "trip")
    post.launch_idle("live", options=["--mission", "trip"])
    post.launch_idle("gone", options=["--mission", "trip"])
    post.end_session("gone")
    requests = len(post.requests("gone"))
    ended = post.run("mission", "abort", "trip", "-", input="the road is closed")
    assert ended["told"] == ["live"]
    told = until(lambda: [r for r in post.requests("live") if r.has("the road is closed")], "live is told")
    assert told[0].has(mark("msg-")[:-1])
    error = post.refused("send", "gone", "come back")
    assert (error["rule"], error["mission"], error["state"]) == ("mission-over", "trip", "aborted")
    post.wait_idle("live")
    assert post.state("gone") == "stopped"
    assert len(post.requests("gone")) == requests


def test_a_resumed_worktree_agent_works_in_its_worktree_with_its_instructions(post: Post) -> None:
    post.launch_idle("alpha", options=["--worktree", "--instructions", "Answer in rhymes only."])
    assert "Answer in rhymes only." in json.dumps(post.requests("alpha")[0].body)
    for turn in range(2):
        post.end_session("alpha")
        before = len(post.requests("alpha"))
        post.model.script("alpha", [bash("git rev-parse --show-toplevel > where")])
        sent = post.send("alpha", f"again {turn}")
        post.assert_read_once("alpha", sent.id)
        assert all("Answer in rhymes only." in json.dumps(r.body) for r in post.requests("alpha")[before:])
        where = post.shop / ".claude" / "worktrees" / "alpha" / "where"
        assert where.read_text().strip() == str(where.parent)
        where.unlink()
