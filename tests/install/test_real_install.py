"""The installed entries run in the real Claude Code, and what an uninstall leaves does not."""

import json
import time
from pathlib import Path

import pytest

from turnpost.install import install, settings_for_launch, uninstall
from turnpost.lab.world import World

pytestmark = [pytest.mark.real, pytest.mark.slow]

NAMES = {
    Path(entry["args"][-2]).name
    for groups in settings_for_launch()["hooks"].values()
    for entry in groups[0]["hooks"]
}
SEEN = """
import os, sys
folder = os.environ["TURNPOST_HOME"] + "/seen"
os.makedirs(folder, exist_ok=True)
open(folder + "/" + os.path.basename(__file__), "a").write(sys.argv[-1])
"""


def seen(world: World) -> set[str]:
    folder = world.state / "seen"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def wait_for(world: World, names: set[str], seconds: float = 20.0) -> set[str]:
    end = time.monotonic() + seconds
    while not names <= seen(world) and time.monotonic() < end:
        time.sleep(0.05)
    return seen(world)


def test_installed_hooks_run_until_they_are_uninstalled(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "it's ä path" / "hooks"
    hooks.mkdir(parents=True)
    for name in NAMES:
        (hooks / name).write_text(SEEN)
    monkeypatch.setattr("turnpost.install.merge.hooks_dir", lambda: hooks)
    monkeypatch.setenv("TURNPOST_HOME", str(tmp_path / "installer"))
    mine = {"permissions": {"allow": ["Read"]}}
    project = world.project("shop", settings=mine)
    before = (project / ".claude" / "settings.json").read_bytes()

    install("project", project)
    world.claude("-p", "hello", cwd=project).check()
    at_least = {"session_start.py", "user_prompt_submit.py", "stop.py", "waiter.py", "session_end.py"}
    assert at_least <= wait_for(world, at_least)

    # The scripts are gone, as after a deleted environment: the turn ends as if there were no hooks.
    for name in NAMES:
        (hooks / name).unlink()
    requests = world.claude("-p", "hello", "--output-format", "json", cwd=project, timeout=30.0).check()
    assert json.loads(requests.stdout)["num_turns"] == 1

    for name in NAMES:
        (hooks / name).write_text(SEEN.replace("/seen", "/later"))
    uninstall("project", project)
    assert (project / ".claude" / "settings.json").read_bytes() == before
    world.claude("-p", "hello", cwd=project).check()
    assert not (world.state / "later").exists()
