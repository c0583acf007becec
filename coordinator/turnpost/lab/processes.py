"""The processes that belong to a home folder, found by the HOME in their environment, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One running process."""

    pid: int
    command: str


def in_home(home: Path) -> list[Process]:
    """The running processes that were started with `HOME` set to `home`, without the caller itself."""
    found = _from_ps(home) if sys.platform == "darwin" else _from_proc(home)
    return [process for process in found if process.pid != os.getpid()]


def end_all(home: Path, patience: float = 0.3) -> None:
    """End every process of `home`: asked first, killed after `patience` seconds, given up after 10 s."""
    begin = time.monotonic()
    while time.monotonic() - begin < 10.0:
        # Looked up anew each time: a process may start another while it is being ended.
        living = in_home(home)
        if not living:
            return
        number = signal.SIGTERM if time.monotonic() - begin < patience else signal.SIGKILL
        for process in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
        time.sleep(0.05)


def _from_proc(home: Path) -> Iterator[Process]:
    needle = b"HOME=" + os.fsencode(home)
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                yield Process(int(folder.name), line)
        except OSError:
            # It ended while we looked, or belongs to someone else.
            continue


def _from_ps(home: Path) -> Iterator[Process]:
    columns = "pid=,ppid=,command="
    listing = subprocess.run(["/bin/ps", "axeww", "-o", columns], capture_output=True, text=True, check=True)
    yield from parse_ps(listing.stdout, home)


def parse_ps(listing: str, home: Path) -> Iterator[Process]:
    """The processes of `home` in lines of pid, parent and command with environment.

    macOS hides the environment of the system's own programs, so the descendants of a process count too.
    """
    rows = [line.split(None, 2) for line in listing.splitlines()]
    parents = {int(row[0]): int(row[1]) for row in rows}
    commands = {int(row[0]): row[2] if len(row) > 2 else "" for row in rows}
    ours = {pid for pid, command in commands.items() if f" HOME={home} " in f"{command} "}
    for pid, command in commands.items():
        if _lineage(pid, parents) & ours:
            yield Process(pid, command)


def _lineage(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found
