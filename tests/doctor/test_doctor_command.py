"""The whole examination by its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.actions.fakes import FakeHome
from turnpost.cli import columns, main
from turnpost.doctor import examine
from turnpost.doctor.results import Check
from turnpost.harness import MINIMUM
from turnpost.install import install

pytestmark = pytest.mark.process


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers as Claude Code does, and lists no sessions."""
    version = ".".join(map(str, MINIMUM))
    fake = tmp_path / "claude"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version} (Claude Code)" || echo "[]"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("TURNPOST_CLAUDE", str(fake))
    return fake


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words], prog_name="turnpost")


def document(done: Result) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_sound_setup_exits_0(home: FakeHome, project: Path, claude: Path) -> None:
    install("project", project)
    done = run("--project", str(project), "--json")
    answer = document(done)
    assert [check for check in answer["checks"] if check["status"] != "ok"] == []
    assert done.exit_code == 0
    assert answer["home"] == home.root


def test_something_that_fails_exits_3(home: FakeHome, project: Path) -> None:
    done = run("--project", str(project), "--json")
    assert done.exit_code == 3
    assert [c["name"] for c in document(done)["checks"] if c["status"] == "fail"] == ["claude"]


def test_every_line_fits_a_terminal_and_every_finding_says_what_to_do(home: FakeHome, project: Path) -> None:
    home.agent("alpha", ago=60)
    done = run("--project", str(project))
    assert all(
        columns.width(line) < columns.WIDTH for line in done.stdout.splitlines() if str(project) not in line
    )
    assert "FAIL  claude:" in done.stdout
    assert "      -> " in done.stdout
    assert done.stdout.splitlines()[-1].endswith("failing")


def test_a_folder_that_is_not_there_is_a_usage_error(home: FakeHome, tmp_path: Path) -> None:
    assert run("--project", str(tmp_path / "none")).exit_code == 2


def test_a_part_that_breaks_does_not_hide_the_others(
    home: FakeHome, project: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_root: str) -> list[Check]:
        raise OSError(5, "Input/output error")

    home.agent("alpha")
    monkeypatch.setattr("turnpost.doctor.spool.check_all", broken)
    names = {check.name: check for check in examine.examine(home.root, project).checks}
    assert "Input/output error" in names["doctor"].line
    assert "coordinator" in names


def test_deep_tries_the_binary_that_was_found(
    home: FakeHome, project: Path, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Path] = []

    def try_out(binary: Path) -> list[Check]:
        tried.append(binary)
        return []

    monkeypatch.setattr("turnpost.doctor.deep.try_out", try_out)
    run("--project", str(project))
    assert tried == []
    run("--project", str(project), "--deep")
    assert tried == [claude]


def test_examining_changes_nothing_in_the_home(home: FakeHome, project: Path, claude: Path) -> None:
    home.agent("alpha")
    install("project", project)
    before = home.tree()
    run("--project", str(project))
    assert home.tree() == before
