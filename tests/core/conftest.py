"""A spool of one's own, and two agents in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A spool that exists."""
    return spool.make(tmp_path)


@pytest.fixture
def pair(root: str) -> tuple[Agent, Agent]:
    """Two agents without a session."""
    return spool.agent(root, "alpha"), spool.agent(root, "beta")
