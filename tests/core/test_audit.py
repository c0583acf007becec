"""The audit log: what each step of a message leaves there, which way it went, and that it never gets into the way."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import sending
from turnpost.core import attach, audit, files, home, outbox, registry, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = FakeHome(tmp_path)
    monkeypatch.setattr("turnpost.actions.courier.ensure", lambda _root: ())
    yield made
    made.close()


def lines(root: str, *fields: str, action: str | None = None) -> list[Any]:
    found = [json.loads(line) for line in Path(home.log(root)).read_text().splitlines()]
    found = [line for line in found if action is None or line["action"] == action]
    return [tuple(line.get(field) for field in fields) for line in found] if fields else found


def test_a_message_leaves_a_line_for_each_step_with_who_and_which_way(spool: FakeHome) -> None:
    alpha = spool.agent("alpha")
    sent = sending.send(spool.root, ["alpha"], "the body", kind="question", speaker=PERSON)
    blocks = spool.claim(alpha)
    spool.enters(alpha, blocks)
    with spool.box(alpha).lock():
        spool.box(alpha).settle(store.load_state(spool.root, alpha["key"]))
    shown = lines(spool.root, "action", "from", "to", "direction", "message", "kind")
    way = ("person", "alpha", "person → agent", sent.id, "question")
    assert shown == [("send", *way), ("claim", *way), ("read", *way)]
    assert lines(spool.root, "boundary", action="claim") == [("rewake",)]
    assert "the body" not in Path(home.log(spool.root)).read_text()


def test_a_step_is_told_once_whoever_finds_it_out(spool: FakeHome) -> None:
    alpha = spool.agent("alpha")
    sending.send(spool.root, ["alpha"], "x", speaker=PERSON)
    spool.enters(alpha, spool.claim(alpha))
    for _ in range(3):
        with spool.box(alpha).lock():
            spool.box(alpha).settle(store.load_state(spool.root, alpha["key"]))
    assert len(lines(spool.root, action="read")) == 1


def test_what_comes_back_is_cancelled_or_given_up_is_told_with_its_reason(spool: FakeHome) -> None:
    alpha = spool.agent("alpha")
    ids = [sending.send(spool.root, ["alpha"], body, speaker=PERSON).id for body in "abc"]
    box = spool.box(alpha)
    with box.lock():
        assert box.end(ids[0], "cancelled", "its sender took it back")
        assert box.end(ids[1], "undeliverable", "no such luck")
    spool.claim(alpha)
    spool.kill(alpha)
    with box.lock():
        box.settle(store.load_state(spool.root, alpha["key"]))
    assert lines(spool.root, "message", "reason", action="cancel") == [(ids[0], "its sender took it back")]
    assert lines(spool.root, "message", "reason", action="undeliverable") == [(ids[1], "no such luck")]
    assert lines(spool.root, "message", action="requeue") == [(ids[2],)]


def test_the_direction_follows_the_line_of_work(spool: FakeHome) -> None:
    mother = spool.agent("mother")
    child = spool.agent("child", parent=mother)
    other = spool.agent("other")

    def way(sender: Any, key: str) -> str:
        return audit.direction(spool.root, registry.party(sender), key)

    assert way(PERSON.agent, child["key"]) == "person → agent"
    assert way(mother, child["key"]) == "parent → agent"
    assert way(child, mother["key"]) == "agent → parent"
    assert way(child, registry.PERSON) == "agent → person"
    assert way(child, other["key"]) == "agent → agent"
    assert way(mother, f"{mother['key']}~a1") == "parent → subagent"
    sub = {**registry.party(mother), "key": f"{mother['key']}~a1"}
    assert audit.direction(spool.root, sub, mother["key"]) == "subagent → parent"  # type: ignore[arg-type]
    system: Any = {"kind": "system", "name": "system", "key": "system"}
    assert audit.direction(spool.root, system, registry.PERSON) == "turnpost → person"


def test_a_session_that_takes_over_is_told(spool: FakeHome) -> None:
    alpha = spool.agent("alpha")
    state = store.load_state(spool.root, alpha["key"])
    assert state is not None
    attach.attach(spool.root, attach.Start("0f8fad5b-d9cb-469f-a165-70867728950e", "clear", state["pid"]))
    assert lines(spool.root, "agent", "session", "source", action="relink") == [
        (alpha["key"], "0f8fad5b-d9cb-469f-a165-70867728950e", "clear")
    ]


def test_a_send_that_is_finished_later_is_told(spool: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = spool.agent("alpha")
    message = outbox.compose(registry.party(PERSON.agent), [registry.party(alpha)], "x")
    files.write(f"{home.outbox(spool.root)}/{message['id']}.json", store.pack(message))
    assert outbox.recover(spool.root, 0.0) == [message["id"]]
    assert lines(spool.root, "message", "to", action="send-recovered") == [(message["id"], "alpha")]


@pytest.mark.parametrize("obstacle", ["folder", "link", "fifo", "no permission", "no home"])
def test_a_log_that_cannot_be_written_stops_nothing(spool: FakeHome, obstacle: str, tmp_path: Path) -> None:
    alpha = spool.agent("alpha")
    path = Path(home.log(spool.root))
    path.unlink(missing_ok=True)
    target = tmp_path / "elsewhere"
    if obstacle == "folder":
        path.mkdir()
    elif obstacle == "link":
        path.symlink_to(target)
    elif obstacle == "fifo":
        os.mkfifo(path)
    elif obstacle == "no permission":
        path.touch(0o000)
    if obstacle == "no home":
        audit.write(str(tmp_path / "nowhere"), "send")
        assert not (tmp_path / "nowhere").exists()
    sending.send(spool.root, ["alpha"], "x", speaker=PERSON)
    assert len(spool.claim(alpha)) == 1
    assert not target.exists()


def test_what_json_does_not_know_costs_the_line_only(spool: FakeHome) -> None:
    registry.prepare(spool.root)
    audit.write(spool.root, "trouble", about=object())
    audit.write(spool.root, "trouble", about="\udc80")
    assert lines(spool.root, "about") == [("\udc80",)]


def test_a_message_that_is_gone_leaves_its_agent_in_the_line(spool: FakeHome) -> None:
    registry.prepare(spool.root)
    audit.moved(spool.root, "requeue", None, "ag-x", boundary="prompt")
    assert lines(spool.root, "agent", "boundary", "message") == [("ag-x", "prompt", None)]


def test_writers_that_find_the_log_full_together_move_it_once(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    limit = 2_000
    count, writers = 150, 8
    barrier = threading.Barrier(writers)

    def write(number: int) -> None:
        barrier.wait()
        for n in range(count):
            files.append(path, f"{number} {n}\n".encode(), limit)
            if n % 10 == 0:
                sizes.append(sum(one.stat().st_size for one in tmp_path.iterdir()))

    sizes: list[int] = []
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Two files at most, of which the moved one was full: no move put a new log in the place of an old one.
    assert sorted(one.name for one in tmp_path.iterdir()) == ["log", "log.1"]
    assert (tmp_path / "log.1").stat().st_size > limit
    assert max(sizes) < 2 * limit + 1_000
    for line in (tmp_path / "log").read_bytes().splitlines():
        assert len(line.split()) == 2


def test_each_step_of_a_receipt_has_a_name_in_the_log() -> None:
    assert set(audit.STEPS.values()) <= set(audit.ACTIONS)
    assert len(set(audit.ACTIONS)) == len(audit.ACTIONS)


def test_a_speaker_with_a_parent_writes_up(spool: FakeHome) -> None:
    mother = spool.agent("mother")
    child = spool.agent("child", parent=mother)
    sending.send(spool.root, ["parent"], "x", speaker=Speaker(child))
    assert lines(spool.root, "from", "to", "direction", action="send") == [
        ("child", "mother", "agent → parent")
    ]
    assert Mailbox(spool.root, mother["key"]).waiting()
