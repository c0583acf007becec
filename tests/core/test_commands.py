"""Which command a shell runs, as its own command line shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnpost.core import commands

BEFORE = "source /h/.claude/shell-snapshots/s.sh 2>/dev/null || true && { \\builtin unalias -- 'which'; } && "
AFTER = " && pwd -P >| /tmp/claude-4df5-cwd"
SEND = "turnpost send parent found"


def shell(command: str, stdin: str = " < /dev/null") -> list[str]:
    """A shell as Claude Code starts it."""
    quoted = command.replace("'", "'\"'\"'")
    return ["/usr/bin/bash", "-c", f"{BEFORE}eval '{quoted}'{stdin}{AFTER}"]


@pytest.mark.parametrize(
    "command",
    [
        SEND, f"  {SEND}  ", "sh n.sh", f"# it's\n{SEND}; echo \"it's\" $HOME", f"echo 'a  b' | {SEND} | cat", f"{SEND} \\\\ !é",
        f"cat <<'EOF'\n'x' && eval '{SEND}'\nEOF\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("stdin", ["", " < /dev/null"])
def test_a_shell_of_claude_code_runs_its_command(command: str, stdin: str) -> None:
    assert commands.runs(shell(command, stdin), command)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_command_is_known_again_and_no_longer_or_shorter_one(command: str) -> None:
    assert commands.runs(shell(command), command)
    assert not commands.runs(shell(command + "x"), command)
    assert not commands.runs(shell("x" + command), command)


@pytest.mark.parametrize(
    "other",
    [
        f"{SEND}ation", f"{SEND} more", f"echo {SEND}", f"eval '{SEND}'", f"x; eval '{SEND}' < /dev/null", "turnpost send parent 'found'",
        "turnpost",
    ],
)  # fmt: skip
def test_another_command_is_another_whatever_it_holds(other: str) -> None:
    assert not commands.runs(shell(other), SEND)


def test_a_text_that_cannot_be_taken_apart_must_hold_the_whole_quoted_command() -> None:
    def broken(command: str) -> list[str]:
        return [*shell(command)[:2], shell(command)[2] + " '"]

    assert commands.runs(broken(SEND), SEND)
    assert commands.runs(broken("echo 'it'"), "echo 'it'")
    for other in (f"{SEND}ation", f"echo {SEND}", f"true; eval '{SEND}' "):
        assert not commands.runs(broken(other), SEND)


def test_a_shell_that_is_given_the_command_itself_runs_it() -> None:
    assert commands.runs(["/bin/sh", "-c", SEND], SEND)
    assert not commands.runs(["/bin/sh", "-c", f"{SEND}ation"], SEND)
    assert not commands.runs([], SEND)
    assert not commands.runs(["sh", "n.sh"], "sh")


def test_claude_code_writes_the_null_device_for_nul() -> None:
    assert commands.runs(shell(f"{SEND} >/dev/null"), f"{SEND} >nul")


def test_where_the_platform_tells_no_words_white_space_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turnpost.core.procs.LINUX", False)
    line = " ".join(shell(f"# a  b\n{SEND}")).replace("\n", "\\012").split()
    assert commands.runs(line, f"# a  b\n{SEND}")
    assert not commands.runs(line, SEND)


def test_the_end_of_a_batch_drops_what_does_not_run_on(tmp_path: Path) -> None:
    folder = str(tmp_path)
    commands.note(folder, "one", lasting=False)
    commands.note(folder, "two", lasting=False)
    commands.note(folder, "three", lasting=True)
    assert all(commands.shown(folder, shell(command)) for command in ("one", "two", "three"))
    assert commands.pending(folder)
    commands.drop(folder)
    assert not commands.pending(folder)
    assert [commands.shown(folder, shell(command)) for command in ("one", "three")] == [False, True]
    commands.drop(folder, lasting=True)
    assert list(tmp_path.iterdir()) == []
