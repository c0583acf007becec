"""A fake harness: runs the hooks exactly as installed, and writes what they print into a transcript as Claude Code does.

`FakeSession` is the contract's vocabulary: a test says what happens to a session (`start`, `prompt`, `tool_batch`,
`stop`, `wake`, `end`, `kill`) and looks at `read`, the messages in the model requests, in their order.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from turnpost.core import clock, registry
from turnpost.core.records import TYPE_CHECKING
from turnpost.install.interpreter import default_python
from turnpost.install.merge import hooks_block, is_ours

if TYPE_CHECKING:
    from turnpost.core.records import Agent

PATIENCE = 20.0
"""Seconds after which a hook that should have ended counts as hung. Generous: machines under load are slow."""
MARK = re.compile(r'^<message about="(msg-[0-9A-Z]{26})"', re.MULTILINE)


@cache
def python() -> Path:
    """The interpreter that hooks are installed with."""
    return default_python()


@dataclass(frozen=True)
class Ran:
    """How a hook ended."""

    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def silent(self) -> bool:
        """Whether Claude Code would go on as if there had been no hook."""
        return (self.code, self.out, self.err) == (0, b"", b"")

    @property
    def briefs(self) -> bool:
        """Whether it tells an agent who it is, and does nothing else."""
        added = {"hookEventName": "SessionStart", "additionalContext": self.context}
        return self.context.startswith("turnpost: you are ") and self.document == {
            "hookSpecificOutput": added
        }

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document a hook printed; empty for one that was silent."""
        assert self.code == 0, self
        assert self.err == b"", self
        found: dict[str, Any] = json.loads(self.out) if self.out else {}
        return found

    @property
    def context(self) -> str:
        """What the hook adds to the conversation beside its reason."""
        return str(self.document.get("hookSpecificOutput", {}).get("additionalContext", ""))

    @property
    def reason(self) -> str:
        """A block's reason, which stands twice in the next request; empty for a hook that did not block."""
        document = self.document
        return str(document["reason"]) if document.get("decision") == "block" else ""

    @property
    def goes_on(self) -> str:
        """What a Stop hook keeps the turn going with; empty when the turn ends."""
        return self.reason or self.context


