"""The index of threads: what it finds, that it outlives kills, and that it can be made anew."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import files, home, mailbox, outbox, registry, threads
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Message, Mission

PERSON = registry.party(registry.unsaved_person())


def send(root: str, sender: Agent, *to: Agent, **more: object) -> Message:
    made = outbox.compose(registry.party(sender), [registry.party(one) for one in to], "x", **more)  # type: ignore[arg-type]
    outbox.send(root, made, to)
    return made


def ids_in(root: str, message: Message) -> list[str]:
    return threads.messages(root, threads.digest(threads.identity(message)))


def test_both_directions_of_a_pair_are_one_thread_in_order(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta = spool.agent(root, "alpha"), spool.agent(root, "beta")
    sent = [send(root, alpha, beta), send(root, beta, alpha)]
    other = send(root, alpha, beta, thread="plans")
    assert ids_in(root, sent[0]) == sorted(message["id"] for message in sent)
    assert ids_in(root, other) == [other["id"]]


def test_a_rename_splits_no_thread(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta = spool.agent(root, "alpha"), spool.agent(root, "beta")
    before = send(root, alpha, beta)
    after = send(root, registry.rename(root, alpha, "gamma"), beta)
    assert threads.identity(before) == threads.identity(after)
    assert after["thread"] == "beta+gamma"


def test_another_agent_under_an_old_name_does_not_get_the_old_thread(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta = spool.agent(root, "alpha"), spool.agent(root, "beta")
    before = send(root, alpha, beta)
    registry.rename(root, alpha, "gamma")
    after = send(root, spool.agent(root, "alpha"), beta)
    assert before["thread"] == after["thread"]
    assert threads.identity(before) != threads.identity(after)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "." * 300, "PLANS", "日本", "-x"])
def test_a_threads_name_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    root = spool.make(tmp_path)
    sent = send(root, spool.agent(root, "alpha"), spool.agent(root, "beta"), thread=name)
    assert ids_in(root, sent) == [sent["id"]]
    assert all(len(folder) == 24 and folder.isalnum() for folder in os.listdir(home.threads(root)))


def test_a_send_killed_before_it_is_indexed_is_indexed_by_the_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = spool.make(tmp_path)
    alpha, person = spool.agent(root, "alpha"), registry.person(root)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "index", killed)
    with pytest.raises(KeyboardInterrupt):
        send(root, alpha, person, kind="question")
    monkeypatch.undo()
    assert threads.open_questions(root) == []
    (message_id,) = outbox.recover(root, 0.0)
    assert [question["id"] for question in threads.open_questions(root)] == [message_id]


def test_an_index_that_is_gone_or_has_gaps_is_made_anew(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta, person = spool.agent(root, "alpha"), spool.agent(root, "beta"), registry.person(root)
    for sender, to in ((alpha, beta), (beta, alpha), (alpha, person)):
        send(root, sender, to, kind="question")
    before = {path for path in spool.tree(root) if path.startswith("/threads")}
    assert threads.refresh(root) == 0
    message = send(root, person, alpha)
    before |= {path for path in spool.tree(root) if path.startswith("/threads")}
    os.unlink(f"{home.thread(root, threads.digest(threads.identity(message)))}/{message['id']}")
    assert threads.refresh(root) == 1
    shutil.rmtree(home.threads(root))
    assert threads.refresh(root) == 4
    assert {path for path in spool.tree(root) if path.startswith("/threads")} == before


def test_a_question_is_open_until_the_person_answers_whatever_the_index_says(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta, person = spool.agent(root, "alpha"), spool.agent(root, "beta"), registry.person(root)
    asked = send(root, alpha, person, beta, kind="question")
    send(root, beta, alpha, kind="answer", reply_to=asked["id"])
    send(root, person, alpha, kind="question", reply_to=asked["id"])
    assert [question["id"] for question in threads.open_questions(root)] == [asked["id"]]
    send(root, person, alpha, kind="answer", reply_to=asked["id"])
    assert threads.open_questions(root) == []
    assert not files.exists(f"{home.asked(root)}/{asked['id']}")
    threads.index(root, asked)  # as a recovery that was late does
    assert threads.open_questions(root) == []
    assert len(threads.replies(root, asked["id"])) == 3
    assert len(threads.answers(root, asked["id"])) == 2


def test_a_send_that_fails_after_it_was_indexed_leaves_no_note_and_closes_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = spool.make(tmp_path)
    alpha, person = spool.agent(root, "alpha"), registry.person(root)
    asked = send(root, alpha, person, kind="question")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    def notes() -> set[str]:
        return {
            path
            for path in spool.tree(root)
            if "/threads/" in path or "/replies/" in path or "/asked/" in path
        }

    before = notes()
    monkeypatch.setattr(files.Linked, "move", full)
    for sender, to, kind in ((person, alpha, "answer"), (alpha, person, "question")):
        with pytest.raises(OSError, match="full"):
            send(root, sender, to, kind=kind, reply_to=asked["id"])
    monkeypatch.undo()
    assert notes() == before
    assert [question["id"] for question in threads.open_questions(root)] == [asked["id"]]


def test_a_question_that_was_taken_back_is_not_open(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, person = spool.agent(root, "alpha"), registry.person(root)
    asked = send(root, alpha, person, kind="question")
    box = mailbox.Mailbox(root, person["key"])
    with box.lock():
        assert box.end(asked["id"], "cancelled")
    assert threads.open_questions(root) == []


def test_a_mission_is_a_messages_only_when_all_concerned_are_in_it(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta, person = spool.agent(root, "alpha"), spool.agent(root, "beta"), registry.unsaved_person()
    leader = spool.agent(root, "leader")
    made: Mission = {
        "v": 1, "name": "rewrite", "state": "running", "coordinator": leader["key"], "goal": None, "started": 0.0,
        "ended": None, "reason": None,
    }  # fmt: skip
    missions = {"rewrite": made}
    assert threads.mission_of([alpha, beta], {}) is None
    alpha["mission"] = "rewrite"
    assert threads.mission_of([alpha, beta], missions) is None
    assert threads.mission_of([alpha, leader], missions) == "rewrite"
    assert threads.mission_of([leader, person], missions) is None
    assert threads.mission_of([person, alpha], {}) == "rewrite"
    beta["mission"] = "rewrite"
    assert threads.mission_of([alpha, beta], missions) == "rewrite"
    beta["mission"] = "other"
    assert threads.mission_of([alpha, beta, person], missions) is None
