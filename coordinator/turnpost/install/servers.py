"""The tool server in Claude Code's configuration: its entry, and the files that name it.

It goes into `~/.claude.json`, for all projects or for one, which Claude Code takes without a question, in the worktrees of
a project too (measured, see docs/architecture.md). A project's `.mcp.json` it asks about: approved in the project, a
session in a worktree asks all the same, and a background session that has to ask stands still before its first request.
Claude Code rewrites its file itself, under a lock of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnpost.core import clock, files
from turnpost.install.edits import Entry, Words
from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import is_list, is_object
from turnpost.install.settings_file import Scope, read_settings

NAME = "turnpost"
TOOLS = tuple(f"mcp__{NAME}__{tool}" for tool in ("list", "send", "wait", "reply", "cancel"))
"""The tools as permissions name them."""
ALLOWED = Words(("permissions", "allow"), TOOLS)
_WORDS = ["-m", "turnpost", "mcp"]
_LOCK_SECONDS = 5.0
_STALE_SECONDS = 10.0  # as Claude Code counts: whoever holds the lock touches it more often than that


def entry() -> dict[str, Any]:
    """How Claude Code starts the server: by this installation's own Python, which has what the server needs.

    `-P`: in a project with a folder called `mcp` the server must not import that.
    """
    return {"type": "stdio", "command": os.path.abspath(sys.executable), "args": ["-P", *_WORDS]}


def is_ours(found: object) -> bool:
    """Whether a server's entry was written by turnpost, by this install or another."""
    if not is_object(found):
        return False
    args = found.get("args")
    return is_list(args) and args[-len(_WORDS) :] == _WORDS


def config() -> dict[str, Any]:
    """What `--mcp-config` takes."""
    return {"mcpServers": {NAME: entry()}}


def registration(scope: Scope, project_dir: Path) -> tuple[Path, Entry]:
    """The file that names the server for a scope, and what is put into it."""
    if scope in ("project", "local"):
        return global_path(), _entry("projects", os.path.realpath(project_dir), "mcpServers")
    return global_path(), _entry("mcpServers")


def global_path() -> Path:
    """Claude Code's own file: `.claude.json` in ``$CLAUDE_CONFIG_DIR``, else in the home folder."""
    return (
        Path(os.path.abspath(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~"))) / ".claude.json"
    )


def registered(project_dir: Path) -> list[tuple[Path, list[str]]]:
    """Each file that names our server for a session in the project, with the command that starts it there.

    Raises SettingsRefused for a file that cannot be read.
    """
    found: list[tuple[Path, list[str]]] = []
    scopes: tuple[Scope, ...] = ("project", "user")
    for scope in scopes:
        path, edit = registration(scope, project_dir)
        value = edit.find(read_settings(path).settings)
        if is_object(value) and is_ours(value) and isinstance(value.get("command"), str):
            found.append((path, [value["command"], *map(str, value["args"])]))
    return found


@contextmanager
def claude_lock(path: Path) -> Generator[None]:
    """Keep Claude Code from writing its file meanwhile. Raises SettingsRefused when it is busy for long."""
    if path != global_path():
        yield
        return
    lock = f"{os.path.realpath(path)}.lock"
    files.mkdir(os.path.dirname(lock))
    _take(lock)
    try:
        yield
    finally:
        _leave(lock)


def _take(lock: str) -> None:
    end = clock.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.mkdir(lock)
            return
        except FileExistsError:
            if clock.monotonic() > end:
                raise SettingsRefused(
                    f"Claude Code has held {lock} for {_LOCK_SECONDS:g} s; try again"
                ) from None
        except OSError as error:
            raise SettingsRefused(f"{lock} cannot be made: {error.strerror}") from error
        if _stale(lock):
            _leave(lock)
        else:
            clock.sleep(0.05)


def _stale(lock: str) -> bool:
    try:
        return not 0 <= clock.now() - os.stat(lock).st_mtime <= _STALE_SECONDS
    except OSError:
        return False


def _leave(lock: str) -> None:
    try:
        os.rmdir(lock)
    except OSError:
        return  # another has taken it for stale


def _entry(*around: str) -> Entry:
    return Entry((*around, NAME), entry(), is_ours)
