"""The installed hooks, each check on a good fixture and on broken ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.actions.fakes import FakeHome
from tests.doctor.kit import failing, found, odd
from turnpost.data import hooks_dir, import_root
from turnpost.doctor import firing, hooks
from turnpost.doctor.results import Check
from turnpost.harness import Session
from turnpost.install import install
from turnpost.install.merge import interpreter_of

GOOD = ["installed", "programs", "version"]


@pytest.fixture
def installed(home: FakeHome, project: Path) -> Path:
    """A project with the hooks in it; its settings file."""
    return install("project", project).path


def look(home: FakeHome, project: Path) -> list[Check]:
    return hooks.check_all(hooks.look(project), home.root)


def fire(project: Path) -> list[Check]:
    return [check for one in hooks.to_fire(hooks.look(project)) for check in firing.fire(one)]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_fresh_install_is_fine(home: FakeHome, project: Path, installed: Path) -> None:
    checks = look(home, project)
    assert [check.name for check in checks] == GOOD
    assert odd(checks) == []


def test_without_an_install_the_way_to_one_is_told(home: FakeHome, project: Path) -> None:
    check = found(look(home, project), "installed")
    assert check.status == "warn"
    assert "turnpost install" in check.mend


def test_an_install_that_lost_an_event_fails(home: FakeHome, project: Path, installed: Path) -> None:
    settings = json.loads(installed.read_text())
    del settings["hooks"]["Stop"]
    installed.write_text(json.dumps(settings))
    check = found(look(home, project), "installed")
    assert check.status == "fail"
    assert "Stop (stop.py)" in check.line
    assert "--scope project" in check.mend


def test_an_interpreter_that_is_gone_fails(home: FakeHome, project: Path, installed: Path) -> None:
    python = interpreter_of(hooks.look(project).hooks[0].command)
    change(installed, json.dumps(python), json.dumps("/nowhere/python3"))
    checks = look(home, project)
    assert failing(checks) == ["interpreter"]
    assert "/nowhere/python3" in found(checks, "interpreter").line
    assert fire(project) == []


def test_a_package_that_was_removed_fails(
    home: FakeHome, project: Path, installed: Path, tmp_path: Path
) -> None:
    """The scripts are there, the package is not: the hooks' guard keeps silent, so only a look tells."""
    change(installed, json.dumps(str(import_root())), json.dumps(str(tmp_path / "gone")))
    assert failing(look(home, project)) == ["package"]
    checks = fire(project)
    assert failing(checks) == ["hook"]
    assert "did not become an agent" in found(checks, "hook").line


def test_a_script_that_is_gone_fails(home: FakeHome, project: Path, installed: Path, tmp_path: Path) -> None:
    moved = tmp_path / "hooks"
    shutil.copytree(hooks_dir(), moved)
    change(installed, str(hooks_dir()), str(moved))
    (moved / "stop.py").unlink()
    assert failing(look(home, project)) == ["script"]
    checks = fire(project)
    assert "Stop (stop.py) did not bring its message" in found(checks, "hook").line


def test_hooks_of_another_installation_are_told(
    home: FakeHome, project: Path, installed: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "hooks"
    shutil.copytree(hooks_dir(), moved)
    change(installed, str(hooks_dir()), str(moved))
    check = found(look(home, project), "version")
    assert check.status == "warn"
    assert str(import_root()) in check.line


def test_entries_of_an_older_version_are_told(home: FakeHome, project: Path, installed: Path) -> None:
    change(installed, '"-S"', '"-s"')
    check = found(look(home, project), "version")
    assert check.status == "warn"
    assert "another version" in check.line


def test_a_chosen_interpreter_is_no_other_version(home: FakeHome, project: Path, installed: Path) -> None:
    python = interpreter_of(hooks.look(project).hooks[0].command)
    change(installed, json.dumps(python), json.dumps("/bin/sh"))
    assert odd(look(home, project)) == []


def test_a_second_equal_install_is_fine_and_told(home: FakeHome, project: Path, installed: Path) -> None:
    install("user", project)
    check = found(look(home, project), "once")
    assert check.status == "ok"
    assert "user" in check.line


@pytest.mark.parametrize("place", ["local", "user", "plugin"])
def test_a_second_different_install_warns(
    home: FakeHome, project: Path, installed: Path, tmp_path: Path, place: str
) -> None:
    if place == "plugin":
        other = tmp_path / "claude-config" / "plugins" / "turnpost" / "hooks" / "hooks.json"
        other.parent.mkdir(parents=True)
        other.write_text(installed.read_text())
    else:
        other = install(place, project).path  # type: ignore[arg-type]
    change(other, '"-S"', '"-s"')
    check = found(look(home, project), "once")
    assert check.status == "warn"
    assert place in check.line
    assert "every hook runs 2 times" in check.line
    assert len(hooks.to_fire(hooks.look(project))) == 2


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_hooks_switched_off_fail(home: FakeHome, project: Path, installed: Path, scope: str) -> None:
    _setting(project, scope, "disableAllHooks", True)
    check = found(look(home, project), "hooks on")
    assert check.status == "fail"
    assert "disableAllHooks" in check.line


def test_a_settings_file_that_is_no_json_fails(home: FakeHome, project: Path, installed: Path) -> None:
    installed.write_text("{")
    assert failing(look(home, project)) == ["settings"]


def test_hooks_with_another_home_fail(home: FakeHome, project: Path, installed: Path) -> None:
    _setting(project, "local", "env", {"TURNPOST_HOME": "/elsewhere"})
    check = found(look(home, project), "home")
    assert check.status == "fail"
    assert "/elsewhere" in check.line
    assert home.root in check.line


def test_hooks_with_the_same_home_are_fine(home: FakeHome, project: Path, installed: Path) -> None:
    _setting(project, "local", "env", {"TURNPOST_HOME": home.root})
    assert odd(look(home, project)) == []


def test_a_session_that_is_not_known_here_is_told(home: FakeHome, project: Path) -> None:
    agent = home.agent("alpha")
    known = Session(sessionId=agent["sessions"][-1], cwd=str(project), pid=1)
    unknown = Session(sessionId="0" * 36, cwd=str(project / "sub"), pid=2, name="lone")
    ended = Session(sessionId="1" * 36, cwd=str(project))
    away = Session(sessionId="2" * 36, cwd="/", pid=3)
    assert hooks.check_known([known, ended, away], project, home.root, True) == []
    (check,) = hooks.check_known([known, unknown], project, home.root, True)
    assert check.status == "warn"
    assert "lone (pid 2)" in check.line
    assert hooks.check_known([unknown], project, home.root, False) == []


def _setting(project: Path, scope: str, name: str, value: Any) -> None:
    from turnpost.install.settings_file import settings_path

    path = settings_path(scope, project)  # type: ignore[arg-type]
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**settings, name: value}))
