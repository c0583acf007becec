"""The hooks and the tool server in Claude Code's configuration, as results like all others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnpost.actions import people
from turnpost.actions.audited import refusing
from turnpost.actions.results import Installed, InstalledFile
from turnpost.core import registry
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.install import InstallResult, Scope


def install(
    root: str,
    scope: Scope = "project",
    project: str | None = None,
    *,
    dry_run: bool = False,
    python: str | None = None,
    tools: bool = True,
    allow_tools: bool = False,
    speaker: Speaker | None = None,
) -> Installed:
    """Merge the hooks into the settings of a scope and register the tool server; `allow_tools` also permits its tools.

    `python` is the interpreter that runs the hooks. The person only. Raises Refused, and SettingsRefused for a file it cannot use and leaves alone.
    """
    from turnpost import install as hooks

    _persons(root, "install", speaker)
    done = hooks.install(
        scope, _folder(project), dry_run=dry_run, python=Path(python) if python else None, tools=tools,
        allow_tools=allow_tools,
    )  # fmt: skip
    return _shown(done, dry_run)


def uninstall(
    root: str,
    scope: Scope = "project",
    project: str | None = None,
    *,
    dry_run: bool = False,
    speaker: Speaker | None = None,
) -> Installed:
    """Undo an install: byte for byte, unless the file was edited since. It warns of the agents that are left without hooks.

    The person only. Raises as `install` does.
    """
    from turnpost import install as hooks

    _persons(root, "uninstall", speaker)

    done = _shown(hooks.uninstall(scope, _folder(project), dry_run=dry_run), dry_run)
    return done._replace(warnings=_left(root)) if done.changed and not dry_run else done


def _persons(root: str, what: str, speaker: Speaker | None) -> None:
    """An agent could take its own post away, or everybody's in the project."""
    with refusing(root, what, "", speaker):
        people.person(root, f"{what} the hooks", speaker)


def _left(root: str) -> tuple[str, ...]:
    """What becomes of the agents that have no hooks any more: Claude Code takes them from running sessions too."""
    from turnpost.service.resume import without_hooks

    stand = [(agent, people.standing(root, agent["key"])) for agent in registry.everyone(root)]
    alive = [(agent, how) for agent, how in stand if how.doing not in ("stopped", "lost")]
    runs = [agent["name"] for agent, how in alive if without_hooks(agent, how.state)]
    waits = [agent["name"] for agent, how in stand if how.waiting and without_hooks(agent, how.state)]
    told = (
        ("these run on and get no messages", runs),
        ("these have mail waiting, which will be given up", waits),
    )
    return tuple(f"{what}: {_some(names)}" for what, names in told if names)


def _some(names: Sequence[str], room: int = 3) -> str:
    more = len(names) - room
    return ", ".join(names[:room]) + (f" and {more} more" if more > 0 else "")


def _folder(project: str | None) -> Path:
    return Path(os.path.abspath(os.path.expanduser(project) if project else "."))


def _shown(done: InstallResult, dry_run: bool) -> Installed:
    files = tuple(
        InstalledFile(str(file.path), file.action, file.changed, file.diff, file.parts) for file in done.files
    )
    return Installed(str(done.path), done.scope, done.action, done.changed, dry_run, done.diff, files)
