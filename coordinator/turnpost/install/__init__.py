"""The hooks and the tool server in Claude Code's configuration: put in, taken out, looked for. Nothing here prints."""

from turnpost.install.actions import (
    Action,
    FileResult,
    InstallResult,
    install,
    settings_for_launch,
    tools_for_launch,
    uninstall,
)
from turnpost.install.errors import SettingsRefused
from turnpost.install.settings_file import SCOPES, Scope
from turnpost.install.survey import InstalledHook, installed_hooks, settings_problems

__all__ = [
    "SCOPES",
    "Action",
    "FileResult",
    "InstallResult",
    "InstalledHook",
    "Scope",
    "SettingsRefused",
    "install",
    "installed_hooks",
    "settings_for_launch",
    "settings_problems",
    "tools_for_launch",
    "uninstall",
]
