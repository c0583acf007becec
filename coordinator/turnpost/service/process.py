"""Starting, finding and stopping the coordinator. One per home: an exclusive lock decides, the record only tells."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from turnpost import config
from turnpost.core import clock, files, home, procs, registry, store
from turnpost.core.environment import clean_environment
from turnpost.core.errors import LockBusy, Refused, TimedOut

RUNNING = {"pid": int, "token": (str, None), "since": float}
START_SECONDS = 10.0
STOP_SECONDS = 10.0
SPAWNED = "TURNPOST_SPAWNED_AT"
"""Environment variable of a coordinator that a command started: when, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a coordinator runs; `since` is its start in seconds since the epoch."""

    running: bool
    pid: int | None = None
    since: float | None = None


def status(root: str) -> Status:
    """The coordinator of this home. A record whose process is gone is no coordinator."""
    record = store.if_known(store.load, _record(root), RUNNING)
    if record is None or not procs.alive(record["pid"], record["token"]):
        return Status(False)
    return Status(True, int(record["pid"]), float(record["since"]))


def ensure(root: str) -> None:
    """See that a coordinator runs, or is on its way, without waiting for it. Costs one small read when one does."""
    if status(root).running:
        return
    try:
        # Many senders find at the same moment that none runs, and each starts a process that takes half a second to see
        # that it is one too many.
        with files.Lock(root + "/coordinator-spawn.lock", 0.0):
            if not (_on_its_way(root) or status(root).running):
                _spawn(root)
    except LockBusy:
        pass  # somebody else starts one


def start(root: str) -> Status:
    """Start the coordinator if none runs and wait until it does. Raises TimedOut, and UsageError (`config`)."""
    config.load(root)  # what is wrong with it a process without a terminal can tell nobody
    registry.prepare(root)
    ensure(root)
    end = clock.monotonic() + START_SECONDS
    while clock.monotonic() < end:
        if (now := status(root)).running:
            return now
        clock.sleep(0.02)
    raise TimedOut(
        f"the coordinator did not start within {START_SECONDS:g} s; see {log_path(root)}",
        seconds=START_SECONDS,
    )


def stop(root: str) -> Status:
    """End the coordinator and wait until it is gone; which one that was. Raises TimedOut; what it was doing goes on at the next start."""
    # One that was spawned before this moment and has not come so far as to take the lock must not outlive the stop.
    if not files.exists(root):
        return Status(False)
    files.write(_stopped(root), store.pack({"v": 1, "at": clock.now()}), durable=False)
    now = status(root)
    if now.pid is None:
        return Status(False)
    try:
        os.kill(now.pid, signal.SIGTERM)
    except ProcessLookupError:
        return Status(False)
    end = clock.monotonic() + STOP_SECONDS
    while clock.monotonic() < end:
        if status(root).pid != now.pid:
            return Status(False, now.pid, now.since)
        clock.sleep(0.02)
    raise TimedOut(f"the coordinator (pid {now.pid}) did not end within {STOP_SECONDS:g} s", pid=now.pid)


def run(root: str) -> None:
    """Be the coordinator until SIGTERM or SIGINT. Raises Refused when another one is, and Newer for the record of a newer one."""
    from filelock import FileLock, Timeout

    from turnpost.service.loop import Coordinator

    registry.prepare(root)
    store.load(_record(root))  # raises Newer: one that a newer turnpost left is not ours to replace
    lock = FileLock(root + "/coordinator.lock", mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise Refused(
            f"a coordinator already runs for {root}; `turnpost coordinator status` shows it", rule="running"
        ) from None
    try:
        if _called_off(root):
            return
        coordinator = Coordinator(root)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: coordinator.stop())
        pid = os.getpid()
        files.write(
            _record(root), store.pack({"v": 1, "pid": pid, "token": procs.token(pid), "since": clock.now()})
        )
        coordinator.run()
    finally:
        files.unlink(_record(root))
        lock.release()


def log_path(root: str) -> str:
    """Where the coordinator leaves what it could not say otherwise."""
    return home.log(root)


def _called_off(root: str) -> bool:
    spawned = os.environ.get(SPAWNED)
    stopped = store.if_known(store.load, _stopped(root), {"at": float})
    return spawned is not None and stopped is not None and float(spawned) < stopped["at"]


def _on_its_way(root: str) -> bool:
    """Whether a coordinator that was spawned has yet to come so far as to take the lock."""
    spawned = store.load(_spawned(root), {"at": float, "pid": int, "token": (str, None)})
    stopped = store.load(_stopped(root), {"at": float})
    called_off = spawned is not None and stopped is not None and spawned["at"] < stopped["at"]
    return spawned is not None and not called_off and procs.alive(spawned["pid"], spawned["token"])


def _spawned(root: str) -> str:
    return root + "/coordinator-spawned.json"


def _stopped(root: str) -> str:
    return root + "/coordinator-stopped.json"


def _record(root: str) -> str:
    return root + "/coordinator.json"


def _spawn(root: str) -> None:
    """Start a coordinator of its own session and folder, so that neither a terminal's end nor an agent's takes it along."""
    now = clock.now()
    # A stop calls off who was spawned before it. After the clock was set back it would call this one off as well.
    files.unlink(_stopped(root))
    environment = {**clean_environment(os.environ), "TURNPOST_HOME": root, SPAWNED: repr(now)}
    process = subprocess.Popen(
        [sys.executable, "-m", "turnpost", "coordinator", "run"],
        cwd="/", env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    record = {"v": 1, "at": now, "pid": process.pid, "token": procs.token(process.pid)}
    files.write(_spawned(root), store.pack(record), durable=False)
