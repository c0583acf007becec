"""Load without Claude Code: the hook scripts as installed, a real coordinator, and kill -9 of everything at random."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from tests.load.kills import Kills, coordinator
from tests.load.sessions import FakeClaude, Session
from tests.load.traffic import Traffic, Verdict
from tests.long import scale
from turnpost.core import bell, mailbox, outbox, registry, store, threads
from turnpost.core.records import TYPE_CHECKING
from turnpost.lab import processes
from turnpost.service import process

if TYPE_CHECKING:
    from turnpost.core.records import Waiter

SESSIONS = SENDERS = 8
MESSAGES, KILLS = scale(320, 100_000), scale(25, 1_000)
PAUSE = scale(0.4, 0.0)
"""Mean seconds before each message of a sender: few messages must last for all kills."""
LOG = logging.getLogger(__name__)
STANDSTILL = 120.0
"""Seconds in which at least one message must be read. A claim of a killed hook holds for 15."""

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(scale(240, 3 * 3600))]


class Post:
    """A spool with sessions that live, senders and a coordinator; a context manager."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.root = str(folder / "state")
        self.chance = random.Random(seed)
        registry.prepare(self.root)
        self.sessions = [
            Session(self.root, folder / f"s{number}", background=True) for number in range(SESSIONS)
        ]
        for one in self.sessions:
            one.start()
        self.names = {one.agent["name"]: one for one in self.sessions}
        self._claude = FakeClaude(folder, self.sessions)
        own = {"HOME": str(folder), "TURNPOST_HOME": self.root, "TURNPOST_CLAUDE": str(self._claude.path)}
        self._env = os.environ | own
        self.traffic = Traffic(
            self.root, folder, self._env, list(self.names), seed=seed, senders=SENDERS, each=MESSAGES // SENDERS,
            pause=PAUSE,
        )  # fmt: skip
        self.kills = Kills(
            self.chance,
            {
                "session": lambda aimed: self._any().kill_process(aimed=aimed),
                "waiter": lambda aimed: self._any().kill_waiter(aimed=aimed),
                "hook": lambda aimed: self._any().kill_hook(aimed=aimed),
                "coordinator": lambda _: coordinator(self.root),
                "sender": lambda _: self.traffic.kill(self.chance),
            },
        )
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one.live, args=(self._over,)) for one in self.sessions]

    def __enter__(self) -> Post:
        self._claude.__enter__()
        for one in self._threads:
            one.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the sessions end their turns; then nothing is left that runs."""
        self._over.set()
        for one in self._threads:
            one.join(60.0)
        self.traffic.end()
        for session in self.sessions:
            session.kill()
            session.end_waiters()
        self.run_coordinator("stop")
        self._claude.__exit__(kind, error, trace)
        self.check()

    def waiting(self) -> int:
        """How many messages wait or are on their way."""
        boxes = [mailbox.Mailbox(self.root, one.key) for one in self.sessions]
        return sum(len(box.waiting()) + len(box.in_flight()) for box in boxes)

    def settle(self) -> None:
        """Wait until all is read; what a killed sender left half done is finished first."""
        outbox.recover(self.root, 0.0)
        left, since = self.waiting(), time.monotonic()
        while left:
            self.check()
            if not process.status(self.root).running:
                self.run_coordinator("start")  # what a person does whose coordinator was killed
            time.sleep(0.1)
            if (now := self.waiting()) != left:
                left, since = now, time.monotonic()
            assert time.monotonic() - since < STANDSTILL, f"{left} messages stand still"

    def check(self) -> None:
        for one in self.sessions:
            if one.fault is not None:
                raise one.fault

    def judge(self) -> Verdict:
        """What stands in the conversations against what was sent, and against what the spool knows."""
        read = {name: one.conversation() for name, one in self.names.items()}
        verdict = self.traffic.judge(read)
        ids = {one.id for found in read.values() for one in found}
        known = {one for thread in threads.every(self.root) for one in threads.messages(self.root, thread)}
        verdict.lost += [f"{one} is known and was never read" for one in known - ids]
        for name, found in read.items():
            box = mailbox.Mailbox(self.root, self.names[name].key)
            states = {one.id: (box.receipt(one.id) or {"state": None})["state"] for one in found}
            assert set(states.values()) == {"read"}, states
        return verdict

    def strays(self) -> list[str]:
        """Files that nobody will ever need, once a coordinator has looked; but for the bell of an agent's last waiter."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                os.utime(f"{folder}/{name}", (0, 0), follow_symlinks=False)
        self.run_coordinator("start")
        time.sleep(1.0)
        self.run_coordinator("stop")
        kept = {bell.fifo(self.root, key, waiter["id"]) for key, waiter in self._waiters()}
        found = []
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = f"{folder}/{name}"
                passing = name.endswith((".tmp", ".fifo")) or path.split("/")[-2] in ("outbox", "pending")
                if passing and path not in kept:
                    found.append(path)
        return found

    def _any(self) -> Session:
        return self.chance.choice(self.sessions)

    def _waiters(self) -> Iterator[tuple[str, Waiter]]:
        for one in self.sessions:
            waiter = store.load_waiter(self.root, one.key)
            if waiter is not None:
                yield one.key, waiter

    def run_coordinator(self, word: str) -> None:
        """Start or stop the coordinator by the command."""
        words = [sys.executable, "-m", "turnpost", "coordinator", word]
        subprocess.run(words, env=self._env, check=True, stdout=subprocess.DEVNULL)


def test_nothing_is_lost_twice_or_out_of_order_while_everything_is_killed(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    begun = time.monotonic()
    with Post(tmp_path, seed) as post:
        while post.traffic.tend():
            post.check()
            if post.kills.done.total() * MESSAGES < post.traffic.accepted * KILLS:
                post.kills.one()
            time.sleep(0.005)
        sent = time.monotonic()
        post.settle()
        times = f"sent in {sent - begun:.1f} s, read {time.monotonic() - sent:.1f} s later"
        LOG.info("%d messages %s; killed: %s", post.traffic.accepted, times, dict(post.kills.done))
    assert post.judge() == Verdict(), f"seed {seed}"
    assert post.strays() == []
    homes = [tmp_path, *(one.folder for one in post.sessions)]
    end = time.monotonic() + 10.0  # a coordinator that was stopped is about to be gone
    while (left := [one for folder in homes for one in processes.in_home(folder)]) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
    post.kills.assert_done(KILLS)
