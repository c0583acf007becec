"""Every installed hook, run with a real payload in a throw-away home, as Claude Code would run it.

A process of ours stands for the session; nothing of the caller's home or sessions is touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from turnpost.core import bell, briefing, files, mailbox, outbox, registry, render, store
from turnpost.core.environment import clean_environment
from turnpost.doctor.results import Check, fail, ok, warn
from turnpost.install.json_text import is_object
from turnpost.install.merge import interpreter_of

LIMIT = 10.0
"""Seconds after which a hook counts as hung: what it is installed with."""
SLOW = 1.0
WAITER = "waiter.py"
_BODY = "turnpost doctor: a test message"

_TURN = (
    "UserPromptSubmit", "SubagentStart", "PreToolUse", "SubagentStop", "PostToolBatch", "PermissionRequest",
    "Notification", "StopFailure", "Stop",
)  # fmt: skip
_BRINGING = ("UserPromptSubmit", "PostToolBatch", "Stop")

Command = tuple[str, ...]


class Fired(NamedTuple):
    """How one hook ended. `mark` is what it should have said, empty when it should have kept silent."""

    event: str
    script: str
    code: int | None
    out: str
    err: str
    seconds: float
    mark: str = ""


def check_fired(fired: Sequence[Fired]) -> list[Check]:
    """One check for each hook that did not do what it must, and one for all that did."""
    checks = [check for one in fired if (check := _check(one)) is not None]
    good = len(fired) - len(checks)
    if good:
        slowest = max(one.seconds for one in fired)
        checks.insert(
            0, ok("hook", f"{good} hooks did what they must; the slowest took {slowest * 1000:.0f} ms")
        )
    return checks


def check_registered(known: bool) -> list[Check]:
    """Whether a starting session becomes an agent."""
    if known:
        return []
    line = "SessionStart ran, and the session did not become an agent"
    return [
        fail(
            "hook", line, "install the hooks again; TURNPOST_DEBUG shows nothing here, the hook keeps silent"
        )
    ]


def fire(hooks: Sequence[tuple[str, Command]]) -> list[Check]:
    """Run one settings file's hooks, each once with nothing to do and once with mail, and judge them."""
    hooks = [
        (event, command)
        for event, command in dict.fromkeys(hooks)
        if os.access(interpreter_of(command), os.X_OK)
    ]
    plain = {event: command for event, command in hooks if os.path.basename(command[-2]) != WAITER}
    waiters = {event: command for event, command in hooks if os.path.basename(command[-2]) == WAITER}
    if "SessionStart" not in plain:
        return []
    with _session() as session:
        fired = [session.run("SessionStart", plain["SessionStart"])]
        key = registry.key_of_session(session.root, session.session_id)
        if key is None:
            return [*check_fired(fired), *check_registered(False)]
        fired[0] = fired[0]._replace(mark=briefing.OPENING)  # an agent is told who it is
        fired += [session.run(event, plain[event]) for event in _TURN if event in plain]
        fired += [
            session.run(event, plain[event], session.send(key)) for event in _BRINGING if event in plain
        ]
        session.settle(key)
        # A prompt's waiter leaves what waits to the hook beside it and to the end of its turn.
        waking = {event: command for event, command in waiters.items() if event != "UserPromptSubmit"}
        fired += [session.wake(key, event, command) for event, command in waking.items()]
        fired += [session.orphan(key, event, command) for event, command in list(waiters.items())[:1]]
        if "SessionEnd" in plain:
            fired.append(session.run("SessionEnd", plain["SessionEnd"]))
        return check_fired(fired)


