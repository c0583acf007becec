"""Forks, and agents in git worktrees: whose name a session has, and where it works after a resume."""

from __future__ import annotations

import pytest

from tests.real.kit import SETTINGS, Post, bash, until
from turnpost.core.render import mark
from turnpost.lab.detach import run
from turnpost.lab.world import write_json

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_a_fork_takes_the_name_of_a_stopped_session_and_not_of_a_live_one(post: Post) -> None:
    gone, live = post.launch_idle("gone"), post.launch_idle("live")
    post.end_session("gone")
    for session_id in (gone, live):
        done = post.world.claude(
            "--bg", "--resume", session_id, "--fork-session", input="go on", cwd=post.shop
        )
        assert done.returncode == 0, done
    until(lambda: len(post.requests("gone")) + len(post.requests("live")) == 4, "both forks work")

    (fork,) = {one.session_id for one in post.requests("gone")} - {gone}
    until(lambda: post.agent("gone").session_id == fork, "the fork has the name")
    post.wait_idle("gone")
    assert post.agent("gone").sessions == (gone, fork)
    assert post.agent("live").session_id == live
    (other,) = [one for one in post.run("agents") if one["name"] not in ("gone", "live")]
    assert other["session_id"] in {one.session_id for one in post.requests("live")} - {live}

    first, second = post.send("gone", "to the fork"), post.send("live", "to the original")
    post.assert_read_once("gone", first.id)
    post.assert_read_once("live", second.id)
    with_it = {one.session_id for one in post.model.requests() if one.has(mark(first.id)) and not one.side}
    assert with_it == {fork}
    with_it = {one.session_id for one in post.model.requests() if one.has(mark(second.id)) and not one.side}
    assert with_it == {live}
    # Stopped again, the agent is resumed as the fork.
    post.end_session("gone")
    third = post.send("gone", "to the fork again")
    post.assert_read_once("gone", first.id, third.id)
    assert post.agent("gone").session_id == fork


def test_agents_in_worktrees_are_resumed_and_work_there_again(post: Post) -> None:
    """One that Claude Code made the worktree for, one that was started in a linked worktree; each is resumed twice."""
    linked = post.world.projects / "linked"
    git = ("git", "worktree", "add", "--quiet", "-b", "side", str(linked))
    run(git, cwd=post.shop, env=post.world.env(), timeout=30.0).check()
    post.world.trust(linked)
    write_json(linked / ".claude" / "settings.json", SETTINGS)  # git does not track the project's
    session_ids = {
        "made": post.launch_idle("made", options=["--worktree"]),
        "linked": post.launch_idle("linked", cwd=linked),
    }
    for turn in range(2):
        for name in session_ids:
            post.end_session(name)
        sent = {}
        for name in session_ids:
            post.model.script(name, [bash("git rev-parse --show-toplevel > where")])
            sent[name] = post.send(name, f"again {turn}")
        for name, message in sent.items():
            post.assert_read_once(name, message.id)
    assert {name: post.agent(name).session_id for name in session_ids} == session_ids
    made = post.shop / ".claude" / "worktrees" / "made"
    assert (made / "where").read_text().strip() == str(made)
    assert (linked / "where").read_text().strip() == str(linked)
    assert not (post.shop / "where").exists()
