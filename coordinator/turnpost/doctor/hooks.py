"""The installed hooks: where, how often, and whether what they run is still there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnpost.core import home, registry
from turnpost.core.errors import TurnpostError
from turnpost.data import hooks_dir, import_root
from turnpost.doctor.results import Check, fail, ok, warn
from turnpost.harness import Session
from turnpost.install import InstalledHook, installed_hooks, settings_for_launch, settings_problems
from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import is_object
from turnpost.install.merge import apart_from_interpreter, command_of, entries, interpreter_of
from turnpost.install.settings_file import SCOPES, read_settings, settings_path

_REINSTALL = "run `turnpost install --scope {}` again"


class Facts(NamedTuple):
    """What was read: the hooks, what this installation would write, and the settings around them."""

    hooks: tuple[InstalledHook, ...]
    wanted: tuple[tuple[str, tuple[str, ...]], ...]
    problems: tuple[str, ...] = ()
    switched_off: tuple[str, ...] = ()
    homes: tuple[tuple[str, str], ...] = ()
    fault: str = ""


def look(project: Path) -> Facts:
    """Read every settings file a session in the project meets."""
    hooks = tuple(installed_hooks(project))
    problems = tuple(error.message for error in settings_problems(project))
    off: list[str] = []
    homes: list[tuple[str, str]] = []
    for path in {settings_path(scope, project) for scope in SCOPES}:
        try:
            settings = read_settings(path).settings
        except SettingsRefused:
            continue
        if settings.get("disableAllHooks") is True:
            off.append(str(path))
        if given := _home_in(settings):
            homes.append((str(path), given))
    try:
        block = settings_for_launch()
    except TurnpostError as error:
        return Facts(hooks, (), problems, tuple(off), tuple(homes), error.message)
    wanted = tuple((event, command_of(entry)) for event, entry in entries(block))
    return Facts(hooks, wanted, problems, tuple(off), tuple(homes))


def to_fire(facts: Facts) -> list[list[tuple[str, tuple[str, ...]]]]:
    """What to run: each different set of entries once; where nothing is installed, what an install would write."""
    sets: dict[Path, list[tuple[str, tuple[str, ...]]]] = {}
    for hook in facts.hooks:
        sets.setdefault(hook.path, []).append((hook.event, hook.command))
    different: list[list[tuple[str, tuple[str, ...]]]] = []
    for one in sets.values() or [list(facts.wanted)]:
        if one not in different:
            different.append(one)
    return different


def check_all(facts: Facts, root: str) -> list[Check]:
    """Everything about the settings, without running a hook."""
    return [
        *check_readable(facts.problems),
        *check_switched_on(facts.switched_off),
        *check_installation(facts.fault),
        *check_installed(facts.hooks, facts.wanted),
        *check_once(facts.hooks),
        *check_programs(facts.hooks),
        *check_version(facts.hooks, facts.wanted),
        *check_home(facts.homes, root),
    ]


def check_readable(problems: Sequence[str]) -> list[Check]:
    """Settings that Claude Code cannot read either hold no hooks for it."""
    return [fail("settings", problem, "mend the file; hooks in it do not run") for problem in problems]


def check_switched_on(paths: Sequence[str]) -> list[Check]:
    """One word in a settings file switches all hooks off."""
    return [
        fail(
            "hooks on",
            f'{path} says "disableAllHooks": true, so no hook runs',
            "take that line out of the file",
        )
        for path in paths
    ]


def check_installation(fault: str) -> list[Check]:
    """Whether this turnpost could install hooks at all."""
    return [fail("installation", fault, "install turnpost again")] if fault else []


def check_installed(
    hooks: Sequence[InstalledHook], wanted: Sequence[tuple[str, tuple[str, ...]]]
) -> list[Check]:
    """Whether each place that has hooks of ours has all of them."""
    if not hooks:
        return [
            warn(
                "installed",
                "no hooks are installed for this project: of the sessions that start or are resumed here, only those of "
                "`turnpost launch` get messages",
                "run `turnpost install` in the project, or `turnpost install --scope user`",
            )
        ]
    checks: list[Check] = []
    needed = {(event, _script(command)) for event, command in wanted}
    for path in dict.fromkeys(hook.path for hook in hooks):
        here = [hook for hook in hooks if hook.path == path]
        scope = here[0].scope
        missing = sorted(
            f"{event} ({name})" for event, name in needed - {(hook.event, hook.script.name) for hook in here}
        )
        if missing:
            checks.append(fail("installed", f"{path} lacks {', '.join(missing)}", _REINSTALL.format(scope)))
        else:
            checks.append(ok("installed", f"all {len(here)} hooks in {path} ({scope})"))
    return checks


def check_once(hooks: Sequence[InstalledHook]) -> list[Check]:
    """Claude Code runs equal entries once; different ones all run, at the price of each."""
    places = list(dict.fromkeys((hook.scope, hook.path) for hook in hooks))
    if len(places) < 2:
        return []
    names = ", ".join(f"{path} ({scope})" for scope, path in places)
    commands = [{(h.event, h.command) for h in hooks if h.path == path} for _, path in places]
    if all(one == commands[0] for one in commands):
        return [ok("once", f"installed in {names}; the entries are equal, so each runs once")]
    return [
        warn(
            "once",
            f"installed in {names}, and the entries differ: every hook runs {len(places)} times (messages still "
            "arrive once)",
            f"keep one: `turnpost uninstall --scope {places[-1][0]}`, or switch the plugin off",
        )
    ]


def check_programs(hooks: Sequence[InstalledHook]) -> list[Check]:
    """Whether the interpreter, the package and the scripts that the entries name are there."""
    checks: list[Check] = []
    scopes = {
        path: hook.scope
        for hook in hooks
        for path in (interpreter_of(hook.command), _package(hook), str(hook.script))
    }
    for program in dict.fromkeys(interpreter_of(hook.command) for hook in hooks):
        if not (os.path.isfile(program) and os.access(program, os.X_OK)):
            line = f"the hooks' interpreter {program} is gone or cannot be run: hooks do nothing"
            checks.append(fail("interpreter", line, _REINSTALL.format(scopes[program])))
    for package in dict.fromkeys(map(_package, hooks)):
        if not os.path.isfile(f"{package}/turnpost/core/home.py"):
            line = f"there is no turnpost in {package} any more, where the hooks look for it: they do nothing"
            checks.append(fail("package", line, _REINSTALL.format(scopes[package])))
    gone = [
        script
        for script in dict.fromkeys(str(hook.script) for hook in hooks)
        if not os.access(script, os.R_OK)
    ]
    checks += [
        fail("script", f"{script} is gone: its hook does nothing", _REINSTALL.format(scopes[script]))
        for script in gone
    ]
    if hooks and not checks:
        program = interpreter_of(hooks[0].command)
        checks.append(ok("programs", f"the hooks' interpreter {program} and scripts are there"))
    return checks


def check_version(
    hooks: Sequence[InstalledHook], wanted: Sequence[tuple[str, tuple[str, ...]]]
) -> list[Check]:
    """Whether the entries are what this installation writes. The interpreter may be another: a person can choose it."""
    known = {(event, apart_from_interpreter(command)) for event, command in wanted}
    if not known:
        return []
    checks: list[Check] = []
    for path in dict.fromkeys(hook.path for hook in hooks):
        here = [hook for hook in hooks if hook.path == path]
        foreign = [
            hook for hook in here if hook.script.parent != hooks_dir() or _package(hook) != str(import_root())
        ]
        old = [hook for hook in here if (hook.event, apart_from_interpreter(hook.command)) not in known]
        if foreign:
            checks.append(
                warn(
                    "version",
                    f"{path} runs the turnpost in {_package(foreign[0])}, this one is in {import_root()}",
                    f"to use this one, {_REINSTALL.format(here[0].scope)}",
                )
            )
        elif old:
            names = ", ".join(sorted({hook.event for hook in old}))
            checks.append(
                warn(
                    "version",
                    f"{path} has entries of another version: {names}",
                    _REINSTALL.format(here[0].scope),
                )
            )
    if hooks and not checks:
        checks.append(ok("version", "the hooks belong to this version"))
    return checks


def check_home(homes: Sequence[tuple[str, str]], root: str) -> list[Check]:
    """Whether hooks write where this caller reads."""
    others = [(path, given) for path, given in homes if os.path.abspath(given) != root]
    return [
        fail(
            "home",
            f"{path} sets TURNPOST_HOME to {given} for the hooks, and this call uses {root}",
            "set TURNPOST_HOME to the same folder in both, or in neither",
        )
        for path, given in others
    ]


def check_known(sessions: Sequence[Session], project: Path, root: str, installed: bool) -> list[Check]:
    """Whether the sessions that run in the project now are known here: their hooks may use another home."""
    if not installed:
        return []
    inside = [one for one in sessions if one.pid and one.session_id and _is_below(one.cwd, project)]
    unknown = [one for one in inside if registry.key_of_session(root, str(one.session_id)) is None]
    if not unknown:
        return []
    names = ", ".join(f"{one.name or 'unnamed'} (pid {one.pid})" for one in unknown[:5])
    return [
        warn(
            "sessions",
            f"{len(unknown)} sessions in this project are not known here: {names}",
            f"start them again: they began before the install, or their TURNPOST_HOME is not {root}",
        )
    ]


def default_home(root: str) -> Check:
    """Says which home this is about, since every answer depends on it."""
    given = os.environ.get("TURNPOST_HOME")
    return ok("home", f"{root} ({'from TURNPOST_HOME' if given and home.home() == root else 'the default'})")


def _home_in(settings: dict[str, Any]) -> str:
    env = settings.get("env")
    given = env.get("TURNPOST_HOME") if is_object(env) else None
    return given if isinstance(given, str) else ""


def _is_below(folder: str | None, project: Path) -> bool:
    return folder is not None and Path(folder).resolve().is_relative_to(project.resolve())


def _script(command: tuple[str, ...]) -> str:
    return os.path.basename(command[-2])


def _package(hook: InstalledHook) -> str:
    return hook.command[-3]
