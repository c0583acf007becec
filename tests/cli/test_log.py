"""`log` and what the person reads of secrets: as text, as one document, and followed as a document a line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.actions.fakes import FakeHome
from tests.cli.conftest import Run
from turnpost.core import audit, registry


def test_a_line_says_when_what_from_whom_to_whom_and_which_way(run: Run, home: FakeHome) -> None:
    home.agent("alpha")
    sent = run("send", "alpha", "x", "--kind", "question", "--json").json
    head, *rest = run("log").out.splitlines()
    assert head.endswith("Z send person → alpha (person → agent)")
    assert sent["id"] in rest[0]
    assert max(len(line) for line in (head, *rest)) <= 80
    (entry,) = run("log", "--json").json["entries"]
    assert (entry["action"], entry["direction"], entry["message"]) == ("send", "person → agent", sent["id"])
    assert entry["details"] == {"kind": "question", "thread": "alpha+person", "urgent": False, "redacted": 0}


def test_a_refusal_is_found_by_its_action_with_its_numbers(run: Run, home: FakeHome) -> None:
    home.agent("alpha")
    assert run("send", "alpha", " ").code == 3
    assert "tried=send rule=empty numbers=bytes:0" in run("log", "--action", "refusal").out
    assert run("log", "--action", "hold").out == "nothing of the kind is in the log\n"


def test_wrong_filters_are_usage_errors(run: Run, home: FakeHome) -> None:
    registry.prepare(home.root)
    assert run("log", "--action", "denial").code == 2
    assert run("log", "--since", "soon").code == 2
    assert run("log", "--limit", "0").code == 2
    assert run("log", "--agent", "nobody").code == 4


def test_what_drives_a_terminal_is_shown_as_a_code(run: Run, home: FakeHome) -> None:
    registry.prepare(home.root)
    audit.write(home.root, "trouble", about="\x1b[2J", error="a\nb")
    assert "\x1b" not in run("log").out


def test_sender_and_reader_are_told_how_many_secrets_were_taken_out(run: Run, home: FakeHome) -> None:
    home.agent("alpha")
    assert "1 secret was taken out" in run("send", "alpha", "use AKIAIOSFODNN7EXAMPLE").out
    sent = run("send", "alpha", "AKIAIOSFODNN7EXAMPLE or AKIAIOSFODNN7EXAMPLE", "--json").json
    assert sent["redacted"] == 2
    assert "2 secrets were taken out" in run("show", sent["id"]).out
    assert "1 secret was taken out" in run("mission", "start", "m1", "use AKIAIOSFODNN7EXAMPLE").out
    assert "taken out" not in run("mission", "show", "m1").out


@pytest.mark.process
def test_followed_as_json_each_line_is_a_document_and_an_interrupt_is_its_end(home: FakeHome) -> None:
    registry.prepare(home.root)
    audit.write(home.root, "deaf")
    with follower(home) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["action"] == "deaf"
        audit.write(home.root, "read")
        assert json.loads(process.stdout.readline())["action"] == "read"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.process
def test_a_follower_ends_when_nobody_reads_any_more(home: FakeHome) -> None:
    registry.prepare(home.root)
    audit.write(home.root, "deaf")
    with follower(home) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) in (0, 1)


def follower(home: FakeHome) -> Any:
    return subprocess.Popen(
        [sys.executable, "-m", "turnpost", "log", "--follow", "--json"], stdout=subprocess.PIPE,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
