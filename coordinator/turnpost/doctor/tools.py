"""The tool server: whether sessions of the project know it, and whether it starts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from turnpost.core.environment import clean_environment
from turnpost.doctor.results import Check, ok, warn
from turnpost.install import servers

_SECONDS = 20.0
_MEND = "run `turnpost install` again; messages arrive all the same"


def check_all(project: Path, installed: bool) -> list[Check]:
    """Nothing where no hooks are installed. Raises SettingsRefused for a file that cannot be read."""
    if not installed:
        return []
    found = servers.registered(project)
    if not found:
        return [ok("tools", "the tools for agents are not registered here; launched agents have theirs")]
    return [check_server(path, command) for path, command in found]


def check_server(path: Path, command: Sequence[str]) -> Check:
    """A server whose input ends at once ends too, in peace."""
    said = _trouble(command)
    if said:
        return warn("tools", f"the tool server that {path} names does not start: {said}", _MEND)
    return ok("tools", f"the tool server that {path} names starts")


def _trouble(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            env=clean_environment(os.environ),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    return last[0] if done.returncode else ""
