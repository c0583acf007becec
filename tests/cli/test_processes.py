"""The command as a process: who it speaks as, what it loads, and how it behaves in a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from tests.cli.conftest import modules_of, start
from turnpost.actions import receipts, sending
from turnpost.core import procs, sender

pytestmark = pytest.mark.process

# Registers itself as an agent's session, as SessionStart does, and runs the given commands as its tools.
SESSION = """
import json, os, subprocess, sys
from turnpost.core import attach
root, name, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
attach.attach(root, attach.Start("0a1b2c3d-1111-2222-3333-44445555666" + name[-1], "startup", os.getpid(), name=name, cwd="/"))
for words in commands:
    done = subprocess.run(words, capture_output=True)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]))
"""
# Without a starter of its own: no coordinator is to be left running by these tests.
QUIET = "import sys; from turnpost.actions import courier; courier.ensure = lambda root: (); from turnpost.cli import main; main()"


def inside(home: FakeHome, name: str, *commands: list[str], **environment: str) -> list[tuple[int, str, str]]:
    """Run commands as the tools of a session; how each ended."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, home.root, name, json.dumps(commands)], capture_output=True, check=True,
        env={**os.environ, "TURNPOST_HOME": home.root, **environment},
    )  # fmt: skip
    return [tuple(json.loads(line)) for line in done.stdout.decode().splitlines()]


def turnpost(*words: str) -> list[str]:
    return [sys.executable, "-c", QUIET, *words]


def test_a_command_inside_a_session_speaks_as_its_agent_whatever_its_variables_say(home: FakeHome) -> None:
    home.agent("beta")
    home.policy('[[rule]]\nfrom = "alpha"\nto = "beta"\nverdict = "allow"\n')
    shell = ["env", "-i", f"TURNPOST_HOME={home.root}", "TURNPOST_AGENT=person", "sh", "-c", '"$0" "$@"']
    [direct, hidden, to_itself] = inside(
        home,
        "alpha",
        turnpost("send", "beta", "direct", "--json"),
        [*shell, *turnpost("send", "beta", "hidden", "--json")],
        turnpost("send", "alpha", "me", "--json"),
        CLAUDE_CODE_SESSION_ID="",
        CLAUDECODE="",
    )
    for code, out, _ in (direct, hidden):
        assert code == 0
        assert receipts.show(home.root, json.loads(out)["id"]).sender == "alpha"
    assert json.loads(to_itself[1])["error"]["rule"] == "self"


def test_inside_a_session_nothing_that_is_the_persons_can_be_done(home: FakeHome) -> None:
    home.agent("beta")
    before = home.tree()
    here = ("--project", str(home.folder))
    setting_up = (("install", *here), ("install", "--dry-run", *here), ("uninstall", *here))
    done = inside(
        home,
        "alpha",
        *(
            turnpost(*words, "--json")
            for words in (("hold", "beta"), ("inbox",), ("wake", "beta"), *setting_up)
        ),
    )
    assert [(code, json.loads(out)["error"]["rule"]) for code, out, _ in done] == [(3, "not-allowed")] * 6
    assert not (home.folder / ".claude").exists()
    assert {path for path in home.tree() if "/agents/" in path and "hold" in path} == set()
    assert set(before) <= set(home.tree())


