"""What turnpost must leave alone."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import time
from pathlib import Path

import pytest

from tests.real.kit import SETTINGS, Post

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.tools]

ROUNDS = 5
RATIO, ALLOWANCE = 2.0, 1.0
"""How long a run may take beside one without turnpost: so many times as long, and seconds more. A whole run takes under one,
and a machine under load adds to it what it likes."""
OWN = re.compile(
    r"^tmp/claude-|^home/\.claude/\.last-cleanup$|^home/\.cache/claude-cli-nodejs/[^/]+/mcp-logs-turnpost/"
)
"""Claude Code's scratch files, what it does after a while, and its log of the tool server that the project has it start."""


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def contents(folder: Path) -> dict[str, str]:
    """What lies in a folder, by path."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def unnamed(text: str, project: Path) -> str:
    """A text without what differs from run to run: the project's name, ids, times, process ids."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", re.sub(rf"\b{project.name}\b", "PROJECT", text))


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


@pytest.mark.timeout(180)
def test_a_printing_run_takes_as_long_and_leaves_the_same_files_as_without_turnpost(post: Post) -> None:
    """In turns with a project without turnpost, which is like it in all else."""
    plain = post.project("bare", settings=SETTINGS, install=False)
    seconds: dict[Path, list[float]] = {plain: [], post.shop: []}
    changes: dict[Path, set[str]] = {plain: set(), post.shop: set()}
    for project in [*seconds] * (1 + ROUNDS):
        before = contents(post.world.root)
        began = time.monotonic()
        done = post.world.claude("-p", "[[lab:alpha]] begin", cwd=project, timeout=60.0).check()
        seconds[project].append(time.monotonic() - began)
        assert (done.stdout.strip(), done.stderr) == ("ok", "")
        after = contents(post.world.root)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert not [name for name in changed if name.startswith(("projects/", "state/"))]
        changes[project] |= {unnamed(name, project) for name in changed if not OWN.search(name)}
    assert changes[post.shop] <= changes[plain]
    assert not any("turnpost" in json.dumps(one.body) for one in post.requests("alpha"))
    # The first of each is a warm-up.
    with_it, without = (statistics.median(seconds[project][1:]) for project in (post.shop, plain))
    assert with_it <= RATIO * without + ALLOWANCE, seconds
