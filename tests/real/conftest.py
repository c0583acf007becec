"""The fixture of the tests on the real Claude Code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.kit import Post
from turnpost.lab.model import ScriptedModel
from turnpost.lab.world import World


@pytest.fixture
def post(world: World, model: ScriptedModel, request: pytest.FixtureRequest) -> Iterator[Post]:
    """turnpost in a fresh world, installed in the project `shop`."""
    made = Post(world, model, tools=request.node.get_closest_marker("tools") is not None)
    yield made
    made.close()
