"""A session of Claude Code that the least there can be wakes: the yardstick of a wake, and what begins a turn without us."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.ground import TEXT, Ground
from tests.bench.rounds import settle, until
from turnpost.lab.model import ModelRequest


class Shell:
    """A session that a shell wakes which blocks on a FIFO: nothing that wakes a session can be faster."""

    def __init__(
        self,
        ground: Ground,
        name: str,
        event: str = "Stop",
        at_stop: Sequence[Mapping[str, Any]] = (),
        **settings: object,
    ) -> None:
        """`event` arms the shell; `at_stop` are more hooks that run when a turn ends."""
        self._ground = ground
        self._fifo = ground.world.root / f"{name}.fifo"
        os.mkfifo(self._fifo, 0o600)
        script = f"read -r mark < '{self._fifo}' || exit 0; echo \"$mark {TEXT}\" >&2; exit 2"
        waiter = {
            "type": "command",
            "command": "/bin/sh",
            "args": ["-c", script],
            "timeout": 3600,
            "asyncRewake": True,
        }
        hooks = {"Stop": [{"hooks": list(at_stop)}]} if at_stop else {}
        hooks.setdefault(event, []).append({"hooks": [waiter]})
        ground.bare(name, hooks, **settings)

    def wake(self) -> tuple[ModelRequest, float]:
        """Write into the FIFO; the request that came of it, and when it was written."""
        mark = self._ground.mark()
        writer = self._open()
        try:
            settle()
            begin = time.monotonic()
            os.write(writer, f"{mark}\n".encode())
        finally:
            os.close(writer)
        return self._ground.carried(mark), begin

    def _open(self) -> int:
        writer = -1

        def listening() -> bool:
            nonlocal writer
            try:
                writer = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
            return True

        until(listening, "the shell waits on the FIFO")
        return writer
