"""A home with agents, a project, and nothing of the caller's own settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from turnpost.actions import courier


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHome]:
    made = FakeHome(tmp_path)
    monkeypatch.setenv("TURNPOST_HOME", made.root)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude-config"))
    monkeypatch.setenv("TURNPOST_CLAUDE", str(tmp_path / "no-claude"))
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    yield made
    made.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
