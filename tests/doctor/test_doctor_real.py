"""`doctor --deep` and the whole of doctor on the real Claude Code."""

from __future__ import annotations

import json

import pytest

from turnpost.doctor import deep
from turnpost.lab.world import World

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_deep_finds_that_this_version_honours_every_way_in(world: World) -> None:
    """In a world of its own, from which nothing is left."""
    project = world.project("shop")
    world.turnpost("install", "--project", str(project)).check()
    done = world.turnpost("doctor", "--deep", "--json", cwd=project, timeout=100.0)
    checks = json.loads(done.stdout)["checks"]
    assert [check for check in checks if check["status"] != "ok"] == []
    assert len([check for check in checks if check["name"] == deep.NAME]) == len(deep.WAYS)
    assert done.returncode == 0
