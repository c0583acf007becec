"""Installing the hooks into a settings file and taking them out again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from turnpost.core import files
from turnpost.core.errors import LockBusy
from turnpost.install import backup
from turnpost.install.backup import Backup
from turnpost.install.errors import SettingsRefused
from turnpost.install.interpreter import chosen_python, default_python
from turnpost.install.merge import command_of, entries, hooks_block, merge, remove
from turnpost.install.settings_file import (
    Scope,
    SettingsFile,
    changed_text,
    difference,
    encode,
    parse_settings,
    read_settings,
    settings_path,
    write_settings,
)

Action = Literal["installed", "updated", "removed", "restored", "unchanged"]
_LOCK_SECONDS = 10.0
_TRIES = 3


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What was done to a settings file, or with a dry run what would be.

    `diff` is a unified diff, empty when nothing changes. `action` is ``installed`` (no hooks of ours before),
    ``updated`` (older ones replaced), ``removed`` (our entries only, the file was edited since), ``restored`` (byte
    for byte as before the install) or ``unchanged``.
    """

    path: Path
    scope: Scope
    changed: bool
    diff: str
    action: Action


@dataclass(frozen=True, slots=True)
class _Plan:
    action: Action
    data: bytes | None  # what the file becomes; None: no file
    record: Backup | None  # what is kept for an uninstall; None: nothing


def install(
    scope: Scope, project_dir: Path, *, dry_run: bool = False, python: Path | None = None
) -> InstallResult:
    """Merge turnpost's hooks into the settings of a scope; twice is once.

    *python* is the interpreter that runs the hooks (default: the one under this process's environment). Raises
    SettingsRefused when the file or the interpreter cannot be used; nothing is written then.
    """
    block = _block(python)
    return _apply(scope, project_dir, lambda file: _plan_install(file, block), dry_run=dry_run)


def uninstall(scope: Scope, project_dir: Path, *, dry_run: bool = False) -> InstallResult:
    """Undo `install`: the file as it was, byte for byte, or without our entries when a person edited it since.

    Raises SettingsRefused like `install`.
    """
    return _apply(scope, project_dir, _plan_uninstall, dry_run=dry_run)


def settings_for_launch(python: Path | None = None) -> dict[str, Any]:
    """``{"hooks": …}`` for the ``--settings`` of a launched agent. Raises SettingsRefused for a bad interpreter."""
    return {"hooks": _block(python)}


def _block(python: Path | None) -> dict[str, Any]:
    block = hooks_block(chosen_python(python) if python else default_python())
    for _, entry in entries({"hooks": block}):
        script = command_of(entry)[-2]
        if not os.path.isfile(script):
            raise SettingsRefused(f"this installation of turnpost lacks {script}; install turnpost again")
    return block


def _apply(
    scope: Scope, project_dir: Path, plan: Callable[[SettingsFile], _Plan], *, dry_run: bool
) -> InstallResult:
    path = settings_path(scope, project_dir)
    if scope != "user" and not project_dir.is_dir():
        raise SettingsRefused(f"there is no folder {project_dir}")
    if dry_run:
        # Without the lock: it would make a folder, and a dry run leaves nothing behind.
        file = read_settings(path)
        return _result(scope, path, file, _planned(path, file, plan))
    try:
        files.mkdir(backup.folder())
        with files.Lock(backup.folder() + "/lock", _LOCK_SECONDS):
            for _ in range(_TRIES):
                file = read_settings(path)
                planned = _planned(path, file, plan)
                if planned.action == "unchanged" or _carry_out(file, planned):
                    return _result(scope, path, file, planned)
    except LockBusy as error:
        raise SettingsRefused(
            f"another install has been running for {_LOCK_SECONDS:g} s; try again"
        ) from error
    except OSError as error:
        raise SettingsRefused(
            f"{error.filename or backup.folder()} cannot be used: {error.strerror}"
        ) from error
    raise SettingsRefused(f"{path} keeps changing under another program; try again")


def _planned(path: Path, file: SettingsFile, plan: Callable[[SettingsFile], _Plan]) -> _Plan:
    try:
        return plan(file)
    except SettingsRefused as error:
        if str(path) in error.message:
            raise
        raise SettingsRefused(f"{path}: {error.message}; it was left alone") from error


def _plan_install(file: SettingsFile, block: dict[str, Any]) -> _Plan:
    merged = merge(file.settings, block)
    record = backup.load(file.path)
    if file.data is not None and merged == file.settings:
        return _Plan("unchanged", file.data, record)
    data = encode(file.path, changed_text(file, merged))
    had = bool(entries(file.settings))
    if record is None or not record.wrote(file.data):
        record = Backup(_without_ours(file) if had else file.data, (), not file.path.parent.exists())
    return _Plan("updated" if had else "installed", data, record.adding(data))


def _plan_uninstall(file: SettingsFile) -> _Plan:
    record = backup.load(file.path)
    if file.data is None or not (entries(file.settings) or (record and record.wrote(file.data))):
        return _Plan("unchanged", file.data, None)
    rest = remove(file.settings)
    # Claude Code rewrites the file too, when a permission is granted and taken back, say: then the letters differ
    # and the content does not.
    if record and (record.wrote(file.data) or rest == _content(file.path, record)):
        return _Plan("restored", record.original, None)
    return _Plan("removed", encode(file.path, changed_text(file, rest)), None)


def _without_ours(file: SettingsFile) -> bytes:
    """What an uninstall gives back when the first install's record is lost or the file was edited since."""
    return encode(file.path, changed_text(file, remove(file.settings)))


def _content(path: Path, record: Backup) -> dict[str, Any]:
    if record.original is None:
        return {}
    return parse_settings(path, record.original)[1]


def _carry_out(file: SettingsFile, planned: _Plan) -> bool:
    before = backup.load(file.path)
    if planned.record is not None:
        backup.save(file.path, planned.record)
    if not write_settings(file, planned.data):
        return False
    if planned.record is None:
        backup.forget(file.path)
        if planned.data is None and before is not None and before.made_folder:
            _remove_empty(file.path.parent)
    return True


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # Something else lives there by now, or the folder is not ours to remove; either way it stays.
        return


def _result(scope: Scope, path: Path, file: SettingsFile, planned: _Plan) -> InstallResult:
    new = None if planned.data is None else planned.data.decode("utf-8")
    diff = difference(path, None if file.data is None else file.text, new)
    return InstallResult(path, scope, planned.action != "unchanged", diff, planned.action)
