"""Installing the hooks and the tool server into Claude Code's files and taking them out again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from turnpost.core import files
from turnpost.core.errors import LockBusy
from turnpost.install import backup, servers
from turnpost.install.backup import Backup
from turnpost.install.edits import Edit, Hooks, add_all, remove_all
from turnpost.install.errors import SettingsRefused
from turnpost.install.interpreter import chosen_python, default_python
from turnpost.install.merge import command_of, entries, hooks_block
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
from turnpost.install.survey import installed_hooks

Action = Literal["installed", "updated", "removed", "restored", "unchanged"]
_PROJECTS = frozenset({"project", "local"})  # the scopes that register the tool server under the project
_LOCK_SECONDS = 10.0
_TRIES = 3


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was done to one file, or with a dry run what would be.

    `diff` is a unified diff, empty when nothing changes. `action` is ``installed`` (nothing of ours before),
    ``updated`` (an older install replaced, or something added to it), ``removed`` (our entries only, the file was
    edited since), ``restored`` (byte for byte as before the install) or ``unchanged``. `parts` are what was put in or
    taken out, each in a few words.
    """

    path: Path
    action: Action
    diff: str
    parts: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the file is, or would be, another one than before."""
        return self.action != "unchanged"


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What was done, file by file; the settings are the first."""

    scope: Scope
    files: tuple[FileResult, ...]

    @property
    def path(self) -> Path:
        """The settings file."""
        return self.files[0].path

    @property
    def changed(self) -> bool:
        """Whether any file has changed."""
        return any(file.changed for file in self.files)

    @property
    def diff(self) -> str:
        """All differences, one after the other."""
        return "".join(file.diff for file in self.files)

    @property
    def action(self) -> Action:
        """What was done to the settings; where those stay, to the next file that does not."""
        for file in self.files:
            if file.changed:
                return file.action
        return "unchanged"


@dataclass(frozen=True, slots=True)
class _Target:
    """A file, and what goes into it or comes out."""

    path: Path
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    action: Action
    data: bytes | None  # what the file becomes; None: no file
    record: Backup | None  # what is kept for an uninstall; None: nothing


_Planner = Callable[[SettingsFile, Sequence[Edit]], _Plan]


def install(
    scope: Scope,
    project_dir: Path,
    *,
    dry_run: bool = False,
    python: Path | None = None,
    tools: bool = True,
    allow_tools: bool = False,
) -> InstallResult:
    """Merge turnpost's hooks into the settings of a scope, and register its tool server there; twice is once.

    *python* is the interpreter that runs the hooks (default: the one under this process's environment). No permission
    is added unless *allow_tools* asks for it. Raises SettingsRefused when a file or the interpreter cannot be used;
    nothing is written then.
    """
    edits: list[Edit] = [Hooks(_block(python))]
    targets: list[_Target] = []
    if tools:
        path, edit = servers.registration(scope, project_dir)
        targets = [_Target(path, (edit,))]
    edits += [servers.ALLOWED] if allow_tools else []
    targets.insert(0, _Target(settings_path(scope, project_dir), tuple(edits)))
    return InstallResult(scope, _apply(scope, project_dir, targets, _plan_install, dry_run=dry_run))


def uninstall(scope: Scope, project_dir: Path, *, dry_run: bool = False) -> InstallResult:
    """Undo `install`: each file as it was, byte for byte, or without our entries when it was edited since.

    Raises SettingsRefused like `install`.
    """
    path, edit = servers.registration(scope, project_dir)
    targets = [_Target(settings_path(scope, project_dir), (Hooks({}), servers.ALLOWED))]
    if not _shared(scope, project_dir):
        targets.insert(0, _Target(path, (edit,)))
    done = _apply(scope, project_dir, targets, _plan_uninstall, dry_run=dry_run)
    return InstallResult(scope, done[::-1])


def _shared(scope: Scope, project_dir: Path) -> bool:
    """Whether another scope that is still installed needs the same registration of the tool server."""
    others = {hook.scope for hook in installed_hooks(project_dir)} - {scope}
    return scope in _PROJECTS and bool(others & _PROJECTS)


def settings_for_launch(python: Path | None = None) -> dict[str, Any]:
    """``{"hooks": …}`` for the ``--settings`` of a launched agent. Raises SettingsRefused for a bad interpreter."""
    return {"hooks": _block(python)}


