"""When and in which order the proof of a read is looked for: an answer that stands only in what is about to be left must not be lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import clock, deliver, files, fork, mailbox, procs, registry, store, waiter
from turnpost.core.errors import LockBusy
from turnpost.core.records import TYPE_CHECKING
from turnpost.core.render import mark

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Waiter

FIRST, SECOND = "0b5c0d1e-0000-4000-8000-000000000000", "1b5c0d1e-0000-4000-8000-000000000000"


def claimed(root: str, agent: Agent, transcript: Path, session_id: str = FIRST) -> str:
    """A message that has been handed over to an agent's session."""
    sent = spool.send(root, "hello", agent)
    box = mailbox.Mailbox(root, agent["key"])
    with box.lock():
        claim = mailbox.make_claim(os.getpid(), str(transcript))
        assert box.claim("prompt", 9000, claim, recipient="alpha", session_id=session_id)
    return sent


def answer(transcript: Path, message_id: str) -> None:
    """The message stands in a conversation, and the model has answered."""
    text = mark(message_id).replace('"', '\\"')
    with transcript.open("a") as file:
        file.write(f'{{"type":"user","uuid":"u1","message":{{"content":"{text}"}}}}\n')
        file.write('{"type":"assistant","uuid":"u2","parentUuid":"u1","message":{"model":"m"}}\n')


def progress(root: str, agent: Agent, message_id: str) -> str:
    found = mailbox.Mailbox(root, agent["key"]).receipt(message_id)
    assert found is not None
    return found["state"]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    made = tmp_path / "first.jsonl"
    made.touch()
    return made


@pytest.fixture
def forked(root: str, pair: tuple[Agent, Agent], transcript: Path, tmp_path: Path) -> tuple[Agent, Agent]:
    """An agent whose session is gone, and the provisional agent of a copy of it."""
    spool.state(root, pair[0]["key"], FIRST, str(transcript), pid=2**22 + 1)
    spool.state(root, pair[1]["key"], SECOND, str(tmp_path / "second.jsonl"))
    return pair


def armed(harness_pid: int) -> Waiter:
    """The record of a waiter that this process is, for a session that runs there."""
    return {
        "v": 1, "id": f"{os.getpid()}-{int(clock.monotonic() * 1000)}", "pid": os.getpid(), "token": None,
        "session_id": FIRST, "harness_pid": harness_pid, "since": clock.now(),
    }  # fmt: skip


def test_what_a_session_wrote_just_before_it_died_is_still_seen(
    root: str, pair: tuple[Agent, Agent], transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = spool.state(root, pair[0]["key"], FIRST, str(transcript))
    sent = claimed(root, pair[0], transcript)

    def dies(_pid: int | None, _token: str | None) -> bool:
        answer(transcript, sent)
        return False

    box = mailbox.Mailbox(root, pair[0]["key"])
    with box.lock():
        monkeypatch.setattr(procs, "alive", dies)
        box.settle(state)
    assert progress(root, pair[0], sent) == "read"


def test_an_answer_in_a_transcript_that_a_hook_leaves_is_seen_first(
    root: str, pair: tuple[Agent, Agent], transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))
    spool.state(root, pair[0]["key"], FIRST, str(transcript), traced=True, doing="working")
    registry.link(root, pair[0], FIRST, os.getpid())
    sent = claimed(root, pair[0], transcript)
    answer(transcript, sent)
    payload = {"session_id": FIRST, "transcript_path": str(tmp_path / "elsewhere.jsonl"), "prompt": "go on"}
    deliver.at_prompt(root, pair[0]["key"], payload)
    transcript.unlink()
    box = mailbox.Mailbox(root, pair[0]["key"])
    with box.lock():
        box.settle(store.load_state(root, pair[0]["key"]))
    assert progress(root, pair[0], sent) == "read"


def test_a_fork_that_takes_over_leaves_no_answer_of_the_session_before_unseen(
    root: str, forked: tuple[Agent, Agent], transcript: Path
) -> None:
    owner, copy = forked
    sent = claimed(root, owner, transcript)
    answer(transcript, sent)
    assert fork.adopt(root, owner["key"], copy["key"])
    transcript.unlink()
    assert progress(root, owner, sent) == "read"
    state = store.load_state(root, owner["key"])
    assert state is not None
    assert state["session_id"] == SECOND


def test_a_fork_with_mail_of_its_own_takes_nobodys_place(root: str, forked: tuple[Agent, Agent]) -> None:
    owner, copy = forked
    spool.send(root, "to the copy", copy)
    assert not fork.adopt(root, owner["key"], copy["key"])
    assert spool.bodies(root, copy) == ["to the copy"]
    assert registry.find(root, "beta")["key"] == copy["key"]


def test_a_waiter_whose_session_goes_on_in_another_process_takes_nothing(
    root: str, pair: tuple[Agent, Agent], transcript: Path
) -> None:
    box = mailbox.Mailbox(root, pair[0]["key"])
    spool.state(root, box.key, FIRST, str(transcript))
    mine = armed(os.getppid())
    sent = spool.send(root, "hello", pair[0])
    assert waiter._try(box, mine, "Stop", str(transcript)) == ""
    assert progress(root, pair[0], sent) == "queued"
    assert sent in waiter._try(box, {**mine, "harness_pid": os.getpid()}, "Stop", str(transcript))


def test_what_has_no_room_in_context_is_claimed_by_nobody_beside_another(
    root: str, pair: tuple[Agent, Agent], transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))
    spool.state(root, pair[0]["key"], FIRST, str(transcript))
    registry.link(root, pair[0], FIRST, os.getpid())
    sent = spool.send(root, "hello", pair[0])
    payload = {"session_id": FIRST, "transcript_path": str(transcript)}
    with mailbox.Mailbox(root, pair[0]["key"]).lock(), pytest.raises(LockBusy):
        deliver._take_whole(root, pair[0]["key"], payload)
    (block,) = deliver._take_whole(root, pair[0]["key"], payload)
    assert mark(sent) in block


def test_what_is_put_back_between_two_looks_of_the_waiter_is_seen(
    root: str, pair: tuple[Agent, Agent], transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody rings for it: unseen, it would wait for the next round."""
    box = mailbox.Mailbox(root, pair[0]["key"])
    spool.state(root, box.key, FIRST, str(transcript))
    registry.link(root, pair[0], FIRST, os.getpid())
    sent = claimed(root, pair[0], transcript)
    mine = armed(os.getpid())
    files.write(box.folder + "/waiter.json", store.pack(mine), durable=False)
    looks: list[str] = []

    def names(path: str) -> list[str]:
        found = real(path)
        if path in (box.queue, box.claimed) and not looks:
            for name in real(box.claimed):
                files.move(f"{box.claimed}/{name}", f"{box.queue}/{name}")
        looks.append(path)
        return found

    real = files.names
    monkeypatch.setattr(files, "names", names)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        begun = clock.monotonic()
        assert sent in waiter._listen(root, box.key, mine, reading, {"hook_event_name": "Stop"})
        assert clock.monotonic() - begun < waiter.FLYING
    finally:
        os.close(reading)
        os.close(writing)
