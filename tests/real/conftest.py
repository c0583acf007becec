"""The fixture of the tests on the real Claude Code."""

from __future__ import annotations

import pytest

from tests.real.kit import Post
from turnpost.lab.model import ScriptedModel
from turnpost.lab.world import World


@pytest.fixture
def post(world: World, model: ScriptedModel) -> Post:
    """turnpost in a fresh world, installed in the project `shop`."""
    return Post(world, model)
