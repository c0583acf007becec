"""What is resumed and what is not: without our hooks a resume would be a turn of the model that no message enters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import installing, receipts, sending
from turnpost.config import Config
from turnpost.core import registry, store
from turnpost.core.records import TYPE_CHECKING
from turnpost.service.loop import Coordinator
from turnpost.service.resume import Resumer, without_hooks

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

CLAUDE = """
import sys
open({folder!r} + "/calls", "a").write(sys.argv[1] + "\\n")
print("[]" if sys.argv[1] == "agents" else "backgrounded · 0a1b2c3d")
"""
_QUICK = Config(resume_confirm_seconds=1.0)


@pytest.fixture
def claude(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `claude` that notes its calls and runs no session; the file with the calls."""
    monkeypatch.setenv("TURNPOST_CLAUDE", home.claude(CLAUDE))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.folder / "config"))
    return home.folder / "calls"


def stopped(home: FakeHome, name: str = "alpha", *, launched: bool = False) -> Agent:
    agent = home.agent(name, "stopped")
    home.kill(agent)
    agent["kind"] = "managed" if launched else "registered"
    registry.save_agent(home.root, agent)
    return agent


def state(home: FakeHome, agent: Agent) -> State:
    found = store.load_state(home.root, agent["key"])
    assert found is not None
    return found


def test_an_agent_whose_hooks_are_gone_is_not_resumed_and_its_senders_learn_why(
    home: FakeHome, claude: Path
) -> None:
    agent = stopped(home)
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    assert not Resumer(home.root, _QUICK).resume(agent["key"])
    assert not claude.exists(), "a resume would be a turn of the model that brings nothing"
    resume = state(home, agent).get("resume")
    assert resume is not None
    assert resume["error"] is not None
    assert f"`turnpost install --project {home.folder}`" in resume["error"]
    resume["tries"] = 99
    store.save_state(home.root, agent["key"], {**state(home, agent), "resume": resume})
    Coordinator(home.root).round()
    receipt = receipts.show(home.root, sent.id).receipts["alpha"]
    assert receipt.state == "undeliverable"
    assert "hooks are not installed" in (receipt.reason or "")


@pytest.mark.parametrize("where", ["its project", "the user's settings", "its own settings"])
def test_an_agent_that_has_hooks_somewhere_is_resumed(home: FakeHome, claude: Path, where: str) -> None:
    agent = stopped(home, launched=where == "its own settings")
    if where != "its own settings":
        installing.install(
            home.root, "project" if where == "its project" else "user", str(home.folder), speaker=PERSON
        )
    sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    Resumer(home.root, _QUICK).resume(agent["key"])
    assert "--bg" in claude.read_text()


def test_a_deaf_session_is_not_ended_for_a_resume_that_cannot_be(home: FakeHome, claude: Path) -> None:
    agent = home.agent("alpha", "idle")
    sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    assert not Resumer(home.root, _QUICK).resume(agent["key"], stop_first=True)
    assert not claude.exists()


def test_hooks_of_the_folder_a_session_moved_to_count(home: FakeHome, claude: Path) -> None:
    agent = stopped(home)
    assert without_hooks(agent, state(home, agent))
    other = home.folder / "other"
    other.mkdir()
    installing.install(home.root, "local", str(other), speaker=PERSON)
    assert not without_hooks(agent, {**state(home, agent), "cwd": str(other)})


def test_an_uninstall_names_the_agents_that_are_left_without_hooks(home: FakeHome, claude: Path) -> None:
    installing.install(home.root, "project", str(home.folder), speaker=PERSON)
    stopped(home)
    stopped(home, "beta", launched=True)
    home.agent("gamma", "idle")
    sending.send(home.root, ["alpha", "beta"], "hello", speaker=PERSON)
    assert (
        installing.uninstall(home.root, "project", str(home.folder), dry_run=True, speaker=PERSON).warnings
        == ()
    )
    runs, waits = installing.uninstall(home.root, "project", str(home.folder), speaker=PERSON).warnings
    assert runs == "these run on and get no messages: gamma"
    assert waits == "these have mail waiting, which will be given up: alpha"
    assert installing.uninstall(home.root, "project", str(home.folder), speaker=PERSON).warnings == ()
