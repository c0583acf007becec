"""The tool server in Claude Code's files: registered, approved, permitted only when asked for, and undone."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from turnpost.core import clock
from turnpost.install import Scope, SettingsRefused, install, servers, tools_for_launch, uninstall

MINE = (
    '{"numStartups": 4, "mcpServers": {"other": {"command":"x"}},\n "projects": {"/a": {"mcpServers": {}}}}\n'
)


@pytest.fixture(autouse=True)
def world(own_home: Path) -> Path:
    """A home and its project."""
    return own_home


@pytest.fixture
def project(world: Path) -> Path:
    folder = world / "shop"
    folder.mkdir()
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def settings_of(project: Path, scope: Scope = "project") -> Path:
    name = {"project": "settings.json", "local": "settings.local.json"}.get(scope)
    return project / ".claude" / name if name else project.parent / "home" / ".claude" / "settings.json"


def test_the_project_scope_names_the_server_beside_the_settings(world: Path, project: Path) -> None:
    done = install("project", project)
    path = world / "home" / ".claude.json"
    assert [file.path for file in done.files] == [settings_of(project), path]
    assert read(path) == {"projects": {str(project): servers.config()}}
    assert set(read(settings_of(project))) == {"hooks"}
    assert done.diff.count("\n+++ ") == 2
    assert not install("project", project).changed
    assert {file.action for file in uninstall("project", project).files} == {"restored"}
    assert list(project.iterdir()) == []
    assert not path.exists()


@pytest.mark.parametrize(
    ("scope", "place"),
    [
        ("user", ["mcpServers"]),
        ("local", ["projects", "{project}", "mcpServers"]),
        ("project", ["projects", "{project}", "mcpServers"]),
    ],
)
def test_each_scope_writes_into_claude_codes_own_file(
    world: Path, project: Path, scope: Scope, place: list[str]
) -> None:
    path = world / "home" / ".claude.json"
    path.write_text(MINE)
    assert install(scope, project).files[1].path == path
    value = read(path)
    for key in place:
        value = value[key.format(project=project)]
    assert value["turnpost"] == servers.entry()
    assert read(path)["mcpServers"]["other"] == {"command": "x"}
    assert not (project / ".mcp.json").exists(), "a session in a worktree would stand still and ask about it"
    assert not install(scope, project).changed
    uninstall(scope, project)
    assert path.read_text() == MINE
    assert list((world / "home").glob(".claude.json*")) == [path]


def test_two_scopes_of_a_project_share_the_server_until_the_second_is_uninstalled(
    world: Path, project: Path
) -> None:
    path = world / "home" / ".claude.json"
    install("project", project)
    assert [file.action for file in install("local", project).files][1] == "unchanged"
    uninstall("project", project)
    assert read(path) == {"projects": {str(project): servers.config()}}
    uninstall("local", project)
    assert not path.exists()


def test_what_claude_code_wrote_since_stays(world: Path, project: Path) -> None:
    path = world / "home" / ".claude.json"
    path.write_text(MINE)
    install("user", project)
    path.write_text(json.dumps(read(path) | {"numStartups": 5}))
    assert uninstall("user", project).files[1].action == "removed"
    assert read(path) == json.loads(MINE) | {"numStartups": 5}


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_permissions_are_added_when_asked_for_and_taken_back(project: Path, scope: Scope) -> None:
    path = settings_of(project, scope)
    path.parent.mkdir(parents=True)
    text = '{"permissions": {"deny": ["Read(.env)"], "allow": ["Bash", "mcp__turnpost__list"]}}'
    path.write_text(text)
    install(scope, project)
    assert read(path)["permissions"] == json.loads(text)["permissions"]
    install(scope, project, allow_tools=True)
    assert sorted(read(path)["permissions"]["allow"]) == sorted({"Bash", *servers.TOOLS})
    assert not install(scope, project).changed, "an install without the flag takes nothing away"
    path.write_text(path.read_text().replace('"Bash"', '"Bash", "Edit"'))
    assert uninstall(scope, project).changed
    assert read(path)["permissions"] == {
        "deny": ["Read(.env)"],
        "allow": ["Bash", "Edit", "mcp__turnpost__list"],
    }


def test_permissions_that_only_turnpost_had_filled_go_with_their_list(project: Path) -> None:
    path = settings_of(project)
    install("project", project, allow_tools=True)
    path.write_text(json.dumps(read(path) | {"model": "opus"}))
    uninstall("project", project)
    assert read(path) == {"model": "opus"}


def test_the_hooks_alone_touch_one_file(world: Path, project: Path) -> None:
    done = install("project", project, tools=False)
    assert [file.path for file in done.files] == [settings_of(project)]
    assert set(read(settings_of(project))) == {"hooks"}
    assert not (world / "home" / ".claude.json").exists()
    uninstall("project", project)
    assert list(project.iterdir()) == []


def test_an_older_entry_is_replaced_and_a_strangers_is_left_alone(world: Path, project: Path) -> None:
    path = world / "home" / ".claude.json"
    old = {"turnpost": {"command": "/old/python", "args": ["-m", "turnpost", "mcp"]}}
    path.write_text(json.dumps({"projects": {str(project): {"mcpServers": old}}}))
    assert install("project", project).files[1].action == "updated"
    assert read(path) == {"projects": {str(project): servers.config()}}
    uninstall("project", project)
    stranger = json.dumps({"projects": {str(project): {"mcpServers": {"turnpost": {"command": "other"}}}}})
    path.write_text(stranger)
    with pytest.raises(SettingsRefused, match=r"mcpServers\.turnpost.* not turnpost's own"):
        install("project", project)
    assert path.read_text() == stranger
    assert not settings_of(project).exists(), "nothing is written when one file is refused"
    assert not uninstall("project", project).changed


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"projects": []}', '{"projects": {"PROJECT": {"mcpServers": 3}}}']
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_written(
    world: Path, project: Path, text: str
) -> None:
    path = world / "home" / ".claude.json"
    text = text.replace("PROJECT", str(project))
    path.write_text(text)
    with pytest.raises(SettingsRefused, match=r"\.claude\.json"):
        install("project", project)
    assert path.read_text() == text
    assert not settings_of(project).exists()


def test_a_dry_run_shows_both_files_and_writes_neither(world: Path, project: Path) -> None:
    shown = install("project", project, dry_run=True, allow_tools=True)
    assert "mcp__turnpost__send" in shown.diff
    assert ".claude.json" in shown.diff
    assert list(project.iterdir()) == []
    assert not (world / "state").exists()
    assert install("project", project, allow_tools=True).diff == shown.diff


def test_claude_codes_own_lock_is_respected_and_a_stale_one_is_not(
    world: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = world / "home" / ".claude.json", world / "home" / ".claude.json.lock"
    path.write_text("{}")
    lock.mkdir()
    free = threading.Timer(0.3, lock.rmdir)
    free.start()
    begin = clock.monotonic()
    assert install("user", project).changed
    assert clock.monotonic() - begin > 0.25
    free.join()

    lock.mkdir()
    os.utime(lock, (1, 1))
    assert uninstall("user", project).changed
    assert not lock.exists()

    lock.mkdir()
    monkeypatch.setattr(servers, "_LOCK_SECONDS", 0.1)
    with pytest.raises(SettingsRefused, match="held"):
        install("user", project)
    assert path.read_text() == "{}"
    assert lock.exists()


def test_the_configuration_folder_is_honoured(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "conf"))
    assert install("user", project).files[1].path == project / "conf" / ".claude.json"


def test_a_launch_brings_the_server_and_permits_its_tools() -> None:
    config, allowed = tools_for_launch()
    assert json.loads(config.removeprefix("--mcp-config=")) == servers.config()
    assert allowed.removeprefix("--allowedTools=").split(",") == list(servers.TOOLS)