def test_a_session_that_turnpost_does_not_know_is_refused(home: FakeHome) -> None:
    home.agent("beta")
    script = f"import subprocess, sys; sys.exit(subprocess.run({turnpost('send', 'beta', 'x', '--json')!r}).returncode)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True,
        env={**os.environ, "TURNPOST_HOME": home.root, "CLAUDECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["rule"] == "foreign"


def test_sending_loads_neither_pydantic_nor_what_other_commands_need(home: FakeHome) -> None:
    home.agent("beta", "working")
    loaded = modules_of(home, "send", "beta", "hello")
    assert "turnpost.actions.sending" in loaded
    unwanted = {
        "pydantic", "watchdog", "filelock", "json", "rich", "tomllib", "subprocess", "difflib", "turnpost.harness", "turnpost.install",
        "turnpost.lab", "turnpost.service", "turnpost.actions.launching", "turnpost.actions.stopping",
    }  # fmt: skip
    assert loaded & unwanted == set()


def test_a_reader_that_leaves_early_gets_no_complaint(home: FakeHome) -> None:
    for number in range(3):
        home.agent(f"agent-{number}", ago=60)
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m turnpost agents --watch | head -n 1"], capture_output=True, timeout=60,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_stdin_and_stdout_work_under_an_ascii_locale(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    spoken = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    if not sender.who(home.root).is_person:
        pytest.skip("runs inside a Claude session: the command would be refused as foreign")
    sending_it = subprocess.run(
        turnpost("send", "alpha", "-", "--json"), input="grüße 😀".encode(), capture_output=True,
        env={**os.environ, "TURNPOST_HOME": home.root, **spoken},
    )  # fmt: skip
    sent = json.loads(sending_it.stdout)
    assert receipts.show(home.root, sent["id"]).body == "grüße 😀"
    shown = start(home, "show", sent["id"], environment=spoken)
    assert (shown.code, shown.err) == (0, "")
    assert "😀" in shown.out
    assert len(home.box(alpha).waiting()) == 1


def test_interrupting_a_wait_is_130_and_leaves_one_line(home: FakeHome) -> None:
    home.agent("alpha", "working")
    process = subprocess.Popen(
        turnpost("wait", "alpha", "--timeout", "30"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == b"alpha: working\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, b"", b"turnpost: interrupted")


def test_the_watch_shows_each_change_as_a_line(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    process = subprocess.Popen(
        [sys.executable, "-m", "turnpost", "agents", "--watch"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().endswith("alpha working waiting=0\n")
    home.kill(alpha)
    assert process.stdout.readline().endswith("alpha lost waiting=0\n")
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_persons_message_starts_a_coordinator_that_outlives_the_command(home: FakeHome) -> None:
    if not sender.who(home.root).is_person:
        pytest.skip("runs inside a Claude session: the command would be refused as foreign")
    home.agent("alpha", "working")
    try:
        done = start(home, "send", "alpha", "hello", "--json")
        assert done.json["warnings"] == []
        # The one that `send` began, and not a second one: that would come up after the stop below.
        until = time.monotonic() + 20
        while not (started := start(home, "coordinator", "status", "--json").json)["running"]:
            assert time.monotonic() < until
        assert started["since"].endswith("Z")
        assert procs.parent(started["pid"]) != os.getpid()
        assert start(home, "coordinator", "start", "--json").json == started
    finally:
        assert start(home, "coordinator", "stop", "--json").json["running"] is False
    assert Path(home.root, "coordinator.lock").exists()


def test_a_send_is_durable_when_the_command_ends(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    home.policy('[[rule]]\nfrom = "beta"\nverdict = "allow"\n')
    [done] = inside(home, "beta", turnpost("send", "alpha", "hello", "--json"))
    assert done[0] == 0
    shown = sending.original(home.root, json.loads(done[1])["id"])
    assert shown["to"] == [{"kind": "agent", "name": "alpha", "key": alpha["key"]}]


def test_closed_streams_are_empty_ones(home: FakeHome) -> None:
    home.agent("alpha")
    shell = ["sh", "-c", 'exec "$@" <&- >&-', "sh"]
    done = subprocess.run([*shell, *turnpost("agents")], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    done = subprocess.run([*shell, *turnpost("send", "alpha", "-")], capture_output=True)
    assert done.returncode == 3
    assert b"rule 'empty'" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NO /dev/full: a full disk cannot be had here")
def test_an_output_that_takes_nothing_is_one_line_and_the_message_is_sent(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(turnpost("send", "alpha", "hello"), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert len(home.box(alpha).waiting()) == 1


def test_a_text_over_the_most_that_is_read_is_refused_with_its_own_size(home: FakeHome) -> None:
    home.agent("alpha")
    size = 20_000_000
    done = subprocess.run(turnpost("send", "alpha", "-"), input=b"x" * size, capture_output=True)
    assert done.returncode == 3
    assert f"has {size} bytes".encode() in done.stderr
