"""What the doctor answers: one list of checks."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One thing that was looked at. `line` says what was seen, `mend` what to do; it is empty when all is well."""

    name: str
    status: Status
    line: str
    mend: str = ""


class Diagnosis(NamedTuple):
    """All checks, in the order they were made."""

    home: str
    project: str
    checks: tuple[Check, ...]

    @property
    def failed(self) -> bool:
        """Whether anything keeps messages from being delivered."""
        return any(check.status == "fail" for check in self.checks)


def ok(name: str, line: str) -> Check:
    """A check that found nothing wrong."""
    return Check(name, "ok", line)


def warn(name: str, line: str, mend: str) -> Check:
    """Something odd that delivery survives."""
    return Check(name, "warn", line, mend)


def fail(name: str, line: str, mend: str) -> Check:
    """Something that keeps messages from being delivered."""
    return Check(name, "fail", line, mend)
