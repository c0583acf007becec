"""The hooks and the tool server in Claude Code's configuration, as results like all others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from turnpost.actions.results import Installed, InstalledFile

if TYPE_CHECKING:
    from turnpost.install import InstallResult, Scope


def install(
    scope: Scope = "project",
    project: str | None = None,
    *,
    dry_run: bool = False,
    tools: bool = True,
    allow_tools: bool = False,
) -> Installed:
    """Merge the hooks into the settings of a scope and register the tool server; `allow_tools` also permits its tools.

    Raises SettingsRefused and leaves a file it cannot use alone.
    """
    from turnpost import install as hooks

    done = hooks.install(scope, _folder(project), dry_run=dry_run, tools=tools, allow_tools=allow_tools)
    return _shown(done, dry_run)


def uninstall(scope: Scope = "project", project: str | None = None, *, dry_run: bool = False) -> Installed:
    """Undo an install: byte for byte, unless the file was edited since."""
    from turnpost import install as hooks

    return _shown(hooks.uninstall(scope, _folder(project), dry_run=dry_run), dry_run)


def _folder(project: str | None) -> Path:
    return Path(os.path.abspath(os.path.expanduser(project) if project else "."))


def _shown(done: InstallResult, dry_run: bool) -> Installed:
    files = tuple(InstalledFile(str(file.path), file.action, file.changed, file.diff) for file in done.files)
    return Installed(str(done.path), done.scope, done.action, done.changed, dry_run, done.diff, files)
