"""Every refusal and failure, one family per exit code."""

from __future__ import annotations


class TurnpostError(Exception):
    """A failure told to a person in one line.

    `rule` names what refused, `numbers` the figures behind it; both go into the JSON form of the error.
    """

    exit_code = 1
    default_rule = "bug"
    logged = False
    """Whether it stands in the audit log already."""

    def __init__(self, message: str, *, rule: str | None = None, **numbers: object) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule or self.default_rule
        self.numbers = numbers


class UsageError(TurnpostError):
    """The call's words are off."""

    exit_code = 2
    default_rule = "usage"


class Refused(TurnpostError):
    """A rule of delivery or routing says no; nothing was written."""

    exit_code = 3
    default_rule = "not-allowed"


class NotFound(TurnpostError):
    """No such agent, message, thread or session."""

    exit_code = 4
    default_rule = "unknown"


class TimedOut(TurnpostError):
    """What was waited for did not come in time."""

    exit_code = 5
    default_rule = "timeout"


class HarnessError(TurnpostError):
    """Claude Code is missing, or a call of it failed."""

    exit_code = 6
    default_rule = "claude"


class BadFile(TurnpostError):
    """A file that is not what turnpost wrote: a link, a device, too large, another owner's, or damaged."""

    default_rule = "bad-file"


class Newer(BadFile):
    """A record of a version that this turnpost does not know. It stays as it is, and only a newer one can use it."""

    exit_code = 3
    default_rule = "newer"


class LockBusy(TurnpostError):
    """Somebody else holds the lock for longer than the caller may wait."""

    exit_code = 5
    default_rule = "busy"
