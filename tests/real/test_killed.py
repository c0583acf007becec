"""Sessions and coordinators that are killed with -9."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, Post, Sent, until
from turnpost.core import files, home
from turnpost.core.render import mark

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.timeout(240)
def test_a_killed_background_session_reads_each_message_once(post: Post) -> None:
    """Killed while idle, while working, the moment a message was claimed, and after it entered the conversation."""
    session_ids = {name: post.launch_idle(name) for name in ("idle", "claimed", "entered")}
    answers = {name: post.gate() for name in ("claimed", "entered", "working")}
    session_ids["working"] = post.launch("working", answers["working"])
    answers["working"].wait_reached()

    post.model.script("entered", [answers["entered"]])
    sent = {"entered": post.send("entered", "to the entered one")}
    post.wait_receipt("entered", sent["entered"].id, "delivered")
    sent["working"] = post.send("working", "to the working one")
    assert sent["working"].boundary == "stop-block"

    post.model.script("claimed", [answers["claimed"]])
    sending = post.world.start_turnpost("send", "claimed", "to the claimed one", "--json")
    claimed = home.agent(post.root, post.key("claimed")) + "/claimed"
    until(lambda: files.names(claimed), "it was claimed")
    killed = {"claimed": post.kill_session("claimed")}
    killed |= {name: post.kill_session(name) for name in ("entered", "working", "idle")}
    for (
        answer
    ) in answers.values():  # a session that was killed before it asked leaves its answer to the next one
        answer.open()
    sent["idle"] = post.send("idle", "to the idle one")
    sent["claimed"] = Sent(json.loads(sending.wait(PATIENCE).check().stdout)["id"], ())

    for name, message in sent.items():
        post.assert_read_once(name, message.id, timeout=90.0)
    assert {name: post.agent(name).session_id for name in session_ids} == session_ids
    assert all(post.pid(name) != pid for name, pid in killed.items())
    until(lambda: len(post.waiters()) == 4, "each has one waiter")


@pytest.mark.timeout(240)
def test_a_session_killed_in_the_request_that_carries_a_message_reads_it_once(post: Post) -> None:
    """At a turn's end and in the middle of one: claimed, in the conversation, and never answered."""
    begins, ends, goes_on, go = post.gate(), post.gate(), post.gate(), post.world.root / "go"
    session_ids = {"block": post.launch("block", begins, ends)}
    session_ids["next"] = post.launch_working(
        "next", goes_on, command=f"until [ -e {go} ]; do sleep 0.1; done"
    )
    begins.wait_reached()
    sent = {"block": post.send("block", "at the turn's end"), "next": post.send("next", "now", "--urgent")}
    begins.open()
    go.touch()
    killed: dict[str, int] = {}
    for name, gate in (("block", ends), ("next", goes_on)):
        gate.wait_reached()
        killed[name] = post.kill_session(name)
        gate.open()
        assert post.requests(name)[-1].count(mark(sent[name].id)) == 1

    for name, message in sent.items():
        post.assert_read_once(name, message.id, timeout=90.0)
        assert post.agent(name).session_id == session_ids[name]
        assert post.pid(name) != killed[name]


def test_the_waiter_of_a_killed_interactive_session_holds_nothing(post: Post) -> None:
    with Terminal(post.world, post.shop) as terminal:
        terminal.ready(PATIENCE).submit("[[lab:alpha]] begin")
        (first,) = until(lambda: post.run("agents"), "the session is an agent")
        post.run("rename", first["name"], "alpha")
        until(lambda: post.requests("alpha"), "it works")
        post.wait_idle("alpha")
        read = post.send("alpha", "in the terminal")
        post.assert_read_once("alpha", read.id)
        until(lambda: len(post.waiters()) == 1, "one waiter is left")
        orphan = post.waiters()
        post.kill_session("alpha")
        message = post.send("alpha", "after the kill")
    until(lambda: not set(orphan) & set(post.waiters()), "its waiter is gone", timeout=15.0)
    post.assert_read_once("alpha", read.id, message.id)
    assert post.agent("alpha").session_id == first["session_id"]


def slow_claude(post: Post) -> tuple[Path, Path]:
    """Let each resume stop before or after it calls Claude Code, while a file of that name is there; the two files."""
    real = post.world.claude_path
    before, after = post.world.root / "before", post.world.root / "after"
    pause = '{ touch "%s.reached"; while [ -e "%s" ]; do sleep 0.05; done; }'
    script = post.world.root / "slow-claude"
    script.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "--bg --resume" ] || exec {real} "$@"\n'
        f"[ -e {before} ] && {pause % (before, before)}\n"
        f'{real} "$@"\ncode=$?\n'
        f"[ -e {after} ] && {pause % (after, after)}\nexit $code\n"
    )
    script.chmod(0o755)
    post.world.claude_path = script
    return before, after


@pytest.mark.timeout(240)
def test_a_coordinator_killed_in_the_middle_of_a_resume_is_followed_by_one_that_repeats_nothing(
    post: Post,
) -> None:
    before, after = slow_claude(post)
    starts = post.record_starts()
    session_id = post.launch_idle("alpha")
    sent: list[str] = []
    for moment, orphan_goes_on in ((after, True), (before, True), (before, False)):
        post.end_session("alpha")
        moment.touch()
        sent.append(post.send("alpha", f"killed {moment.name} {orphan_goes_on}").id)
        until(Path(f"{moment}.reached").exists, "the resume is under way")
        os.kill(post.coordinator_pid(), signal.SIGKILL)
        if not orphan_goes_on:
            for one in post.leftovers("slow-claude --bg --resume"):
                os.kill(one.pid, signal.SIGKILL)
        post.run("coordinator", "start")
        time.sleep(1.0)  # the new one has looked at the agent, and left it to the resume under way
        moment.unlink()
        Path(f"{moment}.reached").unlink()
        post.assert_read_once("alpha", *sent, timeout=60.0)
        assert starts()[1:] == [("resume", session_id)] * len(sent)
    living = [one["sessionId"] for one in post.world.agents() if one.get("pid")]
    assert living == [session_id]
