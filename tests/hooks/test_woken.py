"""The prompt of a wake: the shell of its hook sees that there is nothing to do, and starts no interpreter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.hooks.driver import python
from turnpost.core import files, home
from turnpost.install.merge import hooks_block

pytestmark = pytest.mark.process

SESSION, KEY = "11111111-aaaa-bbbb-cccc-000000000000", "ag-01JD3Q0000000000000000000A"
UNKNOWN = "22222222-aaaa-bbbb-cccc-000000000000"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only thing that the environment names, and where one is."""
    for name in ("TURNPOST_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wake() -> Path:
    """A waiter has begun a turn of the session: its flag."""
    root = home.home()
    files.mkdir(home.agent(root, KEY))
    files.mkdir(root + "/sessions")
    files.write(home.session(root, SESSION), KEY.encode())
    files.touch(home.woken(root, KEY))
    return Path(home.woken(root, KEY))


def interpreted(folder: Path, session_id: str = SESSION, entrypoint: str = "cli") -> bool:
    """Whether the prompt hook, run as installed, starts its interpreter."""
    trace = folder / "started"
    spy = folder / "python"
    spy.write_text(f"#!/bin/sh\necho > '{trace}'\n")
    spy.chmod(0o700)
    entry = hooks_block(spy)["UserPromptSubmit"][0]["hooks"][0]
    given = {"CLAUDE_CODE_ENTRYPOINT": entrypoint, "CLAUDE_CODE_SESSION_ID": session_id}
    done = subprocess.run(
        [entry["command"], *entry["args"]], input=b"{}", env={**os.environ, **given}, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    started = trace.exists()
    trace.unlink(missing_ok=True)
    return started


def test_the_prompt_of_a_wake_starts_no_interpreter_and_the_next_one_does(folder: Path) -> None:
    flag = wake()
    assert not interpreted(folder)
    assert not flag.exists()
    assert interpreted(folder)


@pytest.mark.parametrize(
    "variables",
    [
        {"TURNPOST_HOME": "{folder}/a state"},
        {"TURNPOST_HOME": "below"},
        {"TURNPOST_HOME": "", "XDG_STATE_HOME": ""},
        {"XDG_STATE_HOME": "{folder}/xdg"},
        {"HOME": '{folder}/it\'s $HOME; "quoted"/'},
    ],
)
def test_the_shell_knows_every_home_that_the_hooks_know(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("{folder}", str(folder)))
    flag = wake()
    assert not interpreted(folder)
    assert not flag.exists()


@pytest.mark.parametrize(("session_id", "entrypoint"), [(UNKNOWN, "cli"), ("", "cli"), (SESSION, "sdk-cli")])
def test_another_sessions_prompt_and_claude_p_leave_the_flag(
    folder: Path, session_id: str, entrypoint: str
) -> None:
    flag = wake()
    assert interpreted(folder, session_id, entrypoint)
    assert flag.exists()


def test_a_flag_that_cannot_be_taken_away_is_left_to_the_interpreter(folder: Path) -> None:
    flag = wake()
    flag.unlink()
    flag.mkdir()
    assert interpreted(folder)


def test_where_nothing_can_be_looked_at_the_real_hook_goes_on_in_silence(folder: Path) -> None:
    Path(home.home()).parent.mkdir(parents=True)
    Path(home.home()).touch()
    entry = hooks_block(python())["UserPromptSubmit"][0]["hooks"][0]
    given = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ID": SESSION}
    done = subprocess.run(
        [entry["command"], *entry["args"]], input=b"{}", env={**os.environ, **given}, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("what", ["a FIFO", "a link to a device", "a link to a file"])
def test_what_is_no_file_of_ours_in_the_place_of_a_session_is_not_read(folder: Path, what: str) -> None:
    flag = wake()
    place = Path(home.session(home.home(), SESSION))
    place.unlink()
    if what == "a FIFO":
        os.mkfifo(place)
    elif what == "a link to a device":
        place.symlink_to("/dev/zero")
    else:
        (folder / "key").write_text(KEY)
        place.symlink_to(folder / "key")
    assert interpreted(folder), "it knows what to do with that"
    assert flag.exists()


def test_a_variable_of_the_callers_is_not_taken_for_a_session(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = wake()
    monkeypatch.setenv("key", KEY)
    assert interpreted(folder, UNKNOWN)
    assert flag.exists()


def test_what_stands_in_a_session_leads_to_no_other_folder(folder: Path) -> None:
    wake()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "woken").touch()
    up = "../" * len(Path(home.agent(home.home(), "x")).parts)
    files.write(home.session(home.home(), SESSION), f"{up}{elsewhere}".encode())
    assert interpreted(folder)
    assert (elsewhere / "woken").exists()
