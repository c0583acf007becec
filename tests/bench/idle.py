"""What an agent's waiter and the coordinator cost while nothing happens, against a Python that sleeps."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.places import Played
from tests.bench.rounds import NotMeasured, until
from turnpost.core import bell, store
from turnpost.lab.progress import Progress

SECONDS, QUICK = 60.0, 10.0
BARE = "a sleeping python3 -I -S"
CPU_LIMIT = 10.0
"""Milliseconds in a minute: one tick of the kernel's accounting, below which `ps` and `top` show nothing."""
_COUNT = 3
_KIB = 1024


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """Waiters, sleepers and a coordinator in the same minute."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise NotMeasured("this system has no /proc/PID/smaps_rollup")
    seconds = QUICK if quick else SECONDS
    with Played() as place:
        waiters = [_waiter(place) for _ in range(_COUNT)]
        sleepers = [_sleeper(place) for _ in range(_COUNT)]
        coordinator = place.coordinator()
        time.sleep(3.0)  # what a start leaves to do is not idling
        pids = [*waiters, *sleepers, coordinator]
        before = {pid: _cpu(pid) for pid in pids}
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            progress.update(f"idle: {left:.0f} s left")
            time.sleep(min(1.0, left))
        cpu = {pid: (_cpu(pid) - before[pid]) * 60.0 / seconds for pid in pids}
        memory = {pid: _memory(pid) for pid in pids}
    return [
        _figure("waiter CPU a minute", "ms", cpu, waiters, sleepers, CPU_LIMIT),
        _figure("waiter memory", "MB", memory, waiters, sleepers),
        _figure("coordinator CPU a minute", "ms", cpu, [coordinator] * _COUNT, sleepers),
        _figure("coordinator memory", "MB", memory, [coordinator] * _COUNT, sleepers),
    ]


def _figure(
    name: str, unit: str, found: dict[int, float], pids: list[int], sleepers: list[int], limit: float | None = None
) -> Measured:  # fmt: skip
    values, against = ([found[pid] for pid in group] for group in (pids, sleepers))
    return Measured(name, unit, tuple(values), BARE, tuple(against), limit=limit)


def _waiter(place: Played) -> int:
    session_id = place.session()
    key = place.key(session_id)
    payload = place.payload(session_id, "Stop", stop_hook_active=False)
    process = place.start(place.command("Stop", "waiter.py"), session_id, payload)

    def armed() -> bool:
        waiter = store.load_waiter(place.root, key)
        return waiter is not None and waiter["pid"] == process.pid and bell.listening(place.root, key)

    until(armed, "a waiter is armed")
    return process.pid


def _sleeper(place: Played) -> int:
    command = [place.interpreter(), "-I", "-S", "-c", "import time; time.sleep(999)"]
    return place.start(command, "none").pid


def _cpu(pid: int) -> float:
    """Milliseconds on a processor so far."""
    try:
        # To the nanosecond, where the kernel keeps it; the ticks of `stat` are ten milliseconds.
        total = 0
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    return total / 1e6


def _memory(pid: int) -> float:
    """Megabytes of memory, shared pages by their share (PSS)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / _KIB
    raise NotMeasured(f"/proc/{pid}/smaps_rollup names no Pss")
