"""Sessions that a person has open in a terminal, in a project where turnpost is installed."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, Post, bash, until
from turnpost.actions import agents
from turnpost.core import store
from turnpost.core.render import mark
from turnpost.lab.model import Fail, ModelRequest, Say, Step, Tool

pytestmark = [pytest.mark.real, pytest.mark.slow]

TAG = "[[lab:alpha]]"
"""In a prompt or a body it tells the model's script which agent asks, also in a conversation that began anew."""
DIALOG = "Do you want to proceed?"
ASKS = Tool("Bash", {"command": "touch made.txt && echo ran", "description": "make a file"})


def test_a_session_is_known_by_its_folder_wakes_when_idle_and_a_prompt_takes_what_waits(post: Post) -> None:
    with Terminal(post.world, post.shop) as terminal:
        terminal.ready(PATIENCE)
        (view,) = until(lambda: agents.agents(post.root).agents, "the session registers")
        assert view.session_id is not None
        name = f"shop-{view.session_id[:8]}"
        assert (view.name, view.kind) == (name, "registered")
        post.wait_idle(name)

        # A conversation that has not begun is woken too, and the person's first prompt is a turn of its own.
        first = post.send(name, f"{TAG} first")
        assert first.boundary == "rewake"
        post.wait_read(name, first.id)
        post.wait_idle(name)
        post.model.script("alpha", [Say("second-answer")])
        terminal.submit("second")
        terminal.wait_screen("second-answer")
        post.wait_idle(name)

        post.run("rename", name, "alpha")
        deafen(post, "alpha")
        third = post.send("alpha", "third")
        assert third.boundary == "prompt"
        terminal.submit("fourth")
        post.assert_read_once("alpha", third.id)
        assert post.requests("alpha")[-1].count(mark(first.id)) == 1
        assert [len(post.requests("alpha")), post.receipt("alpha", third.id).boundary] == [3, "prompt"]


