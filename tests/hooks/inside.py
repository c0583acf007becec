"""The fake harness without processes: the hook scripts run inside the test's own process, a hundred times faster.

What is left out is what a process adds: an interpreter's start, the shell in front of it, a waiter that sleeps. The scripts,
their input and their answers are the same, so a test can drive both by the vocabulary of `FakeSession`.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

from tests.hooks.driver import MARK, FakeSession, Ran
from turnpost.core import clock, deliver, fastjson, waiter
from turnpost.data import hooks_dir


class Asleep(BaseException):
    """A waiter has nothing to take and would sleep now."""


@cache
def script(name: str) -> CodeType:
    """A hook script as it is installed."""
    path = hooks_dir() / name
    return compile(path.read_text(), str(path), "exec")


@dataclass
class ReadingSession(FakeSession):
    """A session that notes what its model has read, beside its transcripts: whoever drives it may come and go.

    Read is what entered the conversation before an answer in it. A copy takes over what its original has not answered.
    """

    result: Ran | None = None  # how the next hook ended, when it ran elsewhere

    def hook(self, event: str, *, stdin: bytes | None = None, waiter: bool = True, **payload: Any) -> Ran:
        if self.result is not None:
            ran, self.result = self.result, None
            return ran
        return self.run(event, stdin=stdin, waiter=waiter, **payload)

    def run(self, event: str, *, stdin: bytes | None = None, waiter: bool = True, **payload: Any) -> Ran:
        """Run a hook, whatever became of another."""
        return super().hook(event, stdin=stdin, waiter=waiter, **payload)

    def _request(self, texts: list[str]) -> None:
        super()._request(texts)
        entered = [*self.unanswered(), *(found for one in texts for found in MARK.findall(one))]
        self._open().write_text(" ".join([] if self.answers else entered))
        if self.answers and entered:
            with (self.folder / "read").open("a") as file:
                file.write(" ".join([*entered, ""]))

    def answer(self) -> None:
        """The model answers what stands in the conversation."""
        self._request([])

    def unanswered(self) -> list[str]:
        """The messages in the present conversation that no answer followed."""
        return self._open().read_text().split() if self._open().exists() else []

    def has_read(self) -> list[str]:
        """The messages that were read, in order, in whatever conversation."""
        path = self.folder / "read"
        return path.read_text().split() if path.exists() else []

    def become(self, session_id: str, *, copied: bool) -> None:
        """The conversation goes on under another id, or with an empty one."""
        before, left = self.transcript, self.unanswered() if copied else []
        self.session_id = session_id
        if copied and before != self.transcript:
            self.transcript.write_bytes(before.read_bytes())
        self.transcript.touch()
        self._open().write_text(" ".join(left))

    def _open(self) -> Path:
        return self.folder / f"{self.session_id}.unanswered"


@dataclass
class InsideSession(ReadingSession):
    """A session whose hooks run here. `pid` is its process, which the test starts or only pretends; 0 starts one."""

    pid: int = 0
    process: subprocess.Popen[bytes] | None = None

    def run(self, event: str, *, stdin: bytes | None = None, waiter: bool = True, **payload: Any) -> Ran:
        started = clock.monotonic()
        printed: list[bytes] = []

        def answer(document: dict[str, Any] | None) -> None:
            if document is not None:
                printed.append(fastjson.dumps(document).encode())

        (name,) = [_script_of(entry["args"]) for entry in self.entries(event) if not entry.get("asyncRewake")]
        with self._as_hook(self._payload(event, payload)), mock.patch.object(deliver, "answer", answer):
            exec(script(name), {"__name__": "__main__"})
        return Ran(0, b"".join(printed), b"", clock.monotonic() - started)

    def take(self, event: str = "Stop") -> str:
        """What a waiter that this event has armed takes at its first look; empty when it would sleep."""

        def sleep(*_: object) -> None:
            raise Asleep

        with self._as_hook(self._payload(event, {})), mock.patch.object(select, "select", sleep):
            try:
                return waiter._wait(self.root)
            except Asleep:
                return ""

    def _woken(self) -> str | None:
        return self.take() or None

    def look(self) -> str:
        """Let a waiter look; what it brings begins a turn."""
        try:
            return self.wake(timeout=0.0)
        except TimeoutError:
            return ""

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end_waiters(self) -> None:
        """There are none that outlive their look."""

    def _begin(self) -> None:
        if not self.pid:
            self.process = subprocess.Popen(["sleep", "3600"])
            self.pid = self.process.pid

    @contextmanager
    def _as_hook(self, payload: dict[str, object]) -> Iterator[None]:
        with (
            mock.patch.dict(os.environ, self.environment(), clear=True),
            mock.patch.object(deliver, "read_input", return_value=payload),
        ):
            yield


def _script_of(words: Sequence[str]) -> str:
    return next(Path(word).name for word in words if word.endswith(".py"))
