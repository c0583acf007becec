"""A closed world: a temporary home in which Claude Code and turnpost run, and which ends all it started.

with ScriptedModel() as model, World(claude, model.url) as world:
    folder = world.project("shop", git=True)
    world.claude("--bg", "[[lab:alpha]] begin", cwd=folder).check()
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import processes
from .detach import Detached, Finished, run
from .env import API_KEY, API_KEY_TAIL, closed_env
from .errors import LabError

KEEP = "TURNPOST_LAB_KEEP"
"""Environment variable: when set, worlds keep their folder, and say where it is."""


class World:
    """Folders, environment and processes of one laboratory; a context manager.

    `root` holds all of it: `home`, `projects`, `state` (TURNPOST_HOME), `bin` (first in PATH: `claude` and
    `turnpost`).
    """

    def __init__(
        self, claude: Path, model_url: str, *, keep: bool = False, settings: Mapping[str, Any] | None = None
    ) -> None:
        """`settings` go to `~/.claude/settings.json`; `keep` leaves the folder for a look after `close`."""
        # Not the default temporary folder: below it macOS leaves too few of the 104 bytes a socket's path may
        # have.
        self.root = Path(tempfile.mkdtemp(prefix="tp-", dir="/tmp")).resolve()
        self.home = self.root / "home"
        self.projects = self.root / "projects"
        self.state = self.root / "state"
        self.claude_path = claude.resolve()
        self.model_url = model_url
        self._keep = keep or bool(os.environ.get(KEEP))
        self._closed = False
        for folder in (self.home / ".claude", self.projects, self.root / "bin", self.root / "tmp"):
            folder.mkdir(parents=True)
        self._seed_home(settings or {})
        self._seed_commands()

    def project(self, name: str, *, git: bool = False, settings: Mapping[str, Any] | None = None) -> Path:
        """A new trusted folder; `settings` go to `.claude/settings.json`, `git` makes it a repository.

        The repository has one commit, without the settings. Make projects before the first session starts:
        Claude Code then keeps a spare session ready, which may not know of a repository trusted later.
        """
        folder = self.projects / name
        folder.mkdir()
        if git:
            self._make_repository(folder)
        if settings is not None:
            write_json(folder / ".claude" / "settings.json", settings)
        self.trust(folder)
        return folder

    def trust(self, folder: Path) -> None:
        """Trust a folder and what is below it up to the next repository, as if a person had answered."""
        path = self.home / ".claude.json"
        config = json.loads(path.read_text())
        config["projects"][str(folder.resolve())] = dict(_TRUSTED)
        write_json(path, config)

    def env(self) -> dict[str, str]:
        """The closed environment of every process of this world."""
        here = (self.root / "bin", Path(sys.executable).parent)
        return closed_env(self.home, path_first=here) | {
            "TMPDIR": str(self.root / "tmp"),
            "ANTHROPIC_BASE_URL": self.model_url,
            "ANTHROPIC_API_KEY": API_KEY,
            "TURNPOST_HOME": str(self.state),
            "TURNPOST_CLAUDE": str(self.claude_path),
        }

    def claude(
        self, *args: str, cwd: Path | None = None, input: str | bytes | None = None, timeout: float = 60.0
    ) -> Finished:
        """Run Claude Code to its end, as a person would."""
        command = (str(self.claude_path), *args)
        return run(command, cwd=cwd or self.root, env=self.env(), input=input, timeout=timeout)

    def turnpost(
        self, *args: str, cwd: Path | None = None, input: str | bytes | None = None, timeout: float = 60.0
    ) -> Finished:
        """Run turnpost to its end, as a person would: no Claude session is among its ancestors."""
        command = (*_TURNPOST, *args)
        return run(command, cwd=cwd or self.root, env=self._turnpost_env(), input=input, timeout=timeout)

    def start_turnpost(
        self, *args: str, cwd: Path | None = None, input: str | bytes | None = None
    ) -> Detached:
        """Start turnpost and go on, for commands that wait; otherwise like `turnpost`."""
        return Detached((*_TURNPOST, *args), cwd=cwd or self.root, env=self._turnpost_env(), input=input)

    def agents(self) -> list[dict[str, Any]]:
        """The sessions Claude Code lists, the ended ones too. Takes about 0.2 s, so not for a tight loop."""
        answer = self.claude("agents", "--json", "--all").check()
        try:
            listed = json.loads(answer.stdout)
        except ValueError as error:
            raise LabError(f"claude agents --json printed no JSON: {answer.stdout[:200]!r}") from error
        return list(listed)

    def leftovers(self) -> list[processes.Process]:
        """The processes of this world that are still alive; empty after `close`."""
        return processes.in_home(self.home)

    def close(self) -> None:
        """Stop everything that was started in this world, then remove its folder.

        A second call does nothing.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self.leftovers():
                self._stop_politely()
        finally:
            processes.end_all(self.home)
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _seed_home(self, settings: Mapping[str, Any]) -> None:
        write_json(self.home / ".claude" / "settings.json", {"permissions": _PERMISSIONS, **settings})
        write_json(
            self.home / ".claude.json",
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "bypassPermissionsModeAccepted": True,
                "customApiKeyResponses": {"approved": [API_KEY_TAIL], "rejected": []},
                # Holds for the folders below that are no repositories, also for those made later.
                "projects": {str(self.projects): _TRUSTED},
            },
        )
        # Commits of agents and of `project` need an author.
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Lab\n\temail = lab@example.invalid\n[init]\n\tdefaultBranch = main\n"
        )

    def _seed_commands(self) -> None:
        """Agents call `turnpost` by name, also from a source tree in which it is not installed."""
        (self.root / "bin" / "claude").symlink_to(self.claude_path)
        script = self.root / "bin" / "turnpost"
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in _python_env().items())
        script.write_text(f'#!/bin/sh\n{exports}exec {shlex.join(_TURNPOST)} "$@"\n')
        script.chmod(0o755)

    def _turnpost_env(self) -> dict[str, str]:
        return self.env() | _python_env()

    def _make_repository(self, folder: Path) -> None:
        (folder / "README.md").write_text(f"# {folder.name}\n")
        for args in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "Start")):
            run(("git", *args), cwd=folder, env=self.env(), timeout=30.0).check()

    def _stop_politely(self) -> None:
        """The coordinator first: it would resume the sessions that end here.

        The service is stopped with all its sessions at once; one by one they would take half a second each.
        """
        with contextlib.suppress(LabError):
            self.turnpost("coordinator", "stop", timeout=15.0)
        with contextlib.suppress(LabError):
            self.claude("daemon", "stop", "--any", timeout=15.0)

    def _remove(self) -> None:
        if self._keep:
            sys.stderr.write(f"kept: {self.root}\n")
            return
        # The last writes of a killed process can race with the removal.
        for _ in range(20):
            shutil.rmtree(self.root, ignore_errors=True)
            if not self.root.exists():
                return
            time.sleep(0.05)


_TURNPOST = (sys.executable, "-m", "turnpost")
# The safety check of auto mode needs a real model. Left alone, background sessions start in that mode and have
# every command refused, and interactive ones offer it in a dialog.
_PERMISSIONS = {"defaultMode": "default", "disableAutoMode": "disable"}
_TRUSTED = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}


def _python_env() -> dict[str, str]:
    """What Python needs to find turnpost: nothing when it is installed, its folder in a source tree."""
    try:
        metadata.distribution("turnpost")
    except metadata.PackageNotFoundError:
        return {"PYTHONPATH": str(Path(__file__).parents[2])}
    return {}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step, so that a session that reads it never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.lab")
    draft.write_text(json.dumps(value, indent=2))
    draft.replace(path)