class Session:
    """A session that is none: a process that sleeps, a folder, a home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = str(folder / "state")
        self.session_id = str(uuid.uuid4())
        self.transcript = folder / "transcript.jsonl"
        self.transcript.touch()
        self._harness = self._sleeper()
        self._waiting: list[subprocess.Popen[str]] = []

    def run(self, event: str, command: Command, mark: str = "") -> Fired:
        """Run a hook to its end."""
        begin = time.monotonic()
        process = self._start(event, command)
        return self._ended(event, command, process, begin, mark)

    def send(self, key: str) -> str:
        """Put an urgent message into the agent's queue; its mark."""
        agent = registry.load_agent(self.root, key)
        if agent is None:
            return ""
        sender = registry.party(registry.unsaved_person())
        message = outbox.compose(sender, [registry.party(agent)], _BODY, urgent=True)
        outbox.send(self.root, message, [agent])
        return render.mark(message["id"])

    def settle(self, key: str) -> None:
        """The turn is over and nothing waits."""
        box = mailbox.Mailbox(self.root, key)
        with box.lock(5.0):
            for folder in (box.queue, box.claimed):
                for name in files.names(folder):
                    files.unlink(f"{folder}/{name}")
            state = store.load_state(self.root, key)
            if state is not None:
                store.save_state(self.root, key, store.change_state(state, "idle"))

    def wake(self, key: str, event: str, command: Command) -> Fired:
        """A waiter that a message wakes: exit 2, the message on stderr."""
        process = self._waiter(key, event, command)
        begin = time.monotonic()
        mark = self.send(key)
        fired = self._ended(event, command, process, begin, mark)
        self.settle(key)
        return fired

    def orphan(self, key: str, event: str, command: Command) -> Fired:
        """A waiter whose session is killed: exit 0, in silence."""
        process = self._waiter(key, event, command)
        self._harness.kill()
        self._harness.wait()
        begin = time.monotonic()
        bell.ring_waiter(self.root, key)  # it would see by itself, some seconds later
        fired = self._ended(event, command, process, begin, "")
        self._harness = self._sleeper()
        return fired

    def end(self) -> None:
        """End every process of this session."""
        for process in (self._harness, *self._waiting):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _waiter(self, key: str, event: str, command: Command) -> subprocess.Popen[str]:
        before = store.load_waiter(self.root, key)
        process = self._start(event, command)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and process.poll() is None:
            if store.load_waiter(self.root, key) != before and bell.listening(self.root, key):
                break
            time.sleep(0.01)
        return process

    def _start(self, event: str, command: Command) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, cwd=self.folder, env=self._environment(), text=True, encoding="utf-8", errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._waiting.append(process)
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._payload(event)))
                process.stdin.close()
        process.stdin = None
        return process

    def _ended(
        self, event: str, command: Command, process: subprocess.Popen[str], begin: float, mark: str
    ) -> Fired:
        code: int | None = None
        try:
            out, err = process.communicate(timeout=LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        seconds = time.monotonic() - begin
        return Fired(event, os.path.basename(command[-2]), code, out, err, seconds, mark)

    def _payload(self, event: str) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            "hook_event_name": event,
            **_PAYLOADS.get(event, {}),
        }

    def _environment(self) -> dict[str, str]:
        return {
            **clean_environment(os.environ),
            "TURNPOST_HOME": self.root,
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ID": self.session_id,
            "CLAUDE_PID": str(self._harness.pid),
            "CLAUDE_PROJECT_DIR": str(self.folder),
        }

    def _sleeper(self) -> subprocess.Popen[str]:
        sleep = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)")
        return subprocess.Popen(sleep, text=True, cwd=self.folder)


# As Claude Code sends them, less what no hook of ours reads.
_PAYLOADS: Mapping[str, Mapping[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "none"},
    "UserPromptSubmit": {"prompt": "hello", "prompt_id": "doctor"},
    "PostToolBatch": {"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "true"}}]},
    "SubagentStart": {"agent_id": "doctor", "agent_type": "doctor"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "true"}},
    "SubagentStop": {"agent_id": "doctor", "agent_type": "doctor", "last_assistant_message": "hello"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {"command": "true"}},
    "Notification": {"message": "nothing", "notification_type": "idle_prompt"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "hello", "background_tasks": []},
    "StopFailure": {"error": "unknown", "last_assistant_message": "API Error"},
    "SessionEnd": {"reason": "other"},
}


@contextmanager
def _session() -> Generator[Session]:
    with tempfile.TemporaryDirectory(prefix="turnpost-doctor-", ignore_cleanup_errors=True) as folder:
        session = Session(Path(folder).resolve())
        try:
            yield session
        finally:
            session.end()


def _check(fired: Fired) -> Check | None:
    expected = _woken if fired.mark and fired.script == WAITER else _brought if fired.mark else _silent
    fault = expected(fired)
    name = f"{fired.event} ({fired.script})"
    if fault:
        return fail("hook", f"{name} {fault}", "install the hooks again, and run `turnpost doctor` once more")
    if fired.seconds > SLOW:
        line = f"{name} took {fired.seconds:.1f} s"
        return warn("hook", line, "a slow disk or interpreter: each turn waits for it")
    return None


def _silent(fired: Fired) -> str:
    """Why a hook with nothing to do was not silent; empty when it was."""
    if fired.code is None:
        return f"did not end within {LIMIT:g} s"
    if fired.code:
        return f"ended with code {fired.code}, not 0: {_first(fired.err)}"
    if fired.out or fired.err:
        return f"printed with nothing to do: {_first(fired.out or fired.err)}"
    return ""


def _brought(fired: Fired) -> str:
    """Why a hook did not bring its message as one JSON document; empty when it did."""
    if fired.code is None or fired.code:
        return _silent(fired)
    if fired.err:
        return f"printed on stderr: {_first(fired.err)}"
    try:
        document = json.loads(fired.out)
    except ValueError:
        return f"did not bring its message: it printed {_first(fired.out)}"
    if not is_object(document) or fired.out.replace('\\"', '"').count(fired.mark) != 1:
        return f"did not bring its message once: {_first(fired.out)}"
    added = document.get("hookSpecificOutput")
    context = added.get("additionalContext") if is_object(added) else None
    reason = document.get("reason") if document.get("decision") == "block" else None
    if not any(fired.mark in text for text in (context, reason) if isinstance(text, str)):
        return "brought its message where the model does not see it"
    return ""


def _woken(fired: Fired) -> str:
    """Why a waiter did not wake its session; empty when it did."""
    if fired.code is None:
        return f"did not wake within {LIMIT:g} s after a message"
    if fired.code != 2 or fired.err.count(fired.mark) != 1:
        return f"ended with code {fired.code} instead of waking with its message: {_first(fired.err)}"
    return f"printed on stdout: {_first(fired.out)}" if fired.out else ""


def _first(text: str) -> str:
    return " ".join(text.split())[:200] or "nothing"
