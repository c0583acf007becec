"""A home with agents, a project, and nothing of the caller's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome


@pytest.fixture
def home(home: FakeHome, own_settings: None) -> FakeHome:
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
