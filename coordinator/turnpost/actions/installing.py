"""The hooks in Claude Code's settings, as results like all others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from turnpost.actions.results import Installed

if TYPE_CHECKING:
    from turnpost.install import InstallResult, Scope


def install(scope: Scope = "project", project: str | None = None, *, dry_run: bool = False) -> Installed:
    """Merge the hooks into the settings of a scope. Raises SettingsRefused and leaves a file it cannot use alone."""
    from turnpost import install as hooks

    return _shown(hooks.install(scope, _folder(project), dry_run=dry_run), dry_run)


def uninstall(scope: Scope = "project", project: str | None = None, *, dry_run: bool = False) -> Installed:
    """Undo an install: byte for byte, unless the file was edited since."""
    from turnpost import install as hooks

    return _shown(hooks.uninstall(scope, _folder(project), dry_run=dry_run), dry_run)


def _folder(project: str | None) -> Path:
    return Path(os.path.abspath(os.path.expanduser(project) if project else "."))


def _shown(done: InstallResult, dry_run: bool) -> Installed:
    return Installed(str(done.path), done.scope, done.action, done.changed, dry_run, done.diff)
