"""Reads that fail for a moment: too many open files, a disk that answers the next time. Nothing is lost, doubled or set aside."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import files, giving_up, mailbox
from turnpost.core.errors import LockBusy
from turnpost.core.records import TYPE_CHECKING
from turnpost.core.render import mark
from turnpost.service import loop

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

SESSION = "0b5c0d1e-0000-4000-8000-000000000000"


class Failing:
    """The `n`th read fails, once, with this error; how many there were."""

    def __init__(self, n: int, code: int) -> None:
        self.n, self.code, self.count = n, code, 0
        self._open, self._plain = files._open, files.open_plain

    def _next(self, path: str) -> None:
        self.count += 1
        if self.count == self.n:
            raise OSError(self.code, os.strerror(self.code), path)

    def opened(self, path: str) -> tuple[int, int]:
        self._next(path)
        return self._open(path)

    def plain(self, path: str) -> int:
        self._next(path)
        return self._plain(path)


class Spool:
    """An agent with one message that it has read, one that is on its way, and two that wait."""

    def __init__(self, folder: Path) -> None:
        self.root = spool.make(folder)
        self.alpha: Agent = spool.agent(self.root, "alpha")
        self.coordinator = loop.Coordinator(self.root)
        self.transcript = folder / "transcript.jsonl"
        self.transcript.touch()
        self.state: State = spool.state(self.root, self.alpha["key"], SESSION, str(self.transcript))
        self.box = mailbox.Mailbox(self.root, self.alpha["key"])
        self.sent = [spool.send(self.root, "read", self.alpha), spool.send(self.root, "goes in", self.alpha)]
        self.entered = self.claim()
        text = '{"type":"user","uuid":"u1","message":{"content":"%s"}}\n'
        self.transcript.write_text(text % mark(self.sent[0]).replace('"', '\\"'))
        with self.transcript.open("a") as file:
            file.write('{"type":"assistant","uuid":"u2","parentUuid":"u1","message":{"model":"m"}}\n')
        self.sent += [spool.send(self.root, f"waits {n}", self.alpha, urgent=True) for n in range(2)]

    def claim(self) -> list[str]:
        with self.box.lock():
            claim = mailbox.make_claim(os.getpid(), str(self.transcript))
            return self.box.claim("prompt", 9000, claim, recipient="alpha", session_id=SESSION)

    def settle(self) -> None:
        with self.box.lock():
            self.box.settle(self.state)

    def hand_over(self) -> None:
        self.entered += self.claim()

    def give_up(self) -> None:
        giving_up.give_up(self.root, self.alpha["key"], [self.sent[3]], "because")

    def round(self) -> None:
        self.coordinator.round()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("step", [Spool.settle, Spool.hand_over, Spool.give_up, Spool.round])
def test_a_read_that_fails_for_a_moment_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Callable[[Spool], None], code: int
) -> None:
    monkeypatch.setenv("TURNPOST_CLAUDE", "/nonexistent")
    number = 0
    while True:
        number += 1
        there = Spool(tmp_path / str(number))
        failing = Failing(number, code)
        with monkeypatch.context() as patch:
            patch.setattr(files, "_open", failing.opened)
            patch.setattr(files, "open_plain", failing.plain)
            try:
                step(there)
            except OSError as error:
                if error.errno != code:
                    raise
        step(there)
        there.settle()
        there.hand_over()
        waits_or_is_over = {there.sent[3]} if step is Spool.give_up else set()
        for one in there.sent:
            times = sum(mark(one) in block for block in there.entered)
            assert times == (0 if one in waits_or_is_over else 1), (number, one)
        receipts = [there.box.receipt(one) for one in there.sent]
        states = [receipt["state"] for receipt in receipts if receipt]
        assert states[0] == "read", number
        assert not files.exists(there.box.folder + "/damaged"), number
        if failing.count < number:
            break
    assert number > 5


def test_who_wrote_is_told_once_though_their_mailbox_was_locked(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    alpha, beta = spool.agent(root, "alpha"), spool.agent(root, "beta")
    message = spool.message("x", alpha)
    message["sender"] = {"kind": "agent", "name": "beta", "key": beta["key"]}
    spool.put(root, message, alpha)
    box = mailbox.Mailbox(root, beta["key"])
    real = files.Lock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "Lock", lambda path, _timeout=0.5: real(path, 0.05))
        with box.lock(), pytest.raises(LockBusy):
            giving_up.give_up(root, alpha["key"], [message["id"]], "because")
    assert box.waiting() == []
    for _ in range(2):
        giving_up.finish(root, alpha["key"])
        assert len(box.waiting()) == 1


def test_a_message_that_may_not_be_read_for_now_is_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Spool(tmp_path)
    shut = there.sent[2]
    real = files.read

    def read(path: str, limit: int = files.RECORD_LIMIT) -> bytes:
        if shut in path and path.endswith("/message.json"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, limit)

    with monkeypatch.context() as patch:
        patch.setattr(files, "read", read)
        (block,) = there.claim()
    assert mark(there.sent[3]) in block, "the others do not wait for it"
    (block,) = there.claim()
    assert mark(shut) in block
