"""Durable sends a second through the Python API, against what a Python program would take instead.

Against `mailbox.Maildir.add` with one process, and with eight against SQLite that waits for the disk at every insert
(WAL, synchronous=FULL). Nobody reads meanwhile, and the home's coordinator is played by this process: what is measured is
what a sender pays for a message that no crash takes back.
"""

from __future__ import annotations

import mailbox
import multiprocessing
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.rounds import PATIENCE, NotMeasured, alternate
from turnpost.actions import sending
from turnpost.core import clock, files, procs, registry, store
from turnpost.core.sender import Speaker
from turnpost.lab.progress import Progress

ROUNDS, QUICK = 15, 4
MAILDIR = "mailbox.Maildir.add"
SQLITE = "SQLite, WAL, FULL"
_COUNT = 60
"""Sends of a process in a round: a mailbox takes 64."""
_PROCESSES = 8
_BODY = "The tests pass again: the fixture closed the file before the reader was done. " * 8


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """Milliseconds a message, one sender against one, eight against eight."""
    folder = Path(tempfile.mkdtemp(prefix="tp-", dir="/tmp")).resolve()
    rounds = QUICK if quick else ROUNDS
    try:
        one = alternate(
            "sends, one process", rounds,
            {"send": lambda: _one(_new(folder), _send), MAILDIR: lambda: _one(_new(folder), _maildir)}, progress,
        )  # fmt: skip
        many = alternate(
            "sends, eight processes", rounds,
            {"send": lambda: _many(_new(folder), _send), SQLITE: lambda: _many(_new(folder), _sqlite)}, progress,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [
        Measured("send by 1 process", "ms", one["send"], MAILDIR, one[MAILDIR], ratio_limit=1.0),
        Measured("send by 8 processes", "ms", many["send"], SQLITE, many[SQLITE], ratio_limit=1.0),
    ]


Sender = Callable[[int], None]
"""Sends one message, which has this number."""


def _one(folder: Path, opened: Callable[[Path, int], Sender]) -> float:
    """Milliseconds a message in this process."""
    send = opened(folder, 0)
    begin = time.perf_counter()
    for number in range(_COUNT):
        send(number)
    return (time.perf_counter() - begin) * 1000 / _COUNT


def _many(folder: Path, opened: Callable[[Path, int], Sender]) -> float:
    """Milliseconds a message in all, from the moment eight processes are ready until the last is done."""
    opened(folder, _PROCESSES)  # what is made once is made
    forked = multiprocessing.get_context("fork")
    barrier = forked.Barrier(_PROCESSES + 1)
    workers = [
        forked.Process(target=_work, args=(folder, opened, number, barrier)) for number in range(_PROCESSES)
    ]
    for worker in workers:
        worker.start()
    try:
        barrier.wait(PATIENCE)
        begin = time.perf_counter()
        for worker in workers:
            worker.join(PATIENCE)
        took = time.perf_counter() - begin
        if any(worker.exitcode != 0 for worker in workers):
            raise NotMeasured(f"a sender failed: {[worker.exitcode for worker in workers]}")
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return took * 1000 / (_COUNT * _PROCESSES)


def _work(folder: Path, opened: Callable[[Path, int], Sender], process: int, barrier: Barrier) -> None:
    send = opened(folder, process)
    barrier.wait(PATIENCE)
    for number in range(_COUNT):
        send(number)


def _new(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


def _send(folder: Path, process: int) -> Sender:
    """The product's own way. Each process writes to an agent of its own, as each insert is a row of its own."""
    root = str(folder / "state")
    registry.prepare(root)
    name = f"alpha-{process}"
    registry.create_agent(root, name, kind="registered", cwd=str(folder), project=str(folder))
    speaker = Speaker(registry.person(root))
    played = {"v": 1, "pid": os.getppid(), "token": procs.token(os.getppid()), "since": clock.now()}
    files.write(root + "/coordinator.json", store.pack(played))

    def send(number: int) -> None:
        sending.send(root, [name], f"{number}: {_BODY}", speaker=speaker)

    return send


def _maildir(folder: Path, _process: int) -> Sender:
    box = mailbox.Maildir(folder / "mail")

    def send(number: int) -> None:
        box.add(f"Subject: {number}\n\n{_BODY}")

    return send


def _sqlite(folder: Path, _process: int) -> Sender:
    base = sqlite3.connect(folder / "mail.db", isolation_level=None, timeout=PATIENCE)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=full")
    base.execute("create table if not exists mail (id integer primary key, sent real, body text)")

    def send(number: int) -> None:
        base.execute("insert into mail (sent, body) values (?, ?)", (time.time(), f"{number}: {_BODY}"))

    return send
