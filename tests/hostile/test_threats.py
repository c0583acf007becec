"""Sentences of docs/threat-model.md that no other test shows."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.hostile import kit
from tests.hostile.kit import HOOKS, Rich
from turnpost.actions import courier
from turnpost.cli import main
from turnpost.core import home, mailbox, registry
from turnpost.doctor import spool
from turnpost.service import watch


def test_everything_in_the_home_is_closed_to_other_users(rich: Rich, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        kit.everything(rich, monkeypatch)
    finally:
        os.umask(before)
    found = 0
    for folder, folders, names in os.walk(rich.root):
        for name in [*folders, *names]:
            mode = os.lstat(f"{folder}/{name}").st_mode
            assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), f"{folder}/{name}"
            found += 1
    assert found > 50


def test_a_home_that_others_can_write_in_is_used_by_no_hook_and_no_command(
    rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(rich.root, 0o777)
    before = kit.tree(rich.root)
    for event in HOOKS:
        ran = kit.run_hook(
            event, json.dumps(rich.payload("alpha", event)).encode(), rich.environment("alpha")
        )
        assert ran == (0, b"", b"")
    monkeypatch.setenv("TURNPOST_HOME", rich.root)
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    for words in (
        ["agents"],
        ["send", "alpha", "x"],
        ["inbox"],
        ["show", rich.ids["read"]],
        ["coordinator", "run"],
    ):
        done = CliRunner().invoke(main, [*words, "--json"], prog_name="turnpost")
        assert (done.exit_code, json.loads(done.stdout)["error"]["rule"]) == (3, "home")
    assert kit.tree(rich.root) == before
    (own, *_) = [check for check in spool.check_all(rich.root) if check.name == "spool"]
    assert own.status == "fail"


@pytest.mark.parametrize("whose", ["person", "alpha"])
def test_a_variable_makes_no_session_another_agent(rich: Rich, whose: str) -> None:
    """A project's settings can set `TURNPOST_AGENT`: it leads neither to the person nor to an agent that has had a session."""
    key = registry.PERSON if whose == "person" else rich.key(whose)
    session = "11111111-2222-4333-8444-555555555555"
    payload = {**rich.payload("gamma", "SessionStart", source="startup"), "session_id": session}
    variables = {"TURNPOST_AGENT": key, "CLAUDE_CODE_SESSION_ID": session, "CLAUDE_PID": "99999999"}
    ran = kit.run_hook("SessionStart", json.dumps(payload).encode(), rich.environment("gamma", **variables))
    assert "you are the agent" in ran.out.decode()
    assert registry.key_of_session(rich.root, session) not in (
        None,
        key,
        *[one["key"] for one in rich.agents.values()],
    )


def test_a_repository_that_names_a_home_chooses_where_its_sessions_report_and_nothing_else(
    rich: Rich, tmp_path: Path
) -> None:
    before = kit.tree(rich.root)
    other = str(tmp_path / "chosen")
    data = json.dumps(rich.payload("alpha", "SessionStart", source="startup")).encode()
    variables = {"TURNPOST_HOME": other, "CLAUDE_PID": "99999999"}
    ran = kit.run_hook("SessionStart", data, rich.environment("alpha", **variables))
    kit.fine("SessionStart", ran)
    for event in ("UserPromptSubmit", "PostToolBatch", "Stop", "Waiter"):
        data = json.dumps(rich.payload("alpha", event)).encode()
        assert kit.run_hook(event, data, rich.environment("alpha", **variables)) == (0, b"", b"")
    assert kit.tree(rich.root) == before
    assert home.is_private(other)
    assert len(registry.everyone(other)) == 1


def test_a_message_id_or_key_that_is_no_id_is_no_path(rich: Rich) -> None:
    for word in ("../../../etc/passwd", "msg-../../x", "msg-" + "." * 26, "", "\0"):
        assert mailbox.load_message(rich.root, word) is None
        assert registry.key_of_session(rich.root, word) is None
        assert registry.key_of_name(rich.root, word) is None


def test_a_system_without_a_watch_left_only_slows_the_coordinator(
    rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program can use up what there is of file watches."""

    def none_left() -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(watch, "Observer", none_left)
    bells = watch.Bells(home.pending(rich.root))
    bells.start()
    bells.stop()
    assert not bells.rung.is_set()
