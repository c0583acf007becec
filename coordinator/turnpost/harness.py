"""The one module that runs `claude`.

Facts it rests on (measured, see docs/architecture.md): exit code 0 of `--bg --resume` proves nothing; flags on a
resume make a copy; a prompt as an argument shows in the process list and fails above 128 KiB, so it goes on stdin;
a child that inherits a session's variables can be left without a transcript.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from turnpost.core import text
from turnpost.core.environment import clean_environment
from turnpost.core.errors import HarnessError

MINIMUM = (2, 1, 319)
"""The oldest Claude Code the product was tested with."""
_BACKGROUNDED = re.compile(r"backgrounded\W+([0-9a-f]{8})", re.IGNORECASE)
_COPY = re.compile(r"started a copy as ([0-9a-f-]{8,36})", re.IGNORECASE)
_ASK = (
    "-p", "--output-format", "json", "--tools", "", "--strict-mcp-config", "--no-session-persistence",
    "--disable-slash-commands", "--settings", '{"disableAllHooks":true}',
)  # fmt: skip
_ASK_SECONDS = 300.0


class Session(BaseModel):
    """One session as `claude agents --json --all` lists it. A missing pid means that it does not run."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    id: str | None = None
    session_id: str | None = Field(default=None, alias="sessionId")
    kind: str | None = None
    cwd: str | None = None
    name: str | None = None
    pid: int | None = None
    status: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class Started:
    """What a `--bg` call printed: the short id, and the copy's when it made one. No proof that anything runs."""

    short_id: str
    copy: str | None
    output: str


@dataclass(frozen=True)
class Reply:
    """What a model answered to one question, and what that cost: dollars (None when unknown), tokens, seconds."""

    text: str
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    seconds: float