@dataclass
class FakeSession:
    """One Claude Code session in the home `root`; its files lie in `folder`. A `sleep` stands for its process."""

    root: str
    folder: Path
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    entrypoint: str = "cli"
    background: bool = False
    hooks: Path | None = None  # another folder of hook scripts
    settings: Path | None = None  # a settings file whose hooks run, whoever wrote it
    prefix: tuple[str, ...] = ()  # a program that runs the hook
    env: dict[str, str] = field(default_factory=dict)
    answers: bool = True  # whether the model answers; False stands for an API that fails
    requests: list[str] = field(default_factory=list)  # the hook texts in each model request
    waiters: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.project = self.folder / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.transcript.touch()
        self.reload()
        self._begin()

    def reload(self) -> None:
        """Take the hooks as they are installed now."""
        if self.settings is None:
            self._block = hooks_block(python(), self.hooks)
        else:
            self._block = json.loads(self.settings.read_bytes())["hooks"]

    # What happens to a session.

    def start(self, source: str = "startup", session_id: str | None = None) -> Ran:
        """The session begins, or goes on under another id: SessionStart, and the waiter armed with it."""
        if session_id is not None:
            before = self.transcript
            self.session_id = session_id
            if source in ("resume", "fork") and before.exists() and before != self.transcript:
                self.transcript.write_bytes(before.read_bytes())
            self.transcript.touch()
        return self.hook("SessionStart", source=source)

    def prompt(self, text: str = "go on", **payload: Any) -> Ran:
        """The person, or a resume, gives a prompt: the turn begins."""
        ran = self.hook("UserPromptSubmit", prompt=text, **payload)
        self._write("user", message={"role": "user", "content": text}, origin={"kind": "human"})
        self._request(self._context(ran, "UserPromptSubmit"))
        return ran

    def tool_batch(self, **payload: Any) -> Ran:
        """A batch of tool calls has ended and the next model request comes."""
        ran = self.hook("PostToolBatch", **payload)
        self._write(
            "user",
            message={
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}],
            },
            toolUseResult={"stdout": "ok"},
        )
        self._request(self._context(ran, "PostToolBatch"))
        return ran

    def stop(self, **payload: Any) -> Ran:
        """The model ends its turn; when a hook blocks that or adds context, the next request goes out at once."""
        ran = self.hook("Stop", **{"stop_hook_active": False, **payload})
        if ran.code == 0 and ran.goes_on:
            if ran.reason:
                self._write(
                    "user",
                    message={"role": "user", "content": f"Stop hook feedback:\n{ran.reason}"},
                    isMeta=True,
                )
                self._attach(
                    type="hook_blocking_error", hookName="Stop", blockingError={"blockingError": ran.reason}
                )
            self._request([*filter(None, [ran.reason]), *self._context(ran, "Stop")])
        return ran

    def turn(self) -> None:
        """One whole turn that ends; what keeps it going is gone along with."""
        self.prompt()
        while self.stop().goes_on:
            pass

    def wake(self, timeout: float = PATIENCE, **payload: Any) -> str:
        """Wait until a waiter wakes the idle session, and begin that turn. Raises TimeoutError when none does."""
        end = clock.monotonic() + timeout
        while (woken := self._woken()) is None:
            if clock.monotonic() > end:
                raise TimeoutError(f"no waiter woke the session in {timeout:g} s")
            clock.sleep(0.005)
        self.woken(woken, **payload)
        return woken

    def woken(self, woken: str, **payload: Any) -> None:
        """The turn that a waiter begins with its text."""
        notification = (
            "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n"
            f'Stop hook blocking error from command "Stop": {woken}\n</system-reminder>'
        )
        self._write("queue-operation", operation="enqueue", content=notification)
        self._write("queue-operation", operation="dequeue")
        ran = self.hook("UserPromptSubmit", prompt=notification, **payload)
        self._write(
            "user", message={"role": "user", "content": notification}, origin={"kind": "task-notification"}
        )
        self._request([woken, *self._context(ran, "UserPromptSubmit")])

    def end(self, reason: str = "other") -> Ran:
        """The session ends as `claude stop` or the person ends it: the harness ends its waiters too."""
        ran = self.hook("SessionEnd", reason=reason)
        if reason not in ("clear", "resume"):
            self.kill()
            self.end_waiters()
        return ran

    def kill(self) -> None:
        """kill -9: no hook runs, and waiters live on."""
        self._process.kill()
        self._process.wait()

    def respawn(self, *, waiter: bool = False) -> Ran:
        """Another process goes on with a session that was killed. Without a waiter, which would not wait for the test."""
        self._begin()
        return self.hook("SessionStart", source="resume", waiter=waiter)

    # What a test looks at.

    @property
    def transcript(self) -> Path:
        """The session's transcript."""
        return self.folder / f"{self.session_id}.jsonl"

    @property
    def key(self) -> str:
        """The key of the session's agent."""
        found = registry.key_of_session(self.root, self.session_id)
        assert found is not None, "the session was not registered"
        return found

    @property
    def agent(self) -> Agent:
        """The agent this session is."""
        found = registry.load_agent(self.root, self.key)
        assert found is not None
        return found

    @property
    def read(self) -> list[str]:
        """The messages in the model requests, in order; one that came twice is there twice."""
        return [message_id for text in self.requests for message_id in MARK.findall(text)]

    def live_waiters(self) -> list[subprocess.Popen[bytes]]:
        """The waiters that still run."""
        return [one for one in self.waiters if one.poll() is None]

    def settled(self, count: int = 1, timeout: float = PATIENCE) -> bool:
        """Wait until so many waiters are left, all of which have taken over; False when that does not happen."""
        end = clock.monotonic() + timeout
        while clock.monotonic() < end:
            live = self.live_waiters()
            if len(live) == count and all(self._armed(one.pid) for one in live):
                return True
            clock.sleep(0.01)
        return False

    # How a hook runs.

    def hook(self, event: str, *, stdin: bytes | None = None, waiter: bool = True, **payload: Any) -> Ran:
        """Run what is installed for an event, all at the same moment; how the hook that Claude Code waits for ended."""
        data = stdin if stdin is not None else json.dumps(self._payload(event, payload)).encode()
        started = clock.monotonic()
        waited: list[subprocess.Popen[bytes]] = []
        for entry in self.entries(event):
            rewake = bool(entry.get("asyncRewake"))
            if rewake and not waiter:
                continue
            (self.waiters if rewake else waited).append(self._spawn(entry, data))
        (one,) = waited
        out, err = one.communicate(timeout=PATIENCE)
        return Ran(one.returncode, out, err, clock.monotonic() - started)

    def arm(self, event: str = "Stop", stdin: bytes | None = None, **payload: Any) -> subprocess.Popen[bytes]:
        """Start the waiter of an event alone."""
        data = stdin if stdin is not None else json.dumps(self._payload(event, payload)).encode()
        (entry,) = [entry for entry in self.entries(event) if entry.get("asyncRewake")]
        started = self._spawn(entry, data)
        self.waiters.append(started)
        return started

    def entries(self, event: str) -> list[dict[str, Any]]:
        """The hooks installed for an event."""
        found = [entry for group in self._block[event] for entry in group["hooks"]]
        return found if self.settings is None else [entry for entry in found if is_ours(entry)]

    def environment(self) -> dict[str, str]:
        """What Claude Code gives its hooks."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": self.entrypoint,
            "CLAUDE_CODE_SESSION_ID": self.session_id,
            "CLAUDE_PID": str(self.pid),
            "CLAUDE_PROJECT_DIR": str(self.project),
            "TURNPOST_HOME": self.root,
            **({"CLAUDE_JOB_DIR": str(self.folder / "job")} if self.background else {}),
            **self.env,
        }

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.end_waiters()

    def _begin(self) -> None:
        self._process = subprocess.Popen(["sleep", "3600"])
        self.pid = self._process.pid

    def _payload(self, event: str, more: dict[str, object]) -> dict[str, object]:
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "permission_mode": "default",
            "hook_event_name": event,
            **more,
        }

    def _spawn(self, entry: dict[str, Any], data: bytes) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self.prefix, entry["command"], *entry["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
            cwd=self.project,
        )
        assert process.stdin is not None
        with (
            contextlib.suppress(BrokenPipeError),
            process.stdin,
        ):  # a hook with nothing to do ends without reading
            process.stdin.write(data)
        process.stdin = None
        return process

    def _armed(self, pid: int) -> bool:
        path = f"{self.root}/agents/{self.key}/waiter.json"
        try:
            return int(json.loads(Path(path).read_bytes())["pid"]) == pid
        except (OSError, ValueError):
            return False

    def _woken(self) -> str | None:
        for one in self.waiters:
            if one.poll() == 2:
                self.waiters.remove(one)
                out, err = one.communicate()
                assert out == b""
                return err.decode()
        return None

    def end_waiters(self) -> None:
        """End every waiter there was."""
        for one in self.waiters:
            if one.poll() is None:
                one.send_signal(signal.SIGKILL)
            one.communicate()
        self.waiters.clear()

    # What Claude Code writes.

    def _context(self, ran: Ran, event: str) -> list[str]:
        if ran.code != 0 or not ran.context:
            return []
        assert len(ran.context.encode("utf-16-le")) // 2 < 10_000, "a context this long becomes a preview"
        self._attach(type="hook_success", hookName=event, stdout=ran.out.decode(), stderr="", exitCode=0)
        self._attach(type="hook_additional_context", content=[ran.context], hookName=event, hookEvent=event)
        return [ran.context]

    def _attach(self, **attachment: object) -> None:
        self._write("attachment", attachment=attachment)

    def _request(self, texts: list[str]) -> None:
        self.requests.extend(texts)
        content = [{"type": "text", "text": f"reply {len(self.requests)}"}]
        if self.answers:
            self._write("assistant", message={"role": "assistant", "model": "scripted", "content": content})
        else:
            self._write(
                "assistant", message={"role": "assistant", "model": "<synthetic>", "content": content}, isApiErrorMessage=True
            )  # fmt: skip

    def _write(self, kind: str, **entry: object) -> None:
        stamp = clock.rfc3339(time.time())
        chain: dict[str, object] = {}
        if kind != "queue-operation":
            chain = {"parentUuid": self._last_entry(), "uuid": str(uuid.uuid4())}
        line = {
            **chain,
            "isSidechain": False,
            "type": kind,
            **entry,
            "timestamp": stamp,
            "session_id": self.session_id,
        }
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _last_entry(self) -> str | None:
        """The entry that the next one hangs on. Looked for in the end first: a transcript can be long."""
        for room in (1 << 18, 1 << 40):
            with self.transcript.open("rb") as file:
                begin = max(0, file.seek(0, os.SEEK_END) - room)
                file.seek(begin)
                lines = file.read().splitlines()
            for line in reversed(lines[1:] if begin else lines):
                if found := json.loads(line).get("uuid"):
                    return str(found)
        return None
