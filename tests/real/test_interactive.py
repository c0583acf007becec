"""Sessions that a person has open in a terminal, in a project where turnpost is installed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, SETTINGS, Post, bash, until
from turnpost.actions import agents
from turnpost.core.render import mark
from turnpost.lab.errors import LabTimeout
from turnpost.lab.model import Fail, ModelRequest, Say, Step, Tool

pytestmark = [pytest.mark.real, pytest.mark.slow]

TAG = "[[lab:alpha]]"
"""In a prompt or a body it tells the model's script which agent asks, also in a conversation that began anew."""
_EMPTY = re.compile(r"^❯$", re.MULTILINE)
DIALOG = "Do you want to proceed?"
ASKS = Tool("Bash", {"command": "touch made.txt && echo ran", "description": "make a file"})


def test_a_session_is_known_by_its_folder_wakes_when_idle_and_a_prompt_takes_what_waits(post: Post) -> None:
    with Terminal(post.world, post.shop) as terminal:
        terminal.ready(PATIENCE)
        (session_id,) = until(
            lambda: [one.session_id for one in agents.agents(post.root).agents if one.session_id],
            "the session registers",
        )
        name = f"shop-{session_id[:8]}"
        view = post.agent(name)
        assert (view.name, view.kind) == (name, "registered")
        post.wait_idle(name)

        # A conversation that has not begun is woken too, and the person's first prompt is a turn of its own.
        first = post.send(name, f"{TAG} first")
        assert first.boundary == "rewake"
        post.wait_read(name, first.id)
        post.wait_idle(name)
        ask(post, terminal, name, "second")
        post.run("rename", name, "alpha")
        deafen(post, "alpha")
        third = post.send("alpha", "third")
        assert third.boundary == "prompt"
        terminal.submit("fourth")
        post.assert_read_once("alpha", third.id)
        assert post.requests("alpha")[-1].count(mark(first.id)) == 1
        assert [len(post.requests("alpha")), post.receipt("alpha", third.id).boundary] == [3, "prompt"]

        # A prompt typed during a turn waits for the running tool, and so must nothing that a claim's lease covers.
        gate = post.gate()
        post.model.script("alpha", [gate])
        terminal.submit("fifth")
        gate.wait_reached()
        during = post.send("alpha", "sent during a turn")
        assert during.boundary == "stop-block"
        terminal.submit("typed during a turn")
        time.sleep(1.0)  # its hook runs at once
        assert post.receipt("alpha", during.id).state == "queued"
        gate.open()
        (receipt,) = post.assert_read_once("alpha", third.id, during.id)[1:]
        assert (receipt.boundary, receipt.attempts) == ("stop-block", 1)


