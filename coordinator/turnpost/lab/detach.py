"""Run a command as a person would from a fresh terminal: no Claude session is among its ancestors.

Whom turnpost takes for the sender depends on the process tree, and a test run may itself be the child of a
Claude session. Output goes to files, not pipes: a background service that the command starts inherits them,
and a pipe would stay open as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import LabError, LabTimeout

_KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True)
class Finished:
    """How a command ended. A negative `returncode` is the number of the signal that ended it."""

    args: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    def check(self) -> Finished:
        """Itself when the exit code is 0, otherwise raises LabError with what the command said."""
        if self.returncode:
            said = (self.stderr.strip() or self.stdout.strip() or "nothing said")[-2000:]
            raise LabError(f"{' '.join(self.args)[:200]}: exit {self.returncode}: {said}")
        return self


class Detached:
    """A command that runs with no ancestor but init."""

    def __init__(
        self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], input: str | bytes | None = None
    ) -> None:
        """Start it.

        `input` becomes its standard input, otherwise that is empty. Raises LabError when it cannot be
        started.
        """
        self.args = tuple(args)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the command was collected
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - likewise
        self._report, write_end = os.pipe()
        self._said = b""
        self._finished: Finished | None = None
        self._closed = False
        try:
            self._spawn(write_end, cwd, env, input)
        finally:
            os.close(write_end)
        first = self._line(10.0)
        if first is None or not first.isdigit():
            self._close()
            raise LabError(f"cannot start {self.args[0]}: {first or 'no report'}")
        self.pid = int(first)

    def poll(self) -> Finished | None:
        """How it ended, None while it runs."""
        return self._collect(0.0)

    def wait(self, timeout: float) -> Finished:
        """How it ended, waiting up to `timeout` seconds; raises LabTimeout and leaves it running."""
        finished = self._collect(timeout)
        if finished is None:
            raise LabTimeout(
                f"{' '.join(self.args)[:200]}: still running after {timeout:g} s; {self.so_far()[-500:]}"
            )
        return finished

    def so_far(self) -> str:
        """What it has written until now, both streams, standard output first."""
        return _read(self._output) + _read(self._errors) if not self._closed else ""

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> Finished:
        """End it at once and collect it. What it started itself lives on."""
        self.signal(signal.SIGKILL)
        return self.wait(10.0)

    def _spawn(self, write_end: int, cwd: Path, env: Mapping[str, str], input: str | bytes | None) -> None:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(input.encode() if isinstance(input, str) else input or b"")
            stdin.seek(0)
            subprocess.run(
                [sys.executable, "-I", "-S", str(_KEEPER), str(write_end), *self.args],
                cwd=cwd, env=dict(env), stdin=stdin, stdout=self._output, stderr=self._errors,
                pass_fds=(write_end,), check=True,
            )  # fmt: skip

    def _collect(self, timeout: float) -> Finished | None:
        if self._finished is None:
            line = self._line(timeout)
            if line is None:
                return None
            # The keeper was killed when the report ends without an exit code. Its end is awaited: it shares
            # the command's HOME, by which `processes` finds what is left.
            code = int(line) if line else -signal.SIGKILL
            self._line(10.0)
            self._finished = Finished(self.args, code, _read(self._output), _read(self._errors))
            self._close()
        return self._finished

    def _line(self, timeout: float) -> str | None:
        """The next line of the keeper's report, "" at its end, None when there is none in time."""
        end = time.monotonic() + timeout
        while b"\n" not in self._said:
            if not select.select([self._report], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            chunk = os.read(self._report, 4096)
            if not chunk:
                return ""
            self._said += chunk
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._report)
            self._output.close()
            self._errors.close()

    def __del__(self) -> None:
        # A command that was never waited for must not leak descriptors into a long test run.
        if hasattr(self, "_closed"):
            self._close()


def run(
    args: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    input: str | bytes | None = None,
    timeout: float,
) -> Finished:
    """Start a command, wait for it up to `timeout` seconds, kill it after that and raise LabTimeout."""
    command = Detached(args, cwd=cwd, env=env, input=input)
    try:
        return command.wait(timeout)
    except LabTimeout:
        command.kill()
        raise


def _read(file: IO[bytes]) -> str:
    # The command shares the file's offset, so it must not be moved while it may still write.
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")
