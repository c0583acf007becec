"""What the demo says and how it judges, without Claude Code."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnpost.cli import columns, views
from turnpost.cli.demo import demo
from turnpost.demo import checks, scenes
from turnpost.demo.results import Delivery, Failure, Shown
from turnpost.demo.stage import Cut, Stage
from turnpost.demo.timeline import Timeline
from turnpost.lab.errors import LabError
from turnpost.lab.model import ScriptedModel
from turnpost.lab.world import World

READ = Delivery("idle", "idle", "msg-1", "read", "rewake", 1.0, 100, 120, seen=1)


@pytest.fixture
def over() -> threading.Event:
    return threading.Event()


@pytest.fixture
def story() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def stage(over: threading.Event, story: io.StringIO) -> Iterator[Stage]:
    with ScriptedModel() as model, World(Path("/bin/false"), model.url) as world:
        yield Stage(world, model, Timeline(story), over)


def test_a_message_that_was_read_once_has_no_fault() -> None:
    assert checks.faults([READ]) == []


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ({"state": "undeliverable"}, "undeliverable"),
        ({"seen": 0}, "0 times"),
        ({"seen": 2}, "2 times"),
        ({"elsewhere": 1}, "it is in 1 more"),
    ],
)
def test_every_other_outcome_is_a_fault_that_says_what_was_seen(
    changed: dict[str, object], seen: str
) -> None:
    (fault,) = checks.faults([READ._replace(**changed)])  # type: ignore[arg-type]
    assert fault.seen == seen
    assert fault.agent == "idle"
    assert "msg-1" in fault.expected


def test_a_scene_that_sent_nothing_is_a_fault() -> None:
    assert [fault.agent for fault in checks.missing(["idle"], ["idle", "killed"])] == ["killed"]


def test_the_timeline_fits_a_terminal_and_keeps_its_columns() -> None:
    stream = io.StringIO()
    Timeline(stream).tell("copied", "one word after another " * 8)
    lines = stream.getvalue().splitlines()
    assert len(lines) > 1
    assert all(len(line) < columns.WIDTH for line in lines)
    assert lines[0].split()[1:3] == ["s", "copied"]
    assert all(line.startswith(" " * 20) for line in lines[1:])


def test_the_table_fits_a_terminal_and_names_every_failure() -> None:
    long = READ._replace(situation=max((s.situation for s in scenes.ALL), key=len), read_ms=123_456)
    failure = Failure("idle", "msg-1 once", "2 times")
    shown = views.view(Shown("2.1.332", 12.3, (long, READ), (failure,), "/kept"))
    assert all(columns.width(line) < columns.WIDTH for line in shown.splitlines())
    assert long.situation in shown
    assert "FAILED idle: expected msg-1 once; seen: 2 times" in shown
    assert "exactly once" not in shown
    assert "/kept" in shown


def test_a_demo_without_failures_says_so() -> None:
    assert "all 1 messages were read exactly once" in views.view(Shown("2.1.332", 12.3, (READ,)))


@pytest.mark.parametrize("failures", [(), (Failure("idle", "once", "twice"),)])
def test_the_exit_code_tells_whether_it_worked(
    failures: tuple[Failure, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    shown = Shown("2.1.332", 12.3, (READ,), failures)
    monkeypatch.setattr("turnpost.cli.demo._play", lambda *_: shown)
    assert CliRunner().invoke(demo, ["--json"]).exit_code == (1 if failures else 0)


def test_a_failed_expectation_is_told_and_kept(stage: Stage, story: io.StringIO) -> None:
    stage.expect("idle", "one", "two", False)
    stage.expect("idle", "one", "one", True)
    assert stage.failures == [Failure("idle", "one", "two")]
    assert "expected one; seen: two" in story.getvalue()


def test_a_demo_that_is_ended_starts_no_more_commands(stage: Stage, over: threading.Event) -> None:
    over.set()
    with pytest.raises(Cut):
        stage.command("agents")


def test_a_command_that_fails_says_what_it_said(stage: Stage) -> None:
    with pytest.raises(LabError, match="no agent is named 'nobody'"):
        stage.command("send", "nobody", "hello")
