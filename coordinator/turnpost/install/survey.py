"""Where turnpost's hooks are installed by now: what `doctor` looks at for doubles and for hooks that cannot run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import is_object
from turnpost.install.merge import command_of, entries
from turnpost.install.settings_file import LIMIT, SCOPES, Scope, config_dir, read_settings, settings_path

# A marketplace's clone can be a whole repository: its hooks lie near the top.
_PLUGIN_DEPTH = 8
_MANAGED = "/etc/claude-code"
_MANAGED_DARWIN = "/Library/Application Support/ClaudeCode"


Origin = Scope | Literal["managed", "plugin"]


class InstalledHook(NamedTuple):
    """One hook entry of turnpost's. `command` is the program and its arguments, the script before the last."""

    scope: Origin
    path: Path
    event: str
    command: tuple[str, ...]

    @property
    def script(self) -> Path:
        """The hook script it runs."""
        return Path(self.command[-2])


def installed_hooks(project_dir: Path) -> list[InstalledHook]:
    """Every hook of turnpost's that a session in *project_dir* can meet.

    Looks at the project's, local, user's and managed settings and at the plugins' ``hooks.json``, whether a plugin
    is switched on or not. A file that cannot be read holds none here; see `settings_problems`.
    """
    found: list[InstalledHook] = []
    for scope, path in _settings_paths(project_dir).items():
        try:
            settings = read_settings(path).settings
        except SettingsRefused:
            continue
        found += [InstalledHook(scope, path, event, command_of(entry)) for event, entry in entries(settings)]
    for origin, path in chain(_managed(), _plugins()):
        settings = _foreign(path)
        found += [InstalledHook(origin, path, event, command_of(entry)) for event, entry in entries(settings)]
    return found


def settings_problems(project_dir: Path) -> list[SettingsRefused]:
    """Why a settings file of the project or the user cannot be read; one error per file, none when all are fine."""
    problems: list[SettingsRefused] = []
    for path in _settings_paths(project_dir).values():
        try:
            read_settings(path)
        except SettingsRefused as error:
            problems.append(error)
    return problems


def _settings_paths(project_dir: Path) -> dict[Scope, Path]:
    """The three files; in the home folder the project's is the user's, and counts once, as the user's."""
    paths: dict[Scope, Path] = {scope: settings_path(scope, project_dir) for scope in SCOPES}
    if paths["project"] == paths["user"]:
        del paths["project"]
    return paths


def _managed() -> Iterator[tuple[Origin, Path]]:
    yield "managed", Path(_MANAGED_DARWIN if sys.platform == "darwin" else _MANAGED) / "managed-settings.json"


def _plugins() -> Iterator[tuple[Origin, Path]]:
    root = config_dir() / "plugins"
    for folder, folders, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        folders[:] = sorted(folders) if depth < _PLUGIN_DEPTH else []
        folders[:] = [name for name in folders if name not in (".git", "node_modules")]
        if "hooks.json" in names:
            yield "plugin", Path(folder) / "hooks.json"


def _foreign(path: Path) -> dict[str, Any]:
    """A file that others look after, maybe as another user: what cannot be read as an object holds nothing."""
    try:
        if not path.is_file() or path.stat().st_size > LIMIT:
            return {}
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if is_object(value) else {}
