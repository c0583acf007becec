"""Launching with a `claude` that does what the real one's hooks do, or fails in one of the ways it can."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import agents, launching, sending
from turnpost.actions.results import Sent
from turnpost.core import registry
from turnpost.core.errors import HarnessError, Refused, UsageError

CLAUDE = """#!{python}
# `claude --bg`: notes what it was told, and lets a session report in as the SessionStart hook would.
import json, os, subprocess, sys
words = sys.argv[1:]
if words[0] == "stop":
    open({folder!r} + "/stopped", "a").write(words[1] + "\\n")
    sys.exit(0)
prompt = sys.stdin.read()
json.dump({{"words": words, "prompt": prompt, "cwd": os.getcwd()}}, open({folder!r} + "/call.json", "w"))
mode = open({folder!r} + "/mode").read()
if mode == "refuses":
    sys.exit("this folder is not trusted")
if mode == "runs":
    environment = json.loads(words[words.index("--settings") + 1])["env"]
    session = subprocess.Popen(
        ["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    open({folder!r} + "/pid", "w").write(str(session.pid))
    sys.path[:0] = {path!r}
    from turnpost.core import attach
    start = attach.Start(
        "0a1b2c3d-1111-2222-3333-444455556666", "startup", session.pid, cwd=os.getcwd(),
        env_key=environment["TURNPOST_AGENT"], background=True,
    )
    attach.attach(environment["TURNPOST_HOME"], start)
print("backgrounded · 0a1b2c3d")
"""


@pytest.fixture
def claude(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The fake program's folder; `mode` in it says what it does."""
    folder = home.folder / "claude"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(CLAUDE.format(python=sys.executable, folder=str(folder), path=sys.path))
    program.chmod(0o700)
    (folder / "mode").write_text("runs")
    monkeypatch.setenv("TURNPOST_CLAUDE", str(program))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.folder / "config"))
    monkeypatch.chdir(home.folder)
    yield folder
    if (folder / "pid").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def call(claude: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((claude / "call.json").read_text())
    return found


def test_a_launched_agent_has_its_name_its_session_and_its_hooks(home: FakeHome, claude: Path) -> None:
    made = launching.launch(home.root, "alpha", "/cost is not a command here", speaker=PERSON)
    assert (made.name, made.session_id[:8]) == ("alpha", "0a1b2c3d")
    told = call(claude)
    words = told["words"]
    assert isinstance(words, list)
    assert words[words.index("--name") + 1] == "alpha"
    settings = json.loads(words[words.index("--settings") + 1])
    assert "Stop" in settings["hooks"]
    assert settings["env"]["TURNPOST_HOME"] == home.root
    assert told["prompt"] == "/cost is not a command here"
    [shown] = agents.agents(home.root).agents
    assert (shown.kind, shown.state, shown.parent) == ("managed", "starting", None)


def test_the_hooks_come_with_it_also_where_the_project_has_them(home: FakeHome, claude: Path) -> None:
    """Claude Code keeps these for a resume, when the project's may be gone."""
    from turnpost.actions import installing

    installing.install(home.root, "project", str(home.folder), speaker=PERSON)
    launching.launch(home.root, "alpha", speaker=PERSON)
    words = call(claude)["words"]
    assert isinstance(words, list)
    settings = json.loads(words[words.index("--settings") + 1])
    written = json.loads((home.folder / ".claude" / "settings.json").read_text())
    assert settings["hooks"] == written["hooks"], "equal entries run once"
    assert "--worktree" not in words


def test_a_worktree_is_asked_for_by_the_agents_name(home: FakeHome, claude: Path) -> None:
    launching.launch(home.root, "alpha", worktree=True, speaker=PERSON)
    words = call(claude)["words"]
    assert isinstance(words, list)
    assert words[words.index("--worktree") + 1] == "alpha"


def test_instructions_options_and_an_agents_own_launch(home: FakeHome, claude: Path) -> None:
    mother = home.agent("mother")
    home.team(name="m1", coordinator=mother)
    made = launching.launch(
        home.root, "child", "go", instructions="be brief", mission="m1", options=["--model", "opus"],
        speaker=home.speaker(mother),
    )  # fmt: skip
    words = call(claude)["words"]
    assert isinstance(words, list)
    assert words[words.index("--append-system-prompt") + 1] == "be brief"
    assert words[-2:] == ["--model", "opus"]
    assert (made.parent, made.mission) == ("mother", "m1")
    assert sending.send(home.root, ["child"], "a correction", speaker=home.speaker(mother)).urgent


SECRET = "AKIAIOSF" + "ODNN7EXAMPLE"


def test_what_an_agent_is_told_at_its_launch_has_no_secrets(home: FakeHome, claude: Path) -> None:
    made = launching.launch(
        home.root, "alpha", f"use {SECRET}", instructions=f"never show {SECRET}", speaker=PERSON
    )
    assert made.redacted == 2
    assert made.warnings[0] == "2 secrets were taken out of what the agent was told; it works without"
    assert call(claude)["prompt"] == "use [redacted: AWS Access Key]"
    assert SECRET not in (claude / "call.json").read_text()
    assert registry.find(home.root, "alpha")["instructions"] == "never show [redacted: AWS Access Key]"


def test_the_policy_leaves_it_in(home: FakeHome, claude: Path) -> None:
    home.policy("[secrets]\nredact = false\n")
    made = launching.launch(home.root, "alpha", f"use {SECRET}", speaker=PERSON)
    assert (made.redacted, call(claude)["prompt"]) == (0, f"use {SECRET}")


@pytest.mark.parametrize(("mode", "said"), [("refuses", "not trusted"), ("hangs", "backgrounded")])
def test_a_launch_that_fails_leaves_nothing_and_says_what_claude_said(
    home: FakeHome, claude: Path, monkeypatch: pytest.MonkeyPatch, mode: str, said: str
) -> None:
    (claude / "mode").write_text(mode)
    monkeypatch.setattr(launching, "START_SECONDS", 0.3)
    with pytest.raises(HarnessError, match=said):
        launching.launch(home.root, "alpha", "go", speaker=PERSON)
    assert agents.agents(home.root).agents == ()
    assert (claude / "stopped").exists() == (mode == "hangs")
    (claude / "mode").write_text("runs")
    assert launching.launch(home.root, "alpha", "go", speaker=PERSON).name == "alpha"


def test_mail_sent_to_an_agent_that_never_started_is_kept_and_its_sender_told(
    home: FakeHome, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnpost.actions import inbox, receipts

    (claude / "mode").write_text("hangs")
    monkeypatch.setattr(launching, "START_SECONDS", 1.0)
    sent: list[Sent] = []

    def send_once(_seconds: float) -> None:
        if not sent:
            sent.append(sending.send(home.root, ["alpha"], "early", speaker=PERSON))

    with pytest.raises(HarnessError):
        launching.launch(home.root, "alpha", "go", speaker=PERSON, on_wait=send_once)
    receipt = receipts.show(home.root, sent[0].id).receipts["alpha"]
    assert (receipt.state, receipt.reason) == ("undeliverable", "the launch of alpha failed")
    assert [m.kind for m in inbox.waiting(home.root, speaker=PERSON).messages] == ["alert"]


def test_a_launch_that_cannot_be_is_refused_before_anything_is_written(
    home: FakeHome, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("taken")
    before = home.tree()
    for name, error in (("taken", Refused), ("TAKEN", Refused), ("person", UsageError), ("a b", UsageError)):
        with pytest.raises(error):
            launching.launch(home.root, name, speaker=PERSON)
    with pytest.raises(UsageError):
        launching.launch(home.root, "alpha", " ", speaker=PERSON)
    with pytest.raises(UsageError):
        launching.launch(home.root, "alpha", cwd=str(home.folder / "no"), speaker=PERSON)
    monkeypatch.setenv("TURNPOST_CLAUDE", str(home.folder / "no"))
    with pytest.raises(HarnessError):
        launching.launch(home.root, "alpha", speaker=PERSON)
    assert home.tree() == before
    assert not (claude / "call.json").exists()
