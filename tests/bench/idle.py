"""What idle agents' waiters and the coordinator cost while nothing happens, against as many Pythons that sleep."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.places import Played
from tests.bench.rounds import NotMeasured, until
from turnpost.core import bell, store
from turnpost.lab.progress import Progress

AGENTS, QUICK_AGENTS = 200, 20
"""Idle agents, and sleepers: what all Pythons share (PSS) is then shared by as many of either kind."""
SECONDS, QUICK = 60.0, 10.0
BARE = "a sleeping python3 -I -S"
CPU_LIMIT = 10.0
"""Milliseconds in a minute: one tick of the kernel's accounting, below which `ps` and `top` show nothing."""
COORDINATOR_LIMIT = 60.0
"""Milliseconds in a minute: a thousandth of a processor, which `top` shows as 0.1."""
MEMORY_LIMIT = 1.5
_KIB = 1024


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """Waiters, sleepers and a coordinator in the same minute."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise NotMeasured("this system has no /proc/PID/smaps_rollup")
    count, seconds = (QUICK_AGENTS, QUICK) if quick else (AGENTS, SECONDS)
    with Played() as place:
        sleepers: list[int] = []
        waiters: list[int] = []
        for number in range(count):
            progress.update(f"idle: agent {number + 1} of {count}")
            sleepers.append(_sleeper(place))
            waiters.append(_waiter(place))
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
        _figure(f"waiter CPU ({count})", "ms/min", cpu, waiters, sleepers, limit=CPU_LIMIT),
        _figure(f"waiter memory ({count})", "MB", memory, waiters, sleepers, ratio_limit=MEMORY_LIMIT),
        _figure("coordinator CPU", "ms/min", cpu, [coordinator], sleepers[:1], limit=COORDINATOR_LIMIT),
        _figure("coordinator memory", "MB", memory, [coordinator], sleepers[:1]),
    ]


def _figure(
    name: str, unit: str, found: dict[int, float], pids: list[int], sleepers: list[int], *,
    limit: float | None = None, ratio_limit: float | None = None,
) -> Measured:  # fmt: skip
    values, against = ([found[pid] for pid in group] for group in (pids, sleepers))
    return Measured(name, unit, tuple(values), BARE, tuple(against), ratio_limit=ratio_limit, limit=limit)


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
    started = subprocess.Popen(
        command, env=place.env("none"), cwd=place.project,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return started.pid


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
