"""The coordinator, and what it and the hooks wrote into the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from turnpost.core import clock, files, home, procs, store
from turnpost.core.errors import BadFile, LockBusy
from turnpost.doctor import spool
from turnpost.doctor.results import Check, fail, ok, warn
from turnpost.service import process

NAME = "coordinator"
_FAILURES = ("hook-failed", "trouble", "resume-failed")
_CUT_OFF = ("BrokenPipeError", "JSONDecodeError")
"""How a hook ends whose session is killed, or whose terminal is closed, while it runs: nothing is to be mended."""
_RECENT = 86_400.0


class Facts(NamedTuple):
    """Whether it runs, whether its record and its lock say so, and who needs it."""

    running: bool
    pid: int | None
    since: float | None
    record: bool
    locked: bool
    needed_by: tuple[str, ...] = ()


class Trouble(NamedTuple):
    """A failure that the log tells of."""

    at: float
    action: str
    error: str


def look(root: str, needed_by: Sequence[str]) -> Facts:
    """How the coordinator stands."""
    status = process.status(root)
    record = store.if_known(store.load, root + "/coordinator.json") is not None
    return Facts(status.running, status.pid, status.since, record, _locked(root), tuple(needed_by))


def check_coordinator(facts: Facts, now: float) -> list[Check]:
    """Whether somebody does what only the coordinator does."""
    if facts.running:
        age = clock.span(now - (facts.since or now))
        return [ok(NAME, f"runs as process {facts.pid} for {age}")]
    if facts.locked:
        line = "its lock is held, but no running coordinator has left a record"
        return [
            fail(NAME, line, "end the process that holds coordinator.lock, then `turnpost coordinator start`")
        ]
    if facts.needed_by:
        line = f"does not run, and mail waits that only it can bring: {', '.join(facts.needed_by[:5])}"
        return [fail(NAME, line, "`turnpost coordinator start`")]
    if facts.record:
        return [
            warn(
                NAME, "does not run; it was killed, its record is stale", "nothing: the next send starts one"
            )
        ]
    return [ok(NAME, "does not run and is not needed; a send that needs it starts it")]


def check_log(troubles: Sequence[Trouble], now: float) -> list[Check]:
    """What failed in the last day."""
    recent = [one for one in troubles if now - one.at < _RECENT]
    hooks = [one for one in recent if one.action == "hook-failed" and not one.error.startswith(_CUT_OFF)]
    others = [one for one in recent if one.action != "hook-failed"]
    checks: list[Check] = []
    for what, found in (("hooks", hooks), ("the coordinator", others)):
        if found:
            age = clock.span(now - found[-1].at)
            line = f"{what} failed {len(found)} times in the last day, last {age} ago: {found[-1].error}"
            checks.append(warn("log", line, "mend what the error names; what failed was tried again"))
    return checks


def troubles(root: str) -> list[Trouble]:
    """The failures that the log tells of."""
    try:
        data = files.read(home.log(root), 1 << 26)
    except (OSError, BadFile):
        return []
    found: list[Trouble] = []
    words = [f'"{action}"'.encode() for action in _FAILURES]
    for line in data.splitlines():
        if not any(word in line for word in words):
            continue
        try:
            entry = json.loads(line)
            if entry["action"] in _FAILURES:
                found.append(
                    Trouble(clock.parse(entry["at"]) or 0.0, entry["action"], str(entry.get("error")))
                )
        except (ValueError, KeyError, TypeError):
            continue  # cut off on a full disk
    return found


def _locked(root: str) -> bool:
    path = root + "/coordinator.lock"
    if not files.exists(path):
        return False
    if procs.LINUX:
        # Where the kernel tells, nothing is locked for the look: a coordinator that starts just now would give up.
        return spool.holder(path) is not None
    try:
        with files.Lock(path, 0.0):
            return False
    except LockBusy:
        return True
    except (OSError, BadFile):
        return False
