"""One agent, one situation, its messages. Scenes run side by side and end when all their messages are read."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from turnpost import harness
from turnpost.core import procs
from turnpost.demo.stage import Stage
from turnpost.lab.model import Say, Tool

READY = "Say that you are ready."
BY_HAND = "Hello again, by hand."


class Scene(NamedTuple):
    """`play` answers with the ids of the messages it sent, in order."""

    agent: str
    situation: str
    play: Callable[[Stage, str], list[str]]


def working(stage: Stage, name: str) -> list[str]:
    """Two messages while a tool runs: both come when the turn ends, in order."""
    _works(stage, name)
    ids = [stage.send(name, "First: use the new date format."), stage.send(name, "Second: and add a test.")]
    _let_go(stage, name)
    for message_id in ids:
        stage.wait_read(name, message_id)
    _expect_together(stage, name, ids)
    return ids


def idle(stage: Stage, name: str) -> list[str]:
    """The turn is over: the message wakes the same session."""
    stage.launch(name, READY)
    stage.wait_idle(name)
    stage.tell(name, "its turn is over")
    return [_read(stage, name, "Are you there?")]


def stopped(stage: Stage, name: str) -> list[str]:
    """The session has ended: it is resumed under the same id."""
    before = _ended(stage, name)
    message_id = _read(stage, name, "Please go on.")
    after = stage.agent(name)["session_id"]
    stage.expect(name, f"the same session {before[:8]}", after[:8], after == before)
    return [message_id]


def copied(stage: Stage, name: str) -> list[str]:
    """The session has ended for turnpost, but Claude Code runs it, so the resume makes a copy of it.

    It runs without turnpost's knowledge after a resume by hand while the hooks of its project were switched off.
    """
    before = _ended(stage, name, stage.changing)
    switch = stage.changing / ".claude" / "settings.local.json"
    switch.write_text('{"disableAllHooks": true}', encoding="utf-8")
    stage.wait(
        lambda: _resumed_by_hand(stage, before) or None, f"the session {before[:8]} to be resumed by hand"
    )
    # Only once it has its prompt has it surely read the settings.
    stage.wait(lambda: _has(stage, before, BY_HAND) or None, f"the session {before[:8]} to run by hand")
    switch.unlink()
    stage.tell(name, "resumed by hand while turnpost's hooks were off")
    message_id = _read(stage, name, "Please go on, whoever you are now.")
    after = stage.agent(name)["session_id"]
    stage.expect(name, f"a copy of {before[:8]}", f"{after[:8]}", after != before)
    stage.tell(name, f"goes on as its copy {after[:8]}, under its own name")
    stage.wait(lambda: not _runs(stage, before) or None, f"the original session {before[:8]} to be retired")
    stage.tell(name, f"the original {before[:8]} is retired")
    return [message_id]


def killed(stage: Stage, name: str) -> list[str]:
    """The process dies with a message in its queue; Claude Code's service brings the session back after some seconds."""
    _works(stage, name)
    message_id = stage.send(name, "This must survive.")
    before = stage.agent(name)["pid"]
    start = procs.token(before)
    os.kill(before, signal.SIGKILL)
    stage.tell(name, f"killed with -9 (pid {before}); its service takes some 10 s")
    _let_go(stage, name)
    stage.wait(lambda: not procs.alive(before, start) or None, "the killed process to be gone")
    stage.wait_read(name, message_id)
    after = stage.agent(name)["pid"]
    stage.expect(name, f"another process than {before}", after, after != before)
    return [message_id]


ALL = (
    Scene("working", "busy with a tool call", working),
    Scene("idle", "idle", idle),
    Scene("stopped", "stopped", stopped),
    Scene("copied", "copied by the resume", copied),
    Scene("killed", "killed with -9 at work", killed),
)


def _runs(stage: Stage, session_id: str) -> bool:
    return any(session["sessionId"] == session_id and session.get("pid") for session in stage.world.agents())


def _resumed_by_hand(stage: Stage, session_id: str) -> bool:
    """Resume the session itself. For some seconds after its end Claude Code can still make a copy: that one is ended."""
    stage.go_on()
    words = ("--bg", "--resume", session_id)
    done = stage.world.claude(*words, cwd=stage.changing, input=BY_HAND).check()
    copy = harness.started(done.stdout + done.stderr).copy
    if copy:
        stage.world.claude("stop", copy).check()
    return copy is None


def _has(stage: Stage, session_id: str, words: str) -> bool:
    request = stage.last_request(session_id)
    return request is not None and request.has(words)


def _read(stage: Stage, name: str, body: str) -> str:
    message_id = stage.send(name, body)
    stage.wait_read(name, message_id)
    return message_id


def _ended(stage: Stage, name: str, project: Path | None = None) -> str:
    """Launch an agent and stop it; its session id."""
    session_id = stage.launch(name, READY, project)
    stage.wait_idle(name)
    stage.command("stop", name)
    stage.tell(name, "stopped")
    return session_id


def _works(stage: Stage, name: str) -> None:
    """Launch an agent whose tool call runs until `_let_go`, at most a minute."""
    wait = (
        f"touch {name}.began; for _ in $(seq 600); do [ -e {name}.go ] && break; sleep 0.1; done; echo done"
    )
    stage.model.script(name, [Tool("Bash", {"command": wait, "timeout": 90_000}), Say("The tool is done.")])
    stage.launch(name, "Run your tool.")
    stage.wait_file(f"{name}.began")
    stage.tell(name, "a tool call runs")


def _let_go(stage: Stage, name: str) -> None:
    (stage.project / f"{name}.go").touch()


def _expect_together(stage: Stage, name: str, ids: list[str]) -> None:
    first = [stage.with_mark(message_id)[:1] for message_id in ids]
    indexes = [request.index for found in first for request in found]
    stage.expect(name, "both in one request", f"requests {indexes}", len(set(indexes)) == 1 and all(first))
    if all(first):
        text = "\n".join(words for _, words in first[0][0].texts)
        places = [text.find(f'about="{message_id}"') for message_id in ids]
        stage.expect(name, "in the order sent", f"at {places}", places == sorted(places))
