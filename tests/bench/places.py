"""Places to measure in: an agent whose Claude Code is only played, and a world with the real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.bench.rounds import PATIENCE, NotMeasured, until
from turnpost.core import attach, registry
from turnpost.install import settings_for_launch
from turnpost.install.merge import interpreter_of
from turnpost.lab import processes
from turnpost.lab.detach import Detached
from turnpost.lab.env import closed_env
from turnpost.service import process

# Reports when a command began and ended, on the clock that all processes share.
_STAMPED = """\
import subprocess, sys, time
begin = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=2).returncode
print(begin, time.monotonic(), code)"""


class Played:
    """A home with agents whose hooks are run exactly as installed; the harness is played by this process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tp-", dir="/tmp")).resolve()
        self.root = str(self.folder / "state")
        self.project = self.folder / "shop"
        self.project.mkdir()
        self._hooks: dict[str, Any] = settings_for_launch()["hooks"]

    def command(self, event: str, script: str) -> list[str]:
        """The installed command line of one hook."""
        for group in self._hooks[event]:
            for entry in group["hooks"]:
                if Path(entry["args"][-2]).name == script:
                    return [entry["command"], *entry["args"]]
        raise NotMeasured(f"{script} is not installed for {event}")

    def interpreter(self) -> str:
        """The Python that runs the installed hooks."""
        return interpreter_of(tuple(self.command("Stop", "stop.py")))

    def session(self) -> str:
        """A new session that turnpost knows; its id."""
        session_id = str(uuid.uuid4())
        self.transcript(session_id).touch()
        attach.attach(
            self.root,
            attach.Start(
                session_id, "startup", os.getpid(), transcript=str(self.transcript(session_id)),
                cwd=str(self.project), project=str(self.project), name=self.name(session_id),
            ),
        )  # fmt: skip
        # All sessions are this one process; a pid that is taken would make the next session the same agent.
        Path(f"{self.root}/pids/{os.getpid()}").unlink()
        return session_id

    def name(self, session_id: str) -> str:
        """What the session's agent is called."""
        return f"agent-{session_id[:8]}"

    def key(self, session_id: str) -> str:
        """The session's agent."""
        key = registry.key_of_session(self.root, session_id)
        if key is None:
            raise NotMeasured("the session was not registered")
        return key

    def transcript(self, session_id: str) -> Path:
        """The session's transcript."""
        return self.folder / f"{session_id}.jsonl"

    def env(self, session_id: str) -> dict[str, str]:
        """What Claude Code gives its hooks."""
        return self.bare_env() | {
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ID": session_id,
            "CLAUDE_PID": str(os.getpid()),
            "CLAUDE_PROJECT_DIR": str(self.project),
        }

    def bare_env(self) -> dict[str, str]:
        """What a person has outside Claude Code."""
        return closed_env(self.folder) | {"TURNPOST_HOME": self.root}

    def coordinator(self) -> int:
        """Start a coordinator; its pid once it runs."""
        started = subprocess.Popen(
            [sys.executable, "-m", "turnpost", "coordinator", "run"], env=self.bare_env(), cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def runs() -> bool:
            if started.poll() is not None:
                raise NotMeasured(f"the coordinator ended with {started.returncode}")
            return process.status(self.root).running

        until(runs, "the coordinator runs")
        return started.pid

    def payload(self, session_id: str, event: str, **more: object) -> bytes:
        """A hook's input."""
        return json.dumps(
            {
                "session_id": session_id,
                "transcript_path": str(self.transcript(session_id)),
                "cwd": str(self.project),
                "prompt_id": str(uuid.uuid4()),
                "permission_mode": "default",
                "hook_event_name": event,
                **more,
            }
        ).encode()

    def start(self, command: list[str], session_id: str, data: bytes = b"") -> subprocess.Popen[bytes]:
        """Start a command as Claude Code starts a hook, with its input waiting in a pipe."""
        read_end, write_end = os.pipe()
        try:
            os.write(write_end, data)  # far below what a pipe holds
            os.close(write_end)
            return subprocess.Popen(
                command, stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=self.env(session_id), cwd=self.project,
            )  # fmt: skip
        finally:
            os.close(read_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.end_all(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


def stamped(command: list[str], *, cwd: Path, env: dict[str, str], input: str = "") -> tuple[float, float]:
    """Run a command with no Claude session above it; when it began and ended, by `time.monotonic`."""
    words = [sys.executable, "-I", "-S", "-c", _STAMPED, *command]
    finished = Detached(words, cwd=cwd, env=env, input=input).wait(PATIENCE).check()
    begin, end, code = finished.stdout.split()
    if code != "0":
        raise NotMeasured(f"{' '.join(command)[:200]} ended with {code}: {finished.stderr[-500:]}")
    return float(begin), float(end)