def test_clear_and_compact_keep_the_name_and_mail_goes_to_the_conversation_that_lives(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        opened(post, terminal, "alpha")
        ask(post, terminal, "alpha", f"{TAG} begin")
        before = post.agent("alpha").session_id
        deafen(post, "alpha")
        queued = post.send("alpha", f"{TAG} sent before the clear")
        # It came with a prompt that was taken back, and is lost with the conversation that is cleared.
        post.model.script("alpha", [post.gate()])
        terminal.submit("take this back")
        post.model.wait_for(lambda request: request.has(mark(queued.id)), PATIENCE)
        interrupt_and_erase(terminal, "take this back")
        assert post.receipt("alpha", queued.id).read_at is None

        terminal.submit("/clear")
        until(lambda: post.agent("alpha").session_id != before, "the session is relinked")
        (receipt,) = post.assert_read_once("alpha", queued.id)
        assert (receipt.session_id, receipt.attempts) == (post.agent("alpha").session_id, 2)

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
        opened(post, terminal, "alpha")
        ask(post, terminal, "alpha", f"{TAG} begin")
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
    folder = post.world.project("plain", settings=SETTINGS)  # in a repository /resume lists none of them
    post.run("install", "--project", str(folder))
    with Terminal(post.world, folder, "--name", "alpha") as terminal:
        opened(post, terminal, "alpha")
        ask(post, terminal, "alpha", f"{TAG} begin")
        other = post.agent("alpha").session_id
        terminal.submit("/exit")
        post.wait_state("alpha", "stopped")
    with Terminal(post.world, folder, "--name", "beta") as terminal:
        opened(post, terminal, "beta")
        ask(post, terminal, "beta", "[[lab:beta]] begin")
        left = post.agent("beta").session_id
        terminal.submit(f"/resume {other}")
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
        opened(post, terminal, "alpha")
        terminal.submit(f"{TAG} begin")
        terminal.wait_screen(DIALOG)
        post.wait_state("alpha", "blocked")
        terminal.wait_screen("Esc to cancel")
        shown = question(terminal)
        plain, urgent = post.send("alpha", "plain"), post.send("alpha", "urgent", "--urgent")
        assert [plain.boundary, urgent.boundary] == ["next-request"] * 2
        (row,) = post.run("agents")
        assert (row["name"], row["state"], row["waiting"]) == ("alpha", "blocked", 2)
        # Long enough for the coordinator to ask Claude Code about it.
        until(lambda: post.log("coordinator-start"), "a coordinator runs")
        stays(terminal, shown, 3.0)
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
                # The last of the answers; how many there are differs.
                lines = question(terminal)
                for _ in range(lines.count("\n", lines.index("1. Yes"), lines.index(". No"))):
                    terminal.key("down")
                terminal.wait_screen(re.compile(r"❯ \d\. No"))
            terminal.answer(DIALOG, "escape" if answer == "escape" else "enter")
            (receipt,) = post.assert_read_once("alpha", behind.id)
            assert receipt.boundary == "rewake"
        assert len(post.log("found-idle")) == 2
        assert len(post.requests("alpha")) == 6


def test_escape_in_the_middle_of_a_turn_leaves_the_agent_reachable(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        begun = post.world.root / "begun"
        post.model.script("alpha", [bash(f"touch {begun}; sleep 15")])
        opened(post, terminal, "alpha")
        terminal.submit(f"{TAG} begin")
        until(begun.exists, "the command runs")
        in_tool = post.send("alpha", "sent during a tool")
        assert in_tool.boundary == "stop-block"
        interrupt(terminal)
        (receipt,) = post.assert_read_once("alpha", in_tool.id)
        assert (receipt.boundary, receipt.attempts) == ("rewake", 1)

        # Before the first word of an answer: Claude Code takes the typed prompt back, and what came with it.
        deafen(post, "alpha")
        rewound = post.send("alpha", "came with the prompt")
        post.model.script("alpha", [post.gate()])
        terminal.submit("first try")
        post.model.wait_for(lambda request: request.has(mark(rewound.id)), PATIENCE)
        interrupt_and_erase(terminal, "first try")
        assert post.receipt("alpha", rewound.id).read_at is None
        ask(post, terminal, "alpha", "second try", rests=False)
        (receipt,) = post.assert_read_once("alpha", rewound.id)
        assert receipt.attempts == 2
        assert not post.requests("alpha")[-1].has("first try")

        # A message that woke the session stays in the conversation and is read with the next answer.
        post.model.script("alpha", [post.gate(), Say("third-answer")])
        woken = post.send("alpha", "woke it")
        post.model.wait_for(lambda request: request.has(mark(woken.id)), PATIENCE)
        interrupt(terminal)
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
        opened(post, terminal, "alpha")
        terminal.submit(f"{TAG} begin")
        post.model.wait_for(lambda request: request.name == "alpha", PATIENCE)
        during = post.send("alpha", "sent before the failure")
        assert during.boundary == "stop-block"
        sent.set()
        terminal.wait_screen("API Error", PATIENCE)
        (receipt,) = post.assert_read_once("alpha", during.id)
        assert (receipt.boundary, receipt.attempts) == ("rewake", 1)


def opened(post: Post, terminal: Terminal, name: str) -> None:
    """Wait until a new session takes input and its agent is known and listens."""
    terminal.ready(PATIENCE)
    until(lambda: name in [one.name for one in agents.agents(post.root).agents], f"{name} registers")
    post.wait_idle(name)


def ask(post: Post, terminal: Terminal, name: str, prompt: str, *, rests: bool = True) -> None:
    """Type a prompt and wait for its answer, and until the agent rests."""
    answer = f"answer-to-{len(post.model.requests())}"
    post.model.script(name if name == "beta" else "alpha", [Say(answer)])
    terminal.submit(prompt)
    terminal.wait_screen(answer, PATIENCE)
    if rests:
        post.wait_idle(name)


def question(terminal: Terminal) -> str:
    """The open permission prompt. What stands above it blinks, and a name is drawn into its frame a while after."""
    lines = terminal.screen().partition("Bash command")[2].splitlines()
    return "\n".join(line for line in lines if "───" not in line)


def stays(terminal: Terminal, shown: str, seconds: float) -> None:
    """The permission prompt is left as it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert question(terminal) == shown
        time.sleep(0.05)


def deafen(post: Post, name: str) -> None:
    """Kill the waiters, as a machine out of memory would: nothing wakes the agent until its next turn."""

    def none_left() -> bool:
        for one in post.waiters():
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        # One that was armed a moment ago may not show yet.
        time.sleep(0.5)
        return not post.waiters() and not post.listening(name)

    until(none_left, f"{name} is deaf")


def interrupt(terminal: Terminal) -> None:
    """Press Escape while the agent works, again if the session was not ready to see it."""
    terminal.wait_screen("esc to interrupt", PATIENCE)
    until(lambda: _escaped(terminal), "the turn is interrupted")


def _escaped(terminal: Terminal) -> bool:
    if "esc to interrupt" in terminal.screen():
        terminal.escape()
        with contextlib.suppress(LabTimeout):
            terminal.wait_gone("esc to interrupt", 2.0)
    return "esc to interrupt" not in terminal.screen()


def interrupt_and_erase(terminal: Terminal, typed: str) -> None:
    """Press Escape before the first word of the answer, and take the prompt that comes back out of the input line."""
    interrupt(terminal)
    terminal.wait_screen(re.compile(rf"❯\s{re.escape(typed)}"))  # a space that does not break
    for _ in typed:
        terminal.key("backspace")
    terminal.wait_screen(_EMPTY)
