"""Reading the audit log: what is found, what is refused and told, and that a follower misses nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import (
    agents,
    coordinating,
    holding,
    inbox,
    installing,
    journal,
    missions,
    receipts,
    sending,
    stopping,
    waiting,
)
from turnpost.actions.journal import Query
from turnpost.actions.results import Entry
from turnpost.core import audit, clock, registry
from turnpost.core import home as places
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.core.sender import Speaker


def told(home: FakeHome, **query: Any) -> list[tuple[str, str | None, str | None, str | None]]:
    found = journal.entries(home.root, Query(**query)).entries
    return [(one.action, one.from_, one.to, one.direction) for one in found]


def put(home: FakeHome, *actions: str) -> None:
    for action in actions:
        audit.write(home.root, action)


def test_what_the_person_does_to_an_agent_is_told(home: FakeHome) -> None:
    alpha = home.agent("alpha", "stopped")
    holding.hold(home.root, "alpha", speaker=PERSON)
    holding.release(home.root, "alpha", speaker=PERSON)
    stopping.stop(home.root, "alpha", speaker=PERSON)
    sending.send(home.root, ["alpha"], "go on", speaker=PERSON)
    agents.rename(home.root, "alpha", "beta", speaker=PERSON)
    missions.start(home.root, "trip", members=["beta"], speaker=PERSON)
    way = ("person", "alpha", "person → agent")
    assert told(home) == [
        ("hold", *way), ("release", *way), ("hold", *way), ("stop", *way), ("send", *way), ("release", *way),
        ("rename", "person", "beta", "person → agent"), ("mission", "person", None, None),
    ]  # fmt: skip
    assert {one.details.get("agent") for one in journal.entries(home.root).entries} == {None}
    assert told(home, agent="beta") == told(home)[:-1]
    assert alpha["name"] == "alpha"


def test_a_parent_and_its_child_are_told_by_direction(home: FakeHome) -> None:
    mother = home.agent("mother")
    child = home.agent("child", "stopped", parent=mother)
    sending.send(home.root, ["child"], "x", speaker=Speaker(mother))
    sending.send(home.root, ["parent"], "y", speaker=Speaker(child))
    holding.hold(home.root, "child", speaker=Speaker(mother))
    assert told(home) == [
        ("send", "mother", "child", "parent → agent"),
        ("send", "child", "mother", "agent → parent"),
        ("hold", "mother", "child", "parent → agent"),
    ]
    assert told(home, agent="mother", action="hold") == told(home)[-1:]


def test_a_refusal_is_told_once_with_its_rule_and_numbers(home: FakeHome) -> None:
    mother = home.agent("mother")
    home.agent("one", parent=mother)
    two = home.agent("two", parent=mother)
    with pytest.raises(Refused):
        sending.send(home.root, ["one"], "x", speaker=Speaker(two))
    (entry,) = journal.entries(home.root, Query(action="refusal")).entries
    assert (entry.from_, entry.to, entry.direction) == ("two", "one", "agent → agent")
    assert entry.details == {
        "tried": "send", "rule": "not-allowed",
        "numbers": {"caller": "two", "recipient": "one", "relation": "sibling"},
    }  # fmt: skip


def test_a_refusal_with_several_recipients_tells_every_direction_there_is(home: FakeHome) -> None:
    mother = home.agent("mother")
    one = home.agent("one", parent=mother)
    home.agent("two", parent=mother)
    for to, who in (
        (["one", "two"], Speaker(mother)),
        (["parent", "two"], Speaker(one)),
        (["one", "two"], PERSON),
    ):
        with pytest.raises(Refused):
            sending.send(home.root, to, " ", speaker=who)
    assert told(home, action="refusal") == [
        ("refusal", "mother", "one, two", "parent → agent"),
        ("refusal", "one", "parent, two", "agent → parent, agent → agent"),
        ("refusal", "person", "one, two", "person → agent"),
    ]


def test_every_kind_of_action_tells_its_refusals(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    sent = sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    calls: list[tuple[str, Any]] = [
        ("send", lambda: sending.send(home.root, ["alpha"], " ", speaker=PERSON)),
        ("cancel", lambda: receipts.cancel(home.root, sent.id, speaker=Speaker(beta))),
        ("hold", lambda: holding.hold(home.root, "alpha", speaker=Speaker(beta))),
        ("release", lambda: holding.release(home.root, "alpha", speaker=Speaker(beta))),
        ("stop", lambda: stopping.stop(home.root, "alpha", speaker=Speaker(beta))),
        ("wake", lambda: holding.wake(home.root, "alpha", speaker=Speaker(beta))),
        ("rename", lambda: agents.rename(home.root, "alpha", "x", speaker=Speaker(beta))),
        ("wait", lambda: waiting.wait(home.root, "alpha", timeout=0, speaker=Speaker(beta))),
        ("mission start", lambda: missions.start(home.root, "t", members=["alpha"], speaker=Speaker(beta))),
        ("inbox", lambda: inbox.waiting(home.root, speaker=Speaker(beta))),
        ("install", lambda: installing.install(home.root, speaker=Speaker(beta))),
        ("uninstall", lambda: installing.uninstall(home.root, speaker=Speaker(beta))),
        ("coordinator stop", lambda: coordinating.stop(home.root, speaker=Speaker(beta))),
        ("send", lambda: sending.send(home.root, ["alpha"], "x", speaker=FOREIGN)),
    ]  # fmt: skip
    for _, call in calls:
        with pytest.raises(Refused):
            call()
    found = journal.entries(home.root, Query(action="refusal")).entries
    assert [one.details["tried"] for one in found] == [what for what, _ in calls]
    assert [one.from_ for one in found] == ["person", *["beta"] * 12, "foreign 4711"]
    assert alpha["key"] not in "".join(one.from_ or "" for one in found)


def test_what_one_action_refuses_inside_another_is_told_once(home: FakeHome) -> None:
    home.agent("alpha", "stopped")
    with pytest.raises(Refused):
        holding.wake(home.root, "alpha", " ", speaker=PERSON)
    assert len(told(home, action="refusal")) == 1


def test_a_refusal_in_a_home_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        sending.send(str(tmp_path / "none"), ["person"], "x", speaker=PERSON)
    assert not (tmp_path / "none").exists()


def test_a_text_that_was_refused_is_not_told(home: FakeHome) -> None:
    home.agent("alpha")
    with pytest.raises(Refused):
        sending.send(home.root, ["alpha"], "very private " * 1_000, speaker=PERSON)
    assert "very private" not in Path(places.log(home.root)).read_text()


# Looking


def test_the_newest_are_shown_and_the_others_counted(home: FakeHome) -> None:
    registry.prepare(home.root)
    put(home, *["deaf"] * 7, "read")
    found = journal.entries(home.root, Query(action="deaf"), newest=3)
    assert (len(found.entries), found.older) == (3, 4)


def test_a_time_leaves_out_what_is_older(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.prepare(home.root)
    now = clock.now()
    for ago in (7_200, 60, 0):
        monkeypatch.setattr(clock, "now", lambda ago=ago: now - ago)
        put(home, "deaf")
    assert len(told(home, since="1h")) == 2
    assert len(told(home, since=clock.rfc3339(now - 1))) == 1
    with pytest.raises(UsageError, match="no time"):
        told(home, since="soon")


def test_an_unknown_name_or_action_is_refused_with_the_known_ones(home: FakeHome) -> None:
    home.agent("alpha")
    put(home, "deaf")
    with pytest.raises(NotFound, match="alpha"):
        told(home, agent="alhpa")
    with pytest.raises(UsageError, match="refusal"):
        told(home, action="denial")


def test_an_agent_that_is_gone_is_still_found_by_its_name(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    Path(places.name(home.root, "alpha")).unlink()
    assert told(home, agent="alpha") == [("send", "person", "alpha", "person → agent")]
    assert told(home, agent="person") == told(home)
    assert alpha["key"]


def test_a_line_without_names_shows_what_the_agent_is_called_now(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    audit.write(home.root, "deaf", agent=alpha["key"])
    audit.write(home.root, "deaf", agent="ag-gone")
    assert [one.to for one in journal.entries(home.root).entries] == ["alpha", "ag-gone"]


def test_torn_and_foreign_lines_are_left_out(home: FakeHome) -> None:
    registry.prepare(home.root)
    put(home, "deaf")
    with Path(places.log(home.root)).open("ab") as file:
        file.write(
            b'{"at": "x"}\n[1]\n\xff\xfe\n' + b"[" * 100_000 + b'\n{"at":1,"action":"read"}\n{"at": "2026'
        )
    assert told(home) == [("deaf", None, None, None)]


def test_no_log_is_an_empty_one(home: FakeHome) -> None:
    assert told(home) == []


def test_the_older_file_comes_first(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.prepare(home.root)
    monkeypatch.setattr(audit, "LIMIT", 60)
    for number in range(2):
        audit.write(home.root, "trouble", about=str(number), error="x" * 60)
    audit.write(home.root, "read")
    found = journal.entries(home.root).entries
    assert [one.details.get("about") for one in found] == ["1", None]


# Following


def following(home: FakeHome, rounds: int, between: Any) -> Iterator[Entry]:
    left = iter(range(rounds))

    def going() -> bool:
        number = next(left, None)
        if number is not None:
            between(number)
        return number is not None

    return journal.follow(home.root, going=going)


def test_a_follower_sees_what_was_and_what_comes(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ROUND", 0.0)
    registry.prepare(home.root)
    put(home, "deaf")
    seen = [one.action for one in following(home, 3, lambda n: put(home, *["read"] * n))]
    assert seen == ["deaf", "read", "read", "read"]


def test_a_follower_waits_for_the_rest_of_a_line(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ROUND", 0.0)
    registry.prepare(home.root)
    path = Path(places.log(home.root))
    parts = [b'{"at": "2026", "act', b'ion": "read"}', b"\n"]

    def add(number: int) -> None:
        with path.open("ab") as file:
            file.write(parts[number])

    assert [one.action for one in following(home, 3, add)] == ["read"]


def test_a_follower_of_a_log_that_is_not_there_yet_sees_its_first_line(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROUND", 0.0)
    registry.prepare(home.root)
    assert [one.action for one in following(home, 2, lambda n: put(home, "read") if n else None)] == ["read"]


def test_a_follower_loses_nothing_when_the_log_is_moved(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROUND", 0.002)
    monkeypatch.setattr(audit, "LIMIT", 20_000)
    registry.prepare(home.root)
    count, writers = 120, 3
    done = threading.Event()

    def write(name: int) -> None:
        for number in range(count):
            audit.write(home.root, "trouble", about=f"{name} {number}", error="x" * 100)
            clock.sleep(0.003)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(writers)]

    def watch() -> None:
        for thread in threads:
            thread.join()
        clock.sleep(0.1)
        done.set()

    for thread in [*threads, threading.Thread(target=watch)]:
        thread.start()
    seen = [str(one.details["about"]) for one in journal.follow(home.root, going=lambda: not done.is_set())]
    assert Path(places.log(home.root) + ".1").exists()
    assert len(seen) == len(set(seen)) == count * writers
    for name in range(writers):
        mine = [word for word in seen if word.startswith(f"{name} ")]
        assert mine == [f"{name} {number}" for number in range(count)]


def test_entries_go_into_json(home: FakeHome) -> None:
    from turnpost.cli import render

    home.agent("alpha")
    sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    document: Any = json.loads(json.dumps(render.data(journal.entries(home.root))))
    assert document["entries"][0]["from"] == "person"
    assert document["entries"][0]["direction"] == "person → agent"
