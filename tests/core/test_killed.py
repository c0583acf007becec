"""kill -9 at every file operation of a send, a claim and a settlement, each operation found by counting, none by hand."""

from __future__ import annotations

import inspect
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import clock, files, home, mailbox, outbox, rules, store
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent

pytestmark = pytest.mark.process

SESSION = "11111111-2222-3333-4444-555555555555"
MOST = 400
"""More operations than anything here takes: a loop that does not end is a bug of the test."""
SYSTEM = ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "utime", "close")


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that was written: an fsync is an operation to die at, and need not be done."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def _killing_itself_at(number: int) -> None:
    """Let this process die by SIGKILL before the `number`th operation: a call of `files`, or a system call in one."""
    count = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        return call

    for name, value in list(vars(files).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(files, name, counted(value))
    for name in SYSTEM:
        setattr(os, name, counted(getattr(os, name)))


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Do something in a process that dies at its `number`th operation; False once it ends before that."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _killing_itself_at(number)
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def every_kill(
    folder: Path,
    prepare: Callable[[str], object],
    act: Callable[[str], object],
    check: Callable[[str], object],
) -> int:
    """Do it anew for each operation there is; how many there were."""
    for number in range(1, MOST):
        root = spool.make(folder / str(number))
        prepare(root)
        died = killed_at(number, lambda root=root: act(root))  # type: ignore[misc]
        check(root)
        if not died:
            return number - 1
    raise AssertionError("it never ended")


def people(root: str) -> tuple[Agent, Agent]:
    """The two agents of a prepared spool."""
    found = [store.load(f"{home.agents(root)}/{key}/agent.json") for key in files.names(home.agents(root))]
    one, two = sorted((agent for agent in found if agent is not None), key=lambda agent: str(agent["name"]))
    return one, two  # type: ignore[return-value]


def prepared(root: str) -> None:
    """Two agents; the first has two messages waiting and an idle session with a transcript."""
    one, two = spool.agent(root, "alpha"), spool.agent(root, "beta")
    transcript = f"{root}/transcript.jsonl"
    Path(transcript).touch()
    spool.state(root, one["key"], SESSION, transcript)
    spool.send(root, "first", one)
    spool.send(root, "second", one, two)


def claim(root: str) -> list[str]:
    """One boundary of the first agent."""
    one, _ = people(root)
    box = mailbox.Mailbox(root, one["key"])
    with box.lock():
        state = store.load_state(root, one["key"])
        assert state is not None
        box.settle(state)
        return box.claim(
            "stop-block", rules.CONTEXT_UNITS, mailbox.make_claim(os.getpid(), state["transcript"]),
            recipient="alpha", session_id=SESSION,
        )  # fmt: skip


def expire(root: str, key: str) -> None:
    """End every lease of an agent."""
    box = mailbox.Mailbox(root, key)
    for name in box.in_flight():
        entry = store.load(f"{box.claimed}/{name}")
        assert entry is not None
        if entry["claim"] is not None:
            entry["claim"]["until"] = 0.0
        files.write(f"{box.claimed}/{name}", store.pack(entry))


def all_read(root: str, shown: list[str]) -> None:
    """Write into the transcript what a harness that showed these blocks writes."""
    path = Path(f"{root}/transcript.jsonl")
    stamp = clock.rfc3339(clock.now())
    entries = [
        {"type": "attachment", "uuid": "u1", "parentUuid": None, "timestamp": stamp,
         "attachment": {"type": "hook_additional_context", "content": ["\n".join(shown)]}},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": stamp, "message": {"content": "ok"}},
    ]  # fmt: skip
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


def test_a_send_killed_anywhere_reaches_all_its_recipients_or_none(tmp_path: Path) -> None:
    outcomes = set()

    def act(root: str) -> None:
        spool.send(root, "third", *people(root))

    def check(root: str) -> None:
        one, two = people(root)
        outbox.recover(root, older_than=0.0)
        outbox.recover(root, older_than=0.0)
        both = (spool.bodies(root, one), spool.bodies(root, two))
        assert both in (
            (["first", "second"], ["second"]),
            (["first", "second", "third"], ["second", "third"]),
        )
        outcomes.add(len(both[1]))
        assert files.names(home.outbox(root)) == []
        spool.send(root, "fourth", one, two)  # no lock is stuck, no temporary file in the way
        assert spool.bodies(root, two)[-1] == "fourth"

    assert every_kill(tmp_path, prepared, act, check) > 30
    assert outcomes == {1, 2}


def test_a_recovery_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    def prepare(root: str) -> None:
        prepared(root)
        sent = spool.message("third", *people(root))
        files.write(f"{home.outbox(root)}/{sent['id']}.json", store.pack(sent))

    def check(root: str) -> None:
        outbox.recover(root, older_than=0.0)
        one, two = people(root)
        assert spool.bodies(root, one) == ["first", "second", "third"]
        assert spool.bodies(root, two) == ["second", "third"]

    assert every_kill(tmp_path, prepare, lambda root: outbox.recover(root, older_than=0.0), check) > 20


def test_a_claim_killed_anywhere_loses_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    def check(root: str) -> None:
        one, _ = people(root)
        assert spool.bodies(root, one) == ["first", "second"]
        expire(root, one["key"])
        shown = claim(root)
        assert [block.splitlines()[2] for block in shown] == ["first", "second"]
        all_read(root, shown)
        assert claim(root) == []
        assert spool.bodies(root, one) == []

    assert every_kill(tmp_path, prepared, claim, check) > 10


def test_a_settlement_killed_anywhere_is_settled_by_the_next_and_nothing_comes_twice(tmp_path: Path) -> None:
    def prepare(root: str) -> None:
        prepared(root)
        all_read(root, claim(root))

    def check(root: str) -> None:
        one, _ = people(root)
        assert claim(root) == []
        expire(root, one["key"])
        assert claim(root) == []
        assert spool.bodies(root, one) == []
        ids = [
            name for day in files.names(root + "/messages") for name in files.names(f"{root}/messages/{day}")
        ]
        assert [spool.receipt(root, one, message_id)["state"] for message_id in ids] == ["read", "read"]

    assert every_kill(tmp_path, prepare, claim, check) > 10


def test_what_a_killed_settlement_found_read_stays_read_when_the_conversation_is_gone(tmp_path: Path) -> None:
    def prepare(root: str) -> None:
        prepared(root)
        all_read(root, claim(root))

    def check(root: str) -> None:
        one, _ = people(root)
        box = mailbox.Mailbox(root, one["key"])
        with box.lock():
            box.settle(store.load_state(root, one["key"]))
        Path(f"{root}/next.jsonl").touch()
        spool.state(root, one["key"], SESSION.replace("1", "9"), f"{root}/next.jsonl", source="clear")
        expire(root, one["key"])
        assert claim(root) == []

    assert every_kill(tmp_path, prepare, claim, check) > 10


def test_a_return_to_the_queue_killed_anywhere_keeps_the_order(tmp_path: Path) -> None:
    def prepare(root: str) -> None:
        prepared(root)
        claim(root)
        expire(root, people(root)[0]["key"])

    def check(root: str) -> None:
        one, _ = people(root)
        spool.send(root, "third", one)
        expire(root, one["key"])
        assert [block.splitlines()[2] for block in claim(root)] == ["first", "second", "third"]

    assert every_kill(tmp_path, prepare, claim, check) > 10


def test_a_cancel_killed_anywhere_has_taken_back_all_or_nothing(tmp_path: Path) -> None:
    def act(root: str) -> None:
        one, _ = people(root)
        box = mailbox.Mailbox(root, one["key"])
        with box.lock():
            box.end(mailbox.entry_id(box.waiting()[0]), "cancelled")

    def check(root: str) -> None:
        bodies = [block.splitlines()[2] for block in claim(root)]
        assert bodies in (["first", "second"], ["second"])

    assert every_kill(tmp_path, prepared, act, check) > 5
