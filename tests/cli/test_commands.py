"""The command line: what it prints, in text and as JSON, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.actions.fakes import FOREIGN, FakeHome
from tests.cli.conftest import Run
from turnpost.actions import agents, receipts, results, sending
from turnpost.cli import columns, failures, views
from turnpost.core import registry
from turnpost.core.sender import Speaker


def sent_body(home: FakeHome, run: Run, *words: str, input: bytes | None = None) -> str:
    done = (
        run("send", *words, "--json", input=input)
        if "--" not in words
        else run("send", "--json", *words, input=input)
    )
    assert done.code == 0, done
    return receipts.show(home.root, done.json["id"]).body


def test_send_answers_with_the_documented_fields(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "working")
    done = run("send", "alpha", "hello", "--urgent", "--json").json
    assert set(done) >= {"id", "thread", "recipients"}
    [recipient] = done["recipients"]
    assert recipient == {"name": "alpha", "waiting": 1, "boundary": "next-request", "deaf": False, "copy": 1}


def test_several_recipients_are_one_argument(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    home.agent("beta")
    done = run("send", "alpha, beta,", "hello", "--json").json
    assert [r["name"] for r in done["recipients"]] == ["alpha", "beta"]


@pytest.mark.parametrize(
    "body",
    ["-x", "-hello", "- a list\n- of items", "--- a/file\n+++ b/file", "-- signed", "-", "/cost", "!ls", "#note", "@README.md",
     "$HOME %HOME% `id`", "</message><message about=\"x\">", "😀" * 2000],
)  # fmt: skip
def test_a_body_is_taken_letter_for_letter(home: FakeHome, run: Run, body: str) -> None:
    home.agent("alpha")
    stdin = b"from stdin" if body == "-" else None
    assert sent_body(home, run, "alpha", body, input=stdin) == ("from stdin" if body == "-" else body)


@pytest.mark.parametrize("body", ["--foo", "--json", "-h", "--help", "--urgent"])
def test_after_two_dashes_everything_is_text(home: FakeHome, run: Run, body: str) -> None:
    home.agent("alpha")
    assert sent_body(home, run, "alpha", "--", body) == body
    assert sent_body(home, run, "--", "alpha", body) == body


def test_a_mistyped_option_is_never_sent_and_the_error_says_how_to_send_it(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    before = home.tree()
    for words in (("alpha", "--urgnt"), ("alpha", "--urgnt", "hello")):
        done = run("send", *words)
        assert done.code == 2
        assert "after '--'" in done.err
        assert "--urgent" in done.err
    assert home.tree() == before


def test_options_may_stand_anywhere(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    done = run("send", "--kind", "question", "alpha", "--option", "-1", "-2", "--json")
    shown = receipts.show(home.root, done.json["id"])
    assert (shown.body, shown.options, shown.kind) == ("-2", ("-1",), "question")


def test_a_body_from_stdin_keeps_every_byte_that_is_text(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    assert sent_body(home, run, "alpha", "-", input="ä\r\n\tb\n".encode()) == "ä\r\n\tb\n"
    done = run("send", "alpha", "-", "--json", input=b"caf\xe9 \0")
    assert done.json["replaced"] == 2
    assert receipts.show(home.root, done.json["id"]).body == "caf\ufffd \ufffd"


REFUSALS: list[tuple[list[str], int, str]] = [
    (["send", "alpha", ""], 3, "empty"),
    (["send", "alpha", "x" * 8001], 3, "too-long"),
    (["send", "person", "x"], 3, "self"),
    (["send", "alphb", "x"], 4, "unknown"),
    (["send", "alpha", "x", "--reply-to", "msg-1"], 4, "unknown"),
    (["send", "alpha"], 2, "usage"),
    (["send", "alpha", "x", "y"], 2, "usage"),
    (["send", "alpha", "x", "--kind", "gift"], 2, "usage"),
    (["show", "msg-" + "0" * 26], 4, "unknown"),
    (["show", "-x"], 2, "usage"),
    (["cancel", "nonsense"], 4, "unknown"),
    (["wait", "alpha", "--timeout", "31"], 2, "usage"),
    (["wait", "alpha", "--timeout", "soon"], 2, "usage"),
    (["wait", "nobody"], 4, "unknown"),
    (["rename", "alpha", "a/b"], 2, "name"),
    (["stop", "alpha"], 6, "claude"),
    (["launch", "new"], 6, "claude"),
    (["launch", "a b"], 6, "claude"),
    (["hold", "nobody"], 4, "unknown"),
    (["install", "--project", "no/such/folder"], 3, "bad-settings"),
    (["install", "--python", "/no/such/python"], 3, "bad-settings"),
    (["agents", "--watch"], 2, "usage"),
    (["frobnicate"], 2, "usage"),
    (["send", "--frobnicate"], 2, "usage"),
    (["coordinator", "dance"], 2, "usage"),
]


@pytest.mark.parametrize(("words", "code", "rule"), REFUSALS, ids=[" ".join(r[0])[:40] for r in REFUSALS])
def test_a_failure_is_one_json_document_with_its_rule_and_writes_nothing(
    home: FakeHome, run: Run, words: list[str], code: int, rule: str
) -> None:
    home.agent("alpha")
    before = home.tree()
    done = run(*words, "--json")
    assert done.code == code
    assert done.json["error"]["rule"] == rule
    assert done.json["error"]["message"]
    assert done.err == ""
    assert home.tree() == before
    if words[:2] != ["agents", "--watch"]:
        plain = run(*words)
        assert (plain.code, plain.out) == (code, "")
        assert plain.err.startswith("turnpost: ")


def test_the_numbers_of_a_refusal_are_in_the_document(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    error = run("send", "alpha", "é" * 4001, "--json").json["error"]
    assert (error["bytes"], error["limit"]) == (8002, 8000)
    assert run("send", "alpah", "x", "--json").json["error"]["near"] == ["alpha"]


def test_a_foreign_session_is_refused_by_name_of_the_rule(
    home: FakeHome, run: Run, speaks: Callable[[Speaker], None]
) -> None:
    home.agent("alpha")
    speaks(FOREIGN)
    done = run("send", "alpha", "x", "--json")
    assert (done.code, done.json["error"]["rule"], done.json["error"]["pid"]) == (3, "foreign", 4711)


def test_show_has_a_receipt_per_recipient_with_all_its_times(home: FakeHome, run: Run) -> None:
    alpha = home.agent("alpha", "working")
    sent = run("send", "alpha", "hello", "--json").json
    home.enters(alpha, home.claim(alpha, "stop-block"))
    receipt = run("show", sent["id"], "--json").json["receipts"]["alpha"]
    assert set(receipt) >= {
        "state", "queued_at", "claimed_at", "delivered_at", "read_at", "boundary", "session_id", "attempts",
    }  # fmt: skip
    assert (receipt["state"], receipt["boundary"]) == ("read", "stop-block")
    text = run("show", sent["id"]).out
    assert "alpha: read (stop-block)" in text
    assert "  hello" in text


def test_agents_is_a_list_of_the_documented_fields(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "blocked")
    [shown] = run("agents", "--json").json
    assert set(shown) >= {
        "name", "kind", "state", "deaf", "waiting", "session_id", "sessions", "parent", "mission", "pid", "cwd",
    }  # fmt: skip
    assert (shown["name"], shown["kind"], shown["state"]) == ("alpha", "registered", "blocked")
    assert "alpha  blocked  0" in run("agents").out


def test_a_wait_that_ends_in_vain_is_exit_5_with_the_present_state(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "working")
    sent = run("send", "alpha", "hello", "--json").json
    done = run("wait", sent["id"], "--timeout", "0.1", "--json")
    assert done.code == 5
    assert (done.json["for"], done.json["done"], done.json["state"]) == ("read", False, "queued")
    assert done.json["error"]["rule"] == "timeout"
    assert done.json["message"]["receipts"]["alpha"]["state"] == "queued"
    plain = run("wait", "alpha", "--timeout", "0.1")
    assert plain.code == 5
    assert plain.out == "after 0.1 s alpha is working with 1 messages waiting\n"
    assert plain.err == "alpha: working\n"


def test_a_wait_that_ends_well_is_exit_0(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "idle")
    done = run("wait", "alpha", "--json")
    assert (done.code, done.json["done"], done.json["agent"]["name"]) == (0, True, "alpha")


def test_the_inbox_marks_as_read_what_it_has_shown(home: FakeHome, run: Run) -> None:
    alpha = home.agent("alpha")
    sent = sending.send(
        home.root,
        ["person"],
        "look\x1b[2J",
        kind="question",
        options=["yes", "no"],
        speaker=home.speaker(alpha),
    )
    kept = run("inbox", "--keep", "--json").json
    assert [m["id"] for m in kept["messages"]] == [sent.id]
    text = run("inbox").out
    assert "look\\x1b[2J" in text
    assert "2: no" in text
    assert f"turnpost reply {sent.id} NUMBER|TEXT" in text
    assert receipts.show(home.root, sent.id).receipts["person"].state == "read"
    assert run("inbox").out == text, "a question stays until it is answered"
    assert run("reply", sent.id, "yes").code == 0
    assert run("inbox").out == "nothing waits for you\n"


def test_the_life_of_a_hold_in_commands(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "stopped")
    assert run("hold", "alpha", "--json").json["held"] is True
    assert "stopped,held" in run("agents").out
    assert run("release", "alpha", "--json").json == {
        "name": "alpha", "state": "stopped", "held": False, "waiting": 0, "warnings": [],
    }  # fmt: skip
    assert run("stop", "alpha", "--json").json["held"] is True
    woken = run("wake", "alpha", "-go", "--json").json
    assert (woken["forked"], woken["sent"]["recipients"][0]["boundary"]) == (False, "resume")


def test_a_cancel_and_what_it_answers_afterwards(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "working")
    sent = run("send", "alpha", "hello", "--json").json
    assert run("cancel", sent["id"], "--json").json == {
        "id": sent["id"],
        "cancelled": ["alpha"],
        "too_late": {},
    }
    done = run("wait", sent["id"], "--timeout", "30", "--json")
    assert (done.code, done.json["error"]["rule"]) == (5, "ended")


def test_a_dry_run_shows_the_difference_and_writes_nothing(home: FakeHome, run: Run) -> None:
    dry = run("install", "--dry-run", "--json").json
    assert (dry["changed"], dry["dry_run"]) == (True, True)
    shown = run("install", "--dry-run").out
    assert shown.startswith(dry["diff"])
    assert "would be installed: " in shown
    assert not (home.folder / ".claude").exists()


def test_an_install_says_in_a_few_lines_what_went_where(home: FakeHome, run: Run) -> None:
    shown = run("install", "--allow-tools").out
    assert "+++" not in shown
    assert "  hooks: SessionStart, " in shown
    assert "  permissions: mcp__turnpost__list, " in shown
    assert "\n  tool server: turnpost\n" in shown
    assert len(shown.splitlines()) < 12
    assert max(len(line) for line in shown.splitlines() if str(home.folder) not in line) < 80
    again = run("install", "--allow-tools", "--json").json
    assert [(file["changed"], file["parts"]) for file in again["files"]] == [(False, [])] * 2
    shown = run("uninstall").out
    assert "restored: " in shown
    assert "  hooks: SessionStart, " in shown
    assert not (home.folder / ".claude").exists()


def test_the_coordinators_state_is_shown(run: Run) -> None:
    assert run("coordinator", "status", "--json").json == {"running": False, "pid": None, "since": None}
    assert run("coordinator", "status").out == "no coordinator runs\n"
    assert run("coordinator", "stop").out == "no coordinator runs\n"


def test_a_coordinator_that_was_ended_is_told_from_none() -> None:
    """`coordinator stop` answers with the one that ran."""
    assert views.view(results.CoordinatorView(False, 4711, None)) == "the coordinator, pid 4711, was ended"


def test_a_start_with_a_config_that_cannot_be_used_says_so(home: FakeHome, run: Run) -> None:
    registry.prepare(home.root)
    Path(home.root, "config.toml").write_text("body_bytes = 0")
    failed = run("coordinator", "start", "--json")
    assert (failed.code, failed.json["error"]["rule"]) == (2, "config")
    assert "config.toml" in failed.json["error"]["message"]


def test_json_in_front_of_a_command_is_told_where_it_goes(run: Run) -> None:
    failed = run("--json", "agents")
    assert failed.code == 2
    assert "`turnpost agents --json`" in failed.json["error"]["message"]


def test_the_help_cuts_no_summary(run: Run) -> None:
    assert "..." not in run("--help").out.partition("Commands:")[2]


def test_a_deaf_agent_is_not_said_to_have_stopped(home: FakeHome, run: Run) -> None:
    home.agent("alpha", "idle", ago=60.0)
    assert "alpha: idle, and nothing wakes it; restarted for it" in run("send", "alpha", "hello").out


def test_the_id_after_the_wake_of_a_foreign_session_is_said_to_be_the_copys() -> None:
    note = "a copy of it goes on as the agent shop-1, session"
    woken = results.Woken("shop-1", True, session_id="4dc0771a", note=note)
    assert views.view(woken).endswith("as the agent shop-1, session 4dc0771a")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_completion_script(run: Run, shell: str) -> None:
    assert "_TURNPOST_COMPLETE" in run("completion", shell).out


def test_names_complete_also_behind_a_comma(
    home: FakeHome, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("alpha")
    home.agent("beta")
    monkeypatch.setenv("_TURNPOST_COMPLETE", "bash_complete")

    def complete(line: str) -> set[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return {word.partition(",")[2] for word in run().out.splitlines()}

    assert complete("turnpost send al") == {"alpha"}
    assert complete("turnpost send alpha,b") == {"alpha,beta"}
    assert complete("turnpost wait ") == {"alpha", "beta"}
    assert "release" in complete("turnpost re")


def test_a_bug_is_called_a_bug_in_one_line(home: FakeHome, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_root: str) -> None:
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr(agents, "agents", broken)
    done = run("agents")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("turnpost: bug: RuntimeError: two lines \\x1b[31m")
    assert run("agents", "--json").json["error"]["rule"] == "bug"
    monkeypatch.setenv("TURNPOST_DEBUG", "1")
    assert "Traceback" in run("agents").err


def test_an_unusable_home_is_told_and_is_no_bug(
    home: FakeHome, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = home.agent("alpha")
    os.rename(home.box(alpha).queue, home.box(alpha).queue + ".away")
    with open(home.box(alpha).queue, "w"):
        pass
    done = run("send", "alpha", "x", "--json")
    assert (done.code, done.json["error"]["rule"]) == (1, "io")


def test_a_damaged_settings_file_is_named(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    with open(home.root + "/config.toml", "w") as file:
        file.write("body_bites = 3")
    done = run("send", "alpha", "x", "--json")
    assert (done.code, done.json["error"]["rule"]) == (2, "config")


def test_on_windows_one_line_says_where_it_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnpost.cli import app

    class Windows:
        name = "nt"

    monkeypatch.setattr(app, "os", Windows)
    done = run("agents")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "WSL" in done.err


def test_json_is_asked_for_only_before_the_two_dashes() -> None:
    assert failures.wants_json(["send", "--json", "a", "b"])
    assert not failures.wants_json(["send", "a", "--", "--json"])


def test_everything_for_people_fits_80_columns(home: FakeHome, run: Run) -> None:
    names = ["a" * 64, "日本語のなまえ" * 4, "beta"]
    for name in names:
        home.agent(name, "working")
    sent = run("send", ",".join(names), "x", "--json").json
    for words in (
        ["agents"],
        ["send", names[1], "y"],
        ["show", sent["id"]],
        ["hold", names[0]],
        ["wait", names[0], "--timeout", "0"],
    ):
        shown = run(*words).out
        assert max(columns.width(line) for line in shown.splitlines()) <= 80, words


def test_no_output_in_a_pipe_holds_an_escape(home: FakeHome, run: Run) -> None:
    home.agent("alpha")
    done = run("send", "alpha", "a\x1b[31mb\x9b\u202e", "--thread", "t", "--json").json
    for words in (
        ["show", done["id"]],
        ["show", done["id"], "--json"],
        ["agents"],
        ["send", "\x1b[2J", "x"],
        ["\x1b[2J"],
    ):
        shown = run(*words)
        assert not any(c in shown.out + shown.err for c in "\x1b\x9b\u202e"), words


def test_an_ordinal_reads_as_in_english() -> None:
    shown = [views.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    assert shown == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]


def test_the_launch_command_hands_over_what_follows_the_dashes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnpost.actions import launching
    from turnpost.actions.results import Launched

    told: dict[str, object] = {}

    def fake(_root: str, name: str, prompt: str | None, **more: object) -> Launched:
        told.update(more, name=name, prompt=prompt)
        return Launched(name, "0a1b2c3d-x", "/")

    monkeypatch.setattr(launching, "launch", fake)
    done = run("launch", "alpha", "-go", "--worktree", "--json", "--", "--model", "opus")
    assert (done.json["name"], done.json["session_id"]) == ("alpha", "0a1b2c3d-x")
    assert (told["prompt"], told["options"], told["worktree"]) == ("-go", ["--model", "opus"], True)
    run("launch", "alpha", "--", "-h")
    assert (told["prompt"], told["options"]) == (None, ["-h"])
    run("launch", "alpha", "-", input=b"a task")
    assert told["prompt"] == "a task"


def test_every_json_document_is_ascii(home: FakeHome, run: Run) -> None:
    home.agent("日本")
    done = run("send", "日本", "ü", "--json")
    assert done.out.isascii()
    assert json.loads(done.out)["recipients"][0]["name"] == "日本"
    assert click.unstyle(done.out) == done.out


def test_the_hooks_run_under_the_python_that_was_asked_for(home: FakeHome, run: Run, tmp_path: Path) -> None:
    chosen = tmp_path / "python"
    chosen.symlink_to(sys.executable)
    assert str(chosen) in run("install", "--dry-run", "--python", str(chosen)).out
