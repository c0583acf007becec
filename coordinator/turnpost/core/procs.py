"""Processes and their ancestors. A pid alone is no proof: the kernel gives it out again, so each comes with a start token."""

from __future__ import annotations

import os
import sys

LINUX = sys.platform.startswith("linux")


def token(pid: int) -> str | None:
    """What tells this process from a later one with the same pid; None when it is gone or a zombie."""
    if LINUX:
        fields = _stat(pid)
        return None if fields is None or fields[0] in ("Z", "X") else fields[19]
    line = _ps(pid, "stat=,lstart=")
    return None if not line or line.startswith("Z") else line.partition(" ")[2].strip()


def alive(pid: int | None, start: str | None) -> bool:
    """Whether the very process that had this pid and start token still runs."""
    return bool(pid) and bool(start) and token(pid or 0) == start


def parent(pid: int) -> int:
    """The parent's pid, 0 when there is none to be seen."""
    if LINUX:
        fields = _stat(pid)
        return int(fields[1]) if fields else 0
    line = _ps(pid, "ppid=")
    return int(line) if line and line.isdigit() else 0


def ancestors(pid: int) -> list[int]:
    """The parents of a process, nearest first, at most 64."""
    found: list[int] = []
    while len(found) < 64 and (pid := parent(pid)) > 1:
        found.append(pid)
    return found


def command(pid: int) -> list[str]:
    """The words a process was started with; empty when it cannot be seen."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read(1 << 20).split(b"\0")
        except OSError:
            return []
        return [os.fsdecode(word) for word in words[:-1]]
    line = _ps(pid, "args=", wide=True)
    return line.split() if line else []


def executable(pid: int) -> str:
    """The program file a process runs, as well as the platform tells."""
    if LINUX:
        try:
            return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            return ""
    return _ps(pid, "comm=") or ""


def environment_has(pid: int, assignment: bytes) -> bool:
    """Whether a process of ours was started with `NAME=value` in its environment."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return assignment in file.read(4 << 20).split(b"\0")
        except OSError:
            return False
    import subprocess

    shown = subprocess.run(
        ["/bin/ps", "eww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False
    )
    return assignment in shown.stdout.split()


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third on; the second may hold spaces and parentheses."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, 4096).rpartition(b")")[2].decode().split()  # the kernel gives it in one piece
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return None


def _ps(pid: int, columns: str, wide: bool = False) -> str | None:
    import subprocess

    words = ["/bin/ps", *(["-ww"] if wide else []), "-o", columns, "-p", str(pid)]
    shown = subprocess.run(words, capture_output=True, text=True, check=False, env={"LC_ALL": "C"})
    return shown.stdout.strip() or None
