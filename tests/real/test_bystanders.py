"""What turnpost must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.kit import Post

pytestmark = [pytest.mark.real, pytest.mark.slow]


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_printing_run_in_an_installed_project_leaves_nothing_and_waits_for_nothing(post: Post) -> None:
    """A waiter would keep it from ending for as long as it waits; it must end within the run's time limit."""
    before = everything(post.world.state)
    ran = post.shop / "ran"
    post.add_hook("Stop", f"touch {ran}")
    done = post.world.claude("-p", "[[lab:alpha]] begin", cwd=post.shop, timeout=60.0).check()
    assert done.stdout.strip() == "ok"
    assert ran.exists(), "the project's hooks ran"
    assert everything(post.world.state) == before
    assert post.waiters() == []
    assert len(post.requests("alpha")) == 1
    assert post.run("agents") == []
