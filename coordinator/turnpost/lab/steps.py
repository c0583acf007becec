"""What a scripted model does with one request: small frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Say:
    """Answer with text; alone it ends the turn."""

    text: str


@dataclass(frozen=True)
class Tool:
    """Call one tool, e.g. `Tool("Bash", {"command": "true"})`; the turn goes on with its result."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Blocks:
    """Several blocks in one answer: text before a call, or a batch of calls that run in parallel."""

    parts: tuple[Say | Tool, ...]


@dataclass(frozen=True)
class Slow:
    """Wait `seconds` before doing `step`: a turn that is busy for that long."""

    seconds: float
    step: Step


@dataclass(frozen=True)
class Fail:
    """Answer with an HTTP error.

    Claude Code tries again after 408, 409, 429 and 5xx, and each try takes a step of the script; 400 ends the
    turn.
    """

    status: int


@dataclass(frozen=True)
class Hang:
    """Never answer: the request stays open until the model is closed or the client goes away."""


Answer: TypeAlias = Say | Tool | Blocks
Step: TypeAlias = Answer | Slow | Fail | Hang
