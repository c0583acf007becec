"""What the doctor says of the tool server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from turnpost.doctor import tools
from turnpost.install import install, servers

pytestmark = pytest.mark.process


@pytest.fixture
def installed(home: FakeHome, project: Path) -> Path:
    """Claude Code's own file, which names the server."""
    return install("project", project).files[1].path


def test_a_server_that_starts_is_fine(project: Path, installed: Path) -> None:
    (check,) = tools.check_all(project, installed=True)
    assert check.status == "ok"
    assert str(installed) in check.line


def test_a_server_whose_python_is_gone_is_named(project: Path, installed: Path) -> None:
    text = installed.read_text()
    command = servers.entry()["command"]
    installed.write_text(text.replace(json.dumps(command), json.dumps("/nowhere/python3")))
    (check,) = tools.check_all(project, installed=True)
    assert check.status == "warn"
    assert "/nowhere/python3" in check.line


def test_a_server_that_fails_is_told_by_its_last_words(tmp_path: Path) -> None:
    check = tools.check_server(tmp_path, ["sh", "-c", "echo first >&2; echo why >&2; exit 3"])
    assert check.status == "warn"
    assert check.line.endswith("does not start: why")


def test_an_install_without_the_tools_is_no_fault(home: FakeHome, project: Path) -> None:
    install("project", project, tools=False)
    (check,) = tools.check_all(project, installed=True)
    assert check.status == "ok"
    assert tools.check_all(project, installed=False) == []
