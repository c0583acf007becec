"""A home of its own for each test, without a coordinator."""

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
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    yield made
    made.close()