class _Usage(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class _Printed(BaseModel):
    """What `claude -p --output-format json` prints."""

    result: str | None = None
    is_error: bool = False
    total_cost_usd: float | None = None
    duration_ms: float = 0.0
    usage: _Usage = _Usage()


def started(output: str) -> Started:
    """What `claude --bg` printed. Raises HarnessError when that is no session."""
    found = _BACKGROUNDED.search(output)
    if not found:
        raise HarnessError(
            f"claude --bg did not start a session; it said: {text.one_line(output)}",
            output=output.strip()[-2000:],
        )
    copy = _COPY.search(output)
    return Started(found.group(1), copy.group(1) if copy else None, output.strip())


class Claude:
    """An installed Claude Code. Every call runs it to its end, with the caller's session variables stripped."""

    def __init__(self, binary: str, environment: Mapping[str, str] | None = None) -> None:
        self.binary = binary
        self._environment = clean_environment(os.environ if environment is None else environment)

    @classmethod
    def find(cls) -> Claude:
        """`$TURNPOST_CLAUDE`, else `claude` on PATH. Raises HarnessError when there is none."""
        given = os.environ.get("TURNPOST_CLAUDE")
        binary = given or shutil.which("claude")
        if not binary or not os.access(binary, os.X_OK):
            where = f"$TURNPOST_CLAUDE ({given})" if given else "PATH"
            raise HarnessError(
                f"no runnable `claude` in {where}; install Claude Code or set TURNPOST_CLAUDE to its path"
            )
        return cls(binary)

    def version(self) -> tuple[int, ...]:
        """The version as numbers, (2, 1, 332)."""
        found = re.search(r"(\d+)\.(\d+)\.(\d+)", self._run(["--version"], timeout=30).stdout)
        if not found:
            raise HarnessError(f"{self.binary} --version printed no version; is it Claude Code?")
        return tuple(int(part) for part in found.groups())

    def launch(
        self, prompt: str, *, cwd: str, settings: Mapping[str, Any], name: str, options: Sequence[str] = ()
    ) -> Started:
        """Start a background session with this prompt. Raises HarnessError with what Claude Code said when it refuses."""
        words = ["--bg", "--name", name, "--settings", json.dumps(settings), *options]
        return self._background(words, prompt, cwd)

    def resume(
        self, session_id: str, nudge: str, *, cwd: str, on_start: Callable[[int], None] | None = None
    ) -> Started:
        """Resume a session in the background, without flags: they would make a copy. `on_start` is told the command's pid."""
        return self._background(["--bg", "--resume", session_id], nudge, cwd, on_start)

    def fork(
        self,
        session_id: str,
        nudge: str,
        *,
        cwd: str,
        settings: Mapping[str, Any],
        options: Sequence[str] = (),
    ) -> Started:
        """Resume with settings of ours, which makes a copy of the session that carries our hooks."""
        words = ["--bg", "--resume", session_id, "--settings", json.dumps(settings), *options]
        return self._background(words, nudge, cwd)

    def ask(self, prompt: str, *, system: str, cwd: str) -> Reply:
        """Ask the model once, by `claude -p`: no tools, no servers, no hooks, no commands, and no session is kept.

        In the prompt `@file` still reads a file in; it must not hold what others wrote as it is.
        """
        shown = self._run(
            [*_ASK, "--system-prompt", system], timeout=_ASK_SECONDS, input=prompt, cwd=cwd, check=False
        )
        try:
            printed = _Printed.model_validate_json(shown.stdout)
        except ValidationError as error:
            raise HarnessError(
                f"claude -p gave no answer, it ended with code {shown.returncode}: {text.one_line(shown.stderr or shown.stdout)}",
                code=shown.returncode, stderr=shown.stderr[-2000:],
            ) from error  # fmt: skip
        if printed.is_error or shown.returncode != 0 or not (printed.result or "").strip():
            raise HarnessError(
                f"claude -p gave no answer, it ended with code {shown.returncode}: {text.one_line(printed.result or shown.stderr)}",
                code=shown.returncode, stderr=shown.stderr[-2000:],
            )  # fmt: skip
        used = printed.usage
        read = used.input_tokens + used.cache_creation_input_tokens + used.cache_read_input_tokens
        return Reply(
            printed.result or "", printed.total_cost_usd, read, used.output_tokens, printed.duration_ms / 1000
        )

    def stop(self, session_id: str) -> None:
        """Stop a background session; one that has ended already is fine."""
        self._run(["stop", session_id[:8]], timeout=30, check=False)

    def listing(self) -> list[Session]:
        """All sessions Claude Code knows, ended ones too. Takes about 0.2 s: not for a loop that is hot."""
        shown = self._run(["agents", "--json", "--all"], timeout=30)
        try:
            return TypeAdapter(list[Session]).validate_json(shown.stdout or "[]")
        except ValidationError as error:
            raise HarnessError(
                f"`claude agents --json` printed something else than a list of sessions: {error.errors()[0]['msg']}"
            ) from error

    def _background(
        self, words: list[str], prompt: str, cwd: str, on_start: Callable[[int], None] | None = None
    ) -> Started:
        if not os.path.isdir(cwd):
            raise HarnessError(
                f"the folder {cwd} is gone, and Claude Code resumes a session only from there",
                rule="claude",
                cwd=cwd,
            )
        shown = self._run(words, input=prompt, cwd=cwd, timeout=60, on_start=on_start)
        return started(shown.stdout + shown.stderr)

    def _run(
        self,
        words: list[str],
        *,
        timeout: float,
        input: str | None = None,
        cwd: str | None = None,
        check: bool = True,
        on_start: Callable[[int], None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        try:
            with subprocess.Popen(
                [self.binary, *words], cwd=cwd, env=self._environment, encoding="utf-8", errors="replace",
                stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as process:  # fmt: skip
                try:
                    if on_start:
                        on_start(process.pid)
                    out, err = process.communicate(input, timeout)
                except BaseException:
                    process.kill()
                    raise
            done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"{self.binary} {words[0]} failed: {error}") from error
        if check and done.returncode != 0:
            raise HarnessError(
                f"claude {words[0]} ended with code {done.returncode}: {text.one_line(done.stderr or done.stdout)}",
                code=done.returncode, stderr=done.stderr[-2000:],
            )  # fmt: skip
        return done
