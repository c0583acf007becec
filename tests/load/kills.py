"""kill -9 at random, of each kind as often as of the others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from turnpost.core import procs
from turnpost.service import process

_PATIENCE = 2.0
"""Seconds to wait for somebody to kill. A hook runs for some hundredths of a second only."""


class Kills:
    """`means` kill one of a kind each, at the moment they are called; False when there is none.

    They are told whether to aim: at one that has messages on their way, where there is more to be lost than elsewhere.
    """

    def __init__(self, chance: random.Random, means: Mapping[str, Callable[[bool], bool]]) -> None:
        self.done: Counter[str] = Counter()
        self._chance, self._means = chance, means
        self._next: list[str] = []

    def one(self) -> None:
        """kill -9 of the next kind, some time soon."""
        self._next = self._next or self._chance.sample(list(self._means), len(self._means))
        kind = self._next.pop()
        time.sleep(self._chance.uniform(0.0, 0.03))
        aimed = self._chance.random() < 0.5
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if self._means[kind](aimed):
                self.done[kind] += 1
                return
            time.sleep(0.001)
        self._next.insert(0, kind)  # nobody there: later in this round

    def assert_done(self, count: int) -> None:
        """Of each kind some were killed, and half of `count` in all at least: on a slow machine there is less to hit."""
        assert set(self.done) == set(self._means), self.done
        assert self.done.total() >= count / 2, self.done


def coordinator(root: str) -> bool:
    """kill -9 of the coordinator; False when none runs."""
    pid = process.status(root).pid
    return pid is not None and killed(pid)


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    if procs.LINUX:
        living = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
        return [one for one in living if procs.parent(one) == pid]
    listed = subprocess.run(["/bin/ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [int(child) for parent, child in pairs if parent == str(pid)]


def killed(pid: int) -> bool:
    """kill -9; False when it is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
