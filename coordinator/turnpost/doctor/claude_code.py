"""The platform, and the installed Claude Code: is it there, and recent enough?"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from turnpost.core.errors import HarnessError
from turnpost.doctor.results import Check, fail, ok, warn
from turnpost.harness import MINIMUM, Claude, Session

NAME = "claude"
_INSTALL = "install Claude Code, or set TURNPOST_CLAUDE to its path"


class Found(NamedTuple):
    """What was found out about Claude Code. `sessions` is None when it did not list them."""

    binary: str | None
    version: tuple[int, ...] | None
    trouble: str = ""
    sessions: tuple[Session, ...] | None = None


def look() -> Found:
    """Find Claude Code, ask its version and its sessions."""
    try:
        claude = Claude.find()
    except HarnessError as error:
        return Found(None, None, error.message)
    try:
        version = claude.version()
    except HarnessError as error:
        return Found(claude.binary, None, error.message)
    try:
        return Found(claude.binary, version, "", tuple(claude.listing()))
    except HarnessError as error:
        return Found(claude.binary, version, error.message)


def check_platform(system: str = os.name, platform: str = sys.platform) -> Check:
    """Whether turnpost can run here at all."""
    if system == "nt":
        return fail(
            "platform", "Windows has neither the locks nor the FIFOs turnpost needs", "use it inside WSL"
        )
    if platform.startswith("linux") or platform == "darwin":
        return ok("platform", f"{platform}, Python {sys.version.split()[0]}")
    return warn(
        "platform", f"turnpost was never tried on {platform}", "report how it goes; Linux and macOS are known"
    )


def check_claude(found: Found) -> Check:
    """Whether there is a Claude Code that delivery can rest on."""
    if found.binary is None:
        return fail(NAME, found.trouble, _INSTALL)
    if found.version is None:
        return fail(NAME, found.trouble, _INSTALL)
    shown = f"Claude Code {_dotted(found.version)} at {found.binary}"
    if found.version < MINIMUM:
        return fail(NAME, f"{shown} is older than {_dotted(MINIMUM)}", "update Claude Code")
    if found.sessions is None:
        return fail(
            NAME, f"{shown} does not list its sessions: {found.trouble}", "run `claude agents --json`"
        )
    return ok(NAME, shown)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
