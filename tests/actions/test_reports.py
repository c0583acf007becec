"""What becomes of a child's last words: a message to its parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from turnpost.actions import receipts
from turnpost.core import clock, files, reporting, store
from turnpost.core.mailbox import Mailbox, entry_id, load_message
from turnpost.core.records import TYPE_CHECKING
from turnpost.service.reports import send_all

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Doing, Message


def arrived(home: FakeHome, agent: Agent) -> list[Message]:
    found = [load_message(home.root, entry_id(name)) for name in Mailbox(home.root, agent["key"]).waiting()]
    return [one for one in found if one is not None]


def report(home: FakeHome, child: Agent, said: str) -> None:
    reporting.leave(home.root, child["key"], {"last_assistant_message": said})
    send_all(home.root, child)


@pytest.fixture
def parent(home: FakeHome) -> Agent:
    return home.agent("lead", "idle")


@pytest.fixture
def child(home: FakeHome, parent: Agent) -> Agent:
    made = home.agent("kid", parent=parent)
    reporting.switch_on(home.root, made["key"])
    return made


def test_it_is_a_report_to_the_parent_and_sent_once(home: FakeHome, parent: Agent, child: Agent) -> None:
    report(home, child, "42 tests pass")
    send_all(home.root, child)
    (message,) = arrived(home, parent)
    assert (message["kind"], message["body"], message["sender"]["name"]) == ("report", "42 tests pass", "kid")
    assert message["urgent"]
    assert receipts.show(home.root, message["id"]).receipts["lead"].state == "queued"


def test_it_bears_no_secret_and_its_parent_knows_whose_it_is(
    home: FakeHome, parent: Agent, child: Agent
) -> None:
    report(home, child, "the key is AKIAIOSFODNN7EXAMPLE")
    (message,) = arrived(home, parent)
    assert "AKIA" not in message["body"]
    assert message.get("redacted") == 1
    assert message["to"][0].get("kin") == "child"


def test_a_coordinator_killed_after_the_send_sends_no_second(
    home: FakeHome, parent: Agent, child: Agent
) -> None:
    reporting.leave(home.root, child["key"], {"last_assistant_message": "done"})
    (path,) = reporting.waiting(home.root, child["key"])
    before = files.read(path)
    send_all(home.root, child)
    files.write(path, before)
    send_all(home.root, child)
    assert len(arrived(home, parent)) == 1
    assert reporting.waiting(home.root, child["key"]) == []


@pytest.mark.parametrize(("doing", "quiet"), [("idle", False), ("working", False), ("stopped", True)])
def test_it_wakes_a_parent_that_runs_and_resumes_none_that_stopped(
    home: FakeHome, parent: Agent, child: Agent, doing: Doing, quiet: bool
) -> None:
    state = store.load_state(home.root, parent["key"])
    assert state is not None
    state["doing"], state["since"] = doing, clock.now()
    store.save_state(home.root, parent["key"], state)
    report(home, child, "done")
    (message,) = arrived(home, parent)
    assert message.get("quiet") is quiet


def test_words_over_the_limit_lie_whole_in_a_private_file_that_the_report_names(
    home: FakeHome, parent: Agent, child: Agent
) -> None:
    said = "é" * 4001
    report(home, child, said)
    (message,) = arrived(home, parent)
    path = Path(message["body"].rpartition(" ")[2])
    assert path.read_text() == said
    assert path.stat().st_mode & 0o777 == 0o600
    assert "8002 bytes" in message["body"]
    report(home, child, "x" * 8000)
    assert arrived(home, parent)[1]["body"] == "x" * 8000


def test_the_policy_and_an_ended_mission_keep_it_back(home: FakeHome, parent: Agent, child: Agent) -> None:
    home.policy('[[rule]]\nfrom = "kid"\nto = "lead"\nverdict = "deny"\n')
    report(home, child, "done")
    assert arrived(home, parent) == []
    assert reporting.waiting(home.root, child["key"]) == []


def test_a_damaged_one_stops_no_other(home: FakeHome, parent: Agent, child: Agent) -> None:
    reporting.leave(home.root, child["key"], {"last_assistant_message": "x"})
    (path,) = reporting.waiting(home.root, child["key"])
    Path(path).write_bytes(b"{")
    report(home, child, "whole")
    assert [message["body"] for message in arrived(home, parent)] == ["whole"]