def tools_for_launch() -> list[str]:
    """The options that give a launched agent the tools, allowed. Claude Code keeps them for a resume."""
    # With `=`: an option that takes several words would swallow what follows.
    return [f"--mcp-config={json.dumps(servers.config())}", f"--allowedTools={','.join(servers.TOOLS)}"]


def _block(python: Path | None) -> dict[str, Any]:
    block = hooks_block(chosen_python(python) if python else default_python())
    for _, entry in entries({"hooks": block}):
        script = command_of(entry)[-2]
        if not os.path.isfile(script):
            raise SettingsRefused(f"this installation of turnpost lacks {script}; install turnpost again")
    return block


def _apply(
    scope: Scope, project_dir: Path, targets: Sequence[_Target], plan: _Planner, *, dry_run: bool
) -> tuple[FileResult, ...]:
    if scope != "user" and not project_dir.is_dir():
        raise SettingsRefused(f"there is no folder {project_dir}")
    # All are looked at before the first is written. A dry run ends here, without the lock: that would make a folder.
    looks = [_look(target, plan) for target in targets]
    if dry_run:
        return tuple(_result(target, *look) for target, look in zip(targets, looks, strict=True))
    try:
        files.mkdir(backup.folder())
        with files.Lock(backup.folder() + "/lock", _LOCK_SECONDS):
            return tuple([_change(target, plan) for target in targets])
    except LockBusy as error:
        raise SettingsRefused(
            f"another install has been running for {_LOCK_SECONDS:g} s; try again"
        ) from error
    except OSError as error:
        raise SettingsRefused(
            f"{error.filename or backup.folder()} cannot be used: {error.strerror}"
        ) from error


def _change(target: _Target, plan: _Planner) -> FileResult:
    for _ in range(_TRIES):
        file, planned = _look(target, plan)
        if planned.action == "unchanged":
            if planned.record is None:
                backup.forget(file.path)  # an uninstall was killed before it did
            return _result(target, file, planned)
        with servers.claude_lock(target.path):
            if _carry_out(file, planned):
                return _result(target, file, planned)
    raise SettingsRefused(f"{target.path} keeps changing under another program; try again")


def _look(target: _Target, plan: _Planner) -> tuple[SettingsFile, _Plan]:
    file = read_settings(target.path)
    try:
        return file, plan(file, target.edits)
    except SettingsRefused as error:
        if str(target.path) in error.message:
            raise
        raise SettingsRefused(f"{target.path}: {error.message}; it was left alone") from error


def _plan_install(file: SettingsFile, edits: Sequence[Edit]) -> _Plan:
    merged = add_all(edits, file.settings)
    record = backup.load(file.path)
    if file.data is not None and merged == file.settings:
        return _Plan("unchanged", file.data, record)
    data = encode(file.path, changed_text(file, merged))
    had = any(edit.present(file.settings) for edit in edits)
    if record is None or not record.wrote(file.data):
        record = Backup(_without_ours(file, edits) if had else file.data, (), not file.path.parent.exists())
    return _Plan("updated" if had else "installed", data, record.adding(data))


def _plan_uninstall(file: SettingsFile, edits: Sequence[Edit]) -> _Plan:
    record = backup.load(file.path)
    wrote = record is not None and record.wrote(file.data)
    if file.data is None or not (wrote or any(edit.present(file.settings) for edit in edits)):
        return _Plan("unchanged", file.data, None)
    if record is not None and wrote:
        return _Plan("restored", record.original, None)
    original = _content(file.path, record) if record else {}
    rest = remove_all(edits, file.settings, original)
    # Claude Code rewrites the file too, when a permission is granted and taken back, say: then the letters differ
    # and the content does not.
    if record and rest == original:
        return _Plan("restored", record.original, None)
    return _Plan("removed", encode(file.path, changed_text(file, rest)), None)


def _without_ours(file: SettingsFile, edits: Sequence[Edit]) -> bytes:
    """What an uninstall gives back when the first install's record is lost or the file was edited since."""
    return encode(file.path, changed_text(file, remove_all(edits, file.settings, {})))


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


def _result(target: _Target, file: SettingsFile, planned: _Plan) -> FileResult:
    if planned.action == "unchanged":
        return FileResult(target.path, planned.action, "")
    new = None if planned.data is None else planned.data.decode("utf-8")
    diff = difference(target.path, None if file.data is None else file.text, new)
    settings = {} if planned.data is None else parse_settings(target.path, planned.data)[1]
    parts = [edit.shown(settings) or edit.shown(file.settings) for edit in target.edits]
    return FileResult(target.path, planned.action, diff, tuple(filter(None, parts)))
