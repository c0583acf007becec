"""The hooks in Claude Code's settings: put in, taken out, looked for. Nothing here prints."""

from turnpost.install.actions import Action, InstallResult, install, settings_for_launch, uninstall
from turnpost.install.errors import SettingsRefused
from turnpost.install.settings_file import SCOPES, Scope
from turnpost.install.survey import InstalledHook, installed_hooks, settings_problems

__all__ = [
    "SCOPES",
    "Action",
    "InstallResult",
    "InstalledHook",
    "Scope",
    "SettingsRefused",
    "install",
    "installed_hooks",
    "settings_for_launch",
    "settings_problems",
    "uninstall",
]