def test_clear_and_compact_keep_the_name_and_mail_goes_to_the_conversation_that_lives(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        post.wait_idle("alpha")
        before = post.agent("alpha").session_id
        deafen(post, "alpha")
        queued = post.send("alpha", f"{TAG} sent before the clear")
        # This one is lost with the conversation that is cleared: it came with a prompt, which was taken back.
        post.model.script("alpha", [post.gate()])
        terminal.submit("take this back")
        post.model.wait_for(lambda request: request.has(mark(queued.id)), PATIENCE)
        terminal.escape()
        terminal.wait_screen("take this back")
        deaf = post.send("alpha", "sent while it looks busy")
        assert post.receipt("alpha", queued.id).state in ("claimed", "delivered")
        erase(terminal, "take this back")

        terminal.submit("/clear")
        until(lambda: post.agent("alpha").session_id != before, "the session is relinked")
        receipts = post.wait_read("alpha", queued.id, deaf.id)
        assert {one.session_id for one in receipts} == {post.agent("alpha").session_id}
        post.assert_read_once("alpha", queued.id, deaf.id)
        assert not any(one.has(mark(deaf.id)) for one in post.requests("alpha") if one.session_id == before)

        deafen(post, "alpha")
        over = post.send("alpha", "sent before the compaction")
        cleared = post.agent("alpha").session_id
        terminal.submit("/compact")
        terminal.wait_screen("Compacted", PATIENCE)
        post.wait_read("alpha", over.id)
        after = post.send("alpha", "sent after the compaction")
        post.assert_read_once("alpha", over.id, after.id)
        assert post.agent("alpha").session_id == cleared
        assert [one.name for one in agents.agents(post.root).agents] == ["alpha"]


def test_exit_resume_and_fork_keep_the_name(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        post.wait_idle("alpha")
        first = post.agent("alpha").session_id
        assert first is not None
        terminal.submit("/exit")
        post.wait_state("alpha", "stopped")

    stopped = post.send("alpha", "to a session that has ended")
    assert stopped.boundary == "resume"
    post.assert_read_once("alpha", stopped.id)
    assert post.agent("alpha").session_id == first
    post.end_session("alpha")

    with Terminal(post.world, post.shop, "--resume", first) as terminal:
        terminal.ready(PATIENCE)
        post.wait_idle("alpha")
        assert post.pid("alpha") == terminal.pid
        resumed = post.send("alpha", "to the resumed session")
        assert resumed.boundary == "rewake"
        post.assert_read_once("alpha", stopped.id, resumed.id)
        terminal.submit("/exit")
        post.wait_state("alpha", "stopped")

    # Its parent is gone, so the fork goes on under the name, before it has had a prompt.
    with Terminal(post.world, post.shop, "--resume", first, "--fork-session") as terminal:
        terminal.ready(PATIENCE)
        until(lambda: post.agent("alpha").session_id != first, "the fork takes over")
        post.wait_idle("alpha")
        forked = post.send("alpha", "to the fork")
        assert forked.boundary == "rewake"
        post.assert_read_once("alpha", stopped.id, resumed.id, forked.id)
        assert post.pid("alpha") == terminal.pid

        # A fork of a session that lives on is an agent of its own.
        own = post.agent("alpha").session_id
        assert own is not None
        with Terminal(post.world, post.shop, "--resume", own, "--fork-session") as other:
            other.ready(PATIENCE)
            until(lambda: len(agents.agents(post.root).agents) == 2, "the second fork registers")
            (stranger,) = (one.name for one in agents.agents(post.root).agents if one.name != "alpha")
            post.wait_idle(stranger)
            other.submit("go on here")
            until(lambda: any(one.has("go on here") for one in post.requests("alpha")), "the fork has a turn")
            post.wait_idle(stranger)
            both = post.send(f"alpha,{stranger}", "to both")
            post.assert_read_once("alpha", forked.id, both.id)
            post.wait_read(stranger, both.id)
            assert post.agent(stranger).session_id != post.agent("alpha").session_id == own
            assert post.pid(stranger) == other.pid


def test_a_conversation_left_for_another_in_the_same_terminal_is_resumed_for_its_mail(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        post.wait_idle("alpha")
        terminal.submit("/exit")
        post.wait_state("alpha", "stopped")
    with Terminal(post.world, post.shop, "--name", "beta") as terminal:
        terminal.ready(PATIENCE).submit("[[lab:beta]] begin")
        post.wait_idle("beta")
        left = post.agent("beta").session_id
        terminal.submit("/resume")
        terminal.wait_screen("Resume session")
        terminal.wait_screen("ago")
        terminal.enter()
        until(lambda: post.agent("alpha").pid == terminal.pid, "alpha goes on in the terminal")
        post.wait_state("beta", "stopped")
        post.wait_idle("alpha")
        ours, theirs = post.send("alpha", "to alpha"), post.send("beta", "to beta")
        assert [ours.boundary, theirs.boundary] == ["rewake", "resume"]
        post.assert_read_once("alpha", ours.id)
        post.assert_read_once("beta", theirs.id)
        assert post.agent("beta").session_id == left
        assert not any(one.has(mark(theirs.id)) for one in post.requests("alpha"))


def test_a_message_behind_a_permission_prompt_leaves_it_alone(post: Post) -> None:
    folder = post.project("ask", settings={})
    with Terminal(post.world, folder, "--name", "alpha") as terminal:
        post.model.script("alpha", [ASKS, Say("the-answer")])
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        terminal.wait_screen(DIALOG)
        post.wait_state("alpha", "blocked")
        shown = settled(terminal)
        plain, urgent = post.send("alpha", "plain"), post.send("alpha", "urgent", "--urgent")
        assert [plain.boundary, urgent.boundary] == ["next-request"] * 2
        (row,) = post.run("agents")
        assert (row["name"], row["state"], row["waiting"]) == ("alpha", "blocked", 2)
        # Long enough for the coordinator to ask Claude Code about it.
        until(lambda: post.log("coordinator-start"), "a coordinator runs")
        still(terminal, shown, 3.5)
        assert post.state("alpha") == "blocked"
        assert not (folder / "made.txt").exists()

        terminal.answer(DIALOG)
        terminal.wait_screen("the-answer")
        receipts = post.assert_read_once("alpha", plain.id, urgent.id)
        assert {one.boundary for one in receipts} == {"next-request"}
        assert [one.has(mark(plain.id)) for one in post.requests("alpha")] == [False, True]
        assert (folder / "made.txt").exists()

        # Esc and No fire no hook: the coordinator's look finds the session idle.
        for answer in ("escape", "no"):
            post.model.script("alpha", [ASKS])
            terminal.submit(f"once more {answer}")
            terminal.wait_screen(DIALOG)
            post.wait_state("alpha", "blocked")
            behind = post.send("alpha", f"behind {answer}")
            if answer == "no":
                no = terminal.wait_screen("No")
                for _ in range(no.count("\n", no.index("1. Yes"), no.index(". No"))):
                    terminal.key("down")
                terminal.wait_screen("❯ 3. No")
            terminal.answer(DIALOG, "escape" if answer == "escape" else "enter")
            (receipt,) = post.assert_read_once("alpha", behind.id)
            assert receipt.boundary == "rewake"
        assert len(post.log("found-idle")) == 2
        assert len(post.requests("alpha")) == 6


def test_escape_in_the_middle_of_a_turn_leaves_the_agent_reachable(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        begun = post.world.root / "begun"
        post.model.script("alpha", [bash(f"touch {begun}; sleep 15")])
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        until(begun.exists, "the command runs")
        in_tool = post.send("alpha", "sent during a tool")
        assert in_tool.boundary == "stop-block"
        terminal.escape()
        (receipt,) = post.assert_read_once("alpha", in_tool.id)
        assert (receipt.boundary, receipt.attempts) == ("rewake", 1)

        # Before the first word of an answer: Claude Code takes the typed prompt back, and what came with it.
        deafen(post, "alpha")
        rewound = post.send("alpha", "came with the prompt")
        post.model.script("alpha", [post.gate()])
        terminal.submit("first try")
        post.model.wait_for(lambda request: request.has(mark(rewound.id)), PATIENCE)
        terminal.escape()
        terminal.wait_gone("esc to interrupt")
        assert post.receipt("alpha", rewound.id).read_at is None
        erase(terminal, "first try")
        post.model.script("alpha", [Say("second-answer")])
        terminal.submit("second try")
        terminal.wait_screen("second-answer")
        (receipt,) = post.assert_read_once("alpha", rewound.id)
        assert receipt.attempts == 2
        assert not post.requests("alpha")[-1].has("first try")

        # A message that woke the session stays in the conversation and is read with the next answer.
        post.model.script("alpha", [post.gate(), Say("third-answer")])
        woken = post.send("alpha", "woke it")
        post.model.wait_for(lambda request: request.has(mark(woken.id)), PATIENCE)
        terminal.escape()
        behind = post.send("alpha", "sent after the escape")
        receipts = post.assert_read_once("alpha", woken.id, behind.id)
        assert [one.attempts for one in receipts] == [1, 1]


def test_a_failed_request_leaves_the_agent_reachable(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        # Claude Code tries again without some of its features before it gives up.
        sent = threading.Event()

        def fails_without_mail(request: ModelRequest) -> Step:
            sent.wait(PATIENCE)
            return Say("ok") if request.has("<message about=") else Fail(400)

        post.model.script("alpha", [fails_without_mail] * 30)
        terminal.ready(PATIENCE).submit(f"{TAG} begin")
        post.model.wait_for(lambda request: request.name == "alpha", PATIENCE)
        during = post.send("alpha", "sent before the failure")
        assert during.boundary == "stop-block"
        sent.set()
        terminal.wait_screen("API Error", PATIENCE)
        (receipt,) = post.assert_read_once("alpha", during.id)
        assert (receipt.boundary, receipt.attempts) == ("rewake", 1)


def settled(terminal: Terminal) -> str:
    """The screen once it no longer changes."""
    shown = terminal.screen()
    while True:
        time.sleep(0.4)
        if shown == (shown := terminal.screen()):
            return shown


def still(terminal: Terminal, shown: str, seconds: float) -> None:
    """The screen stays as it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert terminal.screen() == shown
        time.sleep(0.05)


def deafen(post: Post, name: str) -> None:
    """Kill an agent's waiter, as a machine out of memory would: nothing wakes it until its next turn is over."""
    waiter = store.load_waiter(post.root, post.key(name))
    assert waiter is not None
    os.kill(waiter["pid"], signal.SIGKILL)
    until(lambda: not post.listening(name), f"{name} is deaf")


def erase(terminal: Terminal, typed: str) -> None:
    """Take a prompt that an Esc brought back out of the input line."""
    for _ in typed:
        terminal.key("backspace")
    terminal.ready()
