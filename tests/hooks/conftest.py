"""A spool and a running session in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.driver import FakeSession
from turnpost.core import registry


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A spool that exists."""
    path = str(tmp_path / "state")
    registry.prepare(path)
    return path


@pytest.fixture
def session(root: str, tmp_path: Path) -> Iterator[FakeSession]:
    """A session that has started and is idle, with its waiter."""
    with FakeSession(root, tmp_path / "claude") as made:
        assert made.start().briefs
        assert made.settled()
        yield made
