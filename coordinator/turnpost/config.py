"""What a person may set: `$TURNPOST_HOME/config.toml`. Without the file the defaults hold, and nothing is imported for it.

`Config` is a plain dataclass that pydantic validates only when there is a file to distrust: `send` pays for pydantic
(some 90 ms) only where somebody changed a limit.

    body_bytes = 8000               # most bytes of UTF-8 in a body
    mailbox_size = 64               # most messages that wait for one recipient
    subagent_body_bytes = 4096      # most bytes of UTF-8 in a body to a subagent
    subagent_mailbox_size = 8       # most messages that wait for one subagent
    hold_step_seconds = 30.0        # how long a turn's end is held at a time while children work
    resume_attempts = 5             # resumes of one agent that may fail before its mail is given up
    resume_backoff_seconds = 2.0    # pause after the first failed resume; it doubles
    resume_confirm_seconds = 20.0   # how long a resumed session may take to show itself
    archive_after_days = 7          # whole days after which a day's messages are packed, when all are over
    archive_keep_days = 0           # packed days older than this are removed; 0 keeps all
    archive_keep_bytes = 0          # the oldest packed days over this size are removed; 0 keeps all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turnpost import toml_file
from turnpost.core import finals, outbox, rules, subagents

FILE = "config.toml"
RULE = "config"
_RANGES = {
    # JSON may write one byte as six (\u00e9), and a record is read up to 4 MiB.
    "body_bytes": (1, 500_000),
    "mailbox_size": (1, 100_000),
    "subagent_body_bytes": (1, 9_000),
    "subagent_mailbox_size": (1, 1_000),
    "hold_step_seconds": (0.1, rules.HOLDING),
    "resume_attempts": (1, 100),
    "resume_backoff_seconds": (0.05, 600.0),
    "resume_confirm_seconds": (1.0, 600.0),
    # From one day on: nothing is sent any more into the folder of a day that ended a day ago.
    "archive_after_days": (1, 36_500),
    "archive_keep_days": (0, 36_500),
    "archive_keep_bytes": (0, 1 << 50),
}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one home. Raises ValueError for a number out of its range."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"strict": True, "extra": "forbid"}

    body_bytes: int = outbox.BODY_LIMIT
    mailbox_size: int = outbox.MAILBOX_LIMIT
    subagent_body_bytes: int = subagents.BODY_LIMIT
    subagent_mailbox_size: int = subagents.MAILBOX_LIMIT
    hold_step_seconds: float = finals.STEP
    resume_attempts: int = 5
    resume_backoff_seconds: float = 2.0
    resume_confirm_seconds: float = 20.0
    archive_after_days: int = 7
    archive_keep_days: int = 0
    archive_keep_bytes: int = 0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:  # also refuses NaN
                raise ValueError(f"{name} is {value}, it may be {low} to {high}")


def load(root: str) -> Config:
    """The settings of a home. Raises UsageError (`config`), in one line, for a file that is not what it should be."""
    path = f"{root}/{FILE}"
    found = toml_file.values(path, RULE)
    if found is None:
        return Config()
    unknown = sorted(set(found) - set(_RANGES))
    if unknown:
        raise toml_file.fault(path, RULE, f"nothing is called '{unknown[0]}'; known are {', '.join(_RANGES)}")
    return toml_file.validated(path, RULE, Config, found)
