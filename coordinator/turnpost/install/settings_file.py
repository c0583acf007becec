"""The settings files of Claude Code: where they are, how they are read and written."""

from __future__ import annotations

import difflib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from turnpost.core import files
from turnpost.core.errors import BadFile
from turnpost.install import json_text
from turnpost.install.errors import SettingsRefused

Scope = Literal["project", "local", "user"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
LIMIT = 4 * 1024 * 1024  # bytes
_NEW_MODE = 0o600
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file as it was read. `path` is where it is written: a link's target, so that dotfiles stay links."""

    path: Path
    data: bytes | None  # None: there is none
    text: str
    settings: dict[str, Any]
    mode: int


def config_dir() -> Path:
    """The user's configuration folder of Claude Code: ``$CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    return Path(os.path.abspath(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")))


def settings_path(scope: Scope, project_dir: Path) -> Path:
    """Where the settings of a scope lie, absolute; the project's folder counts for project and local only."""
    if scope == "user":
        return config_dir() / "settings.json"
    name = "settings.json" if scope == "project" else "settings.local.json"
    return Path(os.path.abspath(project_dir)) / ".claude" / name


def read_settings(path: Path) -> SettingsFile:
    """Read a settings file; a missing one is an empty object.

    Raises SettingsRefused, in one line with the path, for a file that is not a regular one of this user, over
    4 MiB, no UTF-8, or no JSON object.
    """
    target = _target(path)
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
        data = files.read(str(target), LIMIT)
    except FileNotFoundError:
        return SettingsFile(target, None, "", {}, _NEW_MODE)
    except BadFile as error:
        raise SettingsRefused(f"{error.message}; it was left alone") from error
    except OSError as error:
        raise SettingsRefused(f"{path} cannot be read: {error.strerror}") from error
    text, settings = parse_settings(path, data)
    return SettingsFile(target, data, text, settings, mode)


def changed_text(file: SettingsFile, settings: dict[str, Any]) -> str:
    """The text of *file* holding *settings*, in the file's own style."""
    return json_text.rewrite(file.text, settings) if file.data is not None else json_text.render(settings)


def encode(path: Path, text: str) -> bytes:
    """The bytes to write. Raises SettingsRefused when a path in it is no Unicode text."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SettingsRefused(f"{path} cannot hold a path that is no Unicode text") from error


def write_settings(file: SettingsFile, data: bytes | None) -> bool:
    """Put *data* in the place of what was read (None: no file), keeping its mode; False when it changed meanwhile.

    Raises SettingsRefused when the folder cannot be written to.
    """
    path = str(file.path)
    try:
        if _current(path) != file.data:
            # Claude Code writes here too, without our lock. The rename below closes all but an instant of the gap.
            return False
        # Under the lock of installs, so whoever began one of these was killed.
        files.sweep(str(file.path.parent), 0.0, file.path.name)
        if data is None:
            files.unlink(path)
            return True
        files.mkdir(str(file.path.parent))
        files.write(path, data, mode=file.mode)
        os.chmod(path, file.mode)  # the umask may have narrowed it
    except OSError as error:
        raise SettingsRefused(f"{path} cannot be written: {error.strerror}") from error
    return True


def difference(path: Path, old: str | None, new: str | None) -> str:
    """A unified diff of two texts of a file (None: no file); empty when they are the same."""
    lines = difflib.unified_diff(
        (old or "").splitlines(keepends=True),
        (new or "").splitlines(keepends=True),
        fromfile=str(path) if old is not None else os.devnull,
        tofile=str(path) if new is not None else os.devnull,
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def parse_settings(path: Path, data: bytes) -> tuple[str, dict[str, Any]]:
    """The text and the object in a settings file's bytes. Raises SettingsRefused, naming *path*."""
    if data.startswith(_BOM):
        raise SettingsRefused(f"{path} begins with a byte order mark; save it as plain UTF-8")
    try:
        text = data.decode("utf-8")
        settings = json_text.load(text)
    except UnicodeDecodeError as error:
        raise SettingsRefused(f"{path} is no UTF-8 text (byte {error.start}); it was left alone") from error
    except json_text.NotJson as error:
        raise SettingsRefused(
            f"{path} is no JSON that turnpost can change: {error}; it was left alone"
        ) from error
    if not json_text.is_object(settings):
        raise SettingsRefused(f"{path} is no JSON object; it was left alone")
    return text, settings


def _target(path: Path) -> Path:
    """Where the file really is. A link may lead only from this user's folder to this user's file."""
    target = Path(os.path.realpath(path))
    if not path.is_symlink():
        return target
    try:
        owners = {os.lstat(path).st_uid, os.stat(target).st_uid, os.stat(target.parent).st_uid}
    except FileNotFoundError:
        raise SettingsRefused(f"{path} is a link to {target}, which is not there") from None
    except OSError as error:
        raise SettingsRefused(f"{path} is a link that cannot be followed: {error.strerror}") from error
    if owners != {os.geteuid()}:
        raise SettingsRefused(f"{path} is a link to {target}, which is not this user's own")
    return target


def _current(path: str) -> bytes | None:
    try:
        return files.read(path, LIMIT)
    except (FileNotFoundError, BadFile):
        return None
