"""A spool with three agents, as the state machine sees it: once inside the test's process, once by hooks as they are installed."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.core import spool
from tests.hooks.driver import Ran
from tests.hooks.inside import InsideSession, ReadingSession
from turnpost.core import clock, files, outbox, procs, registry, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Message

NAMES = ("alpha", "beta", "gamma")
LIMIT = 6
DYING = str(Path(__file__).parents[1] / "crash" / "dying.py")


class Crashed(BaseException):
    """The process ends here."""


def memory() -> str | None:
    """A folder in memory, where the platform has one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class HookSession(ReadingSession):
    """A session whose hooks are processes. `crash` is the point at which the next one is killed, 0 for none."""

    crash: int = 0
    words: Sequence[str] = field(default_factory=list)

    def run(self, event: str, *, stdin: bytes | None = None, waiter: bool = True, **payload: Any) -> Ran:
        with self.dying():
            ran = super().run(event, stdin=stdin, waiter=False, **payload)
        if ran.code != 0:
            raise Crashed
        return ran

    def take(self) -> str:
        """What a waiter takes; empty when it sleeps."""
        with self.dying():
            waiter = self.arm()
        try:
            _, err = waiter.communicate(timeout=2.0)
        except subprocess.TimeoutExpired:
            waiter.kill()
            waiter.communicate()
            return ""
        finally:
            self.waiters.remove(waiter)
        if waiter.returncode == 2:
            return err.decode()
        if waiter.returncode != 0:
            raise Crashed
        return ""

    @contextmanager
    def dying(self) -> Iterator[None]:
        self.prefix = (sys.executable, DYING, str(self.crash)) if self.crash else ()
        self.crash = 0
        try:
            yield
        finally:
            self.prefix = ()

    def _begin(self) -> None:
        sleep = ["/bin/sh", "-c", "read nothing", "claude", *self.words]
        self._process = subprocess.Popen(sleep, stdin=subprocess.PIPE)
        self.pid = self._process.pid
        while procs.command(self.pid) != sleep:  # not that program yet
            time.sleep(0.001)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Contract:
    """What can be done to a home and seen of it. The commands run here in both kinds; the hooks are what differs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.patch = pytest.MonkeyPatch()
        self.root = spool.make(folder)
        self.crash_at = 0
        self.operations = 0
        for name, value in list(vars(files).items()):
            if inspect.isfunction(value) and not name.startswith("_"):
                self.patch.setattr(files, name, self._crashing(value))
        self.patch.setattr(os, "fsync", lambda fd: None)
        self.talks = {name: self._session(name) for name in NAMES}
        for name, talk in self.talks.items():
            talk.run("SessionStart", source="startup", session_title=name)
        self.keys = {name: registry.find(self.root, name)["key"] for name in NAMES}
        parent = spool.agent(self.root, "mother")
        for name in NAMES:
            agent = registry.find(self.root, name)
            agent["parent"] = parent["key"]
            registry.save_agent(self.root, agent)

    def close(self) -> None:
        for talk in self.talks.values():
            talk.kill()
        self.patch.undo()

    def box(self, name: str) -> Mailbox:
        return Mailbox(self.root, self.keys[name])

    def state(self, name: str, message_id: str) -> str:
        """How far a message has come. It must be known."""
        found = self.box(name).receipt(message_id)
        assert found is not None, f"{message_id} is lost"
        return found["state"]

    def waiting(self, name: str) -> list[str]:
        return [
            receipt["id"] for receipt in self.box(name).waiting_receipts() if receipt["state"] == "queued"
        ]

    def message(self, by: str, to: Sequence[str], *, urgent: bool) -> Message:
        sender = registry.unsaved_person() if by == "person" else registry.find(self.root, by)
        parties = [registry.party(registry.find(self.root, name)) for name in to]
        return outbox.compose(registry.party(sender), parties, "hello", urgent=urgent)

    def send(self, message: Message, to: Sequence[str], crash: int) -> None:
        agents = [registry.find(self.root, name) for name in to]
        with self.crashing(crash):
            outbox.send(self.root, message, agents, limit=LIMIT)

    def recover(self) -> None:
        outbox.recover(self.root, older_than=-1e9)

    def settle(self, name: str, crash: int) -> None:
        box = self.box(name)
        try:
            with self.crashing(crash), box.lock():
                box.settle(store.load_state(self.root, box.key))
        except Crashed:
            pass

    def cancel(self, name: str, message_id: str, crash: int) -> None:
        box = self.box(name)
        try:
            with self.crashing(crash), box.lock():
                box.end(message_id, "cancelled")
        except Crashed:
            pass

    def boundary(self, name: str, what: str, *, enters: bool, answers: bool, crash: int) -> None:
        """One hook, or a waiter's look. Where it crashes, or its text does not enter, nothing comes of it."""
        talk = self.talks[name]
        self.no_end_of_attempts(name)
        event = {"prompt": "UserPromptSubmit", "tool_batch": "PostToolBatch", "stop": "Stop"}.get(what)
        try:
            with self.hook_crashing(talk, crash):
                brought = talk.take() if event is None else talk.run(event)
        except Crashed:
            return
        if not enters:
            return
        talk.answers = answers
        if isinstance(brought, Ran):
            talk.result = brought
            getattr(talk, what)()
        elif brought:
            with mock.patch.object(talk, "_woken", return_value=brought):
                talk.wake()
        talk.answers = True

    def turn(self, name: str) -> None:
        self.no_end_of_attempts(name)
        self.talks[name].turn()

    def begin(self, name: str, source: str, *, session_id: str | None = None, crash: int = 0) -> None:
        """A session begins. A hook of it that is killed leaves it deaf, until it is begun once more."""
        talk = self.talks[name]
        if source != "clear":
            self._new_process(talk)
        if session_id is not None:
            talk.become(session_id, copied=source == "fork")
        try:
            with self.hook_crashing(talk, crash):
                talk.run("SessionStart", source=source)
        except Crashed:
            talk.run("SessionStart", source=source)

    def no_end_of_attempts(self, name: str) -> None:
        box = self.box(name)
        for entry in box.waiting():
            receipt = store.load(f"{box.queue}/{entry}")
            if receipt is not None and receipt.get("attempts", 0) > 1:
                files.write(f"{box.queue}/{entry}", store.pack({**receipt, "attempts": 1}))

    @contextmanager
    def crashing(self, number: int) -> Iterator[None]:
        """While inside, the process is gone from the `number`th operation on; 0 for never."""
        self.crash_at, self.operations = number, 0
        try:
            yield
        finally:
            self.crash_at = 0

    def _crashing(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            if self.crash_at:
                self.operations += 1
                if self.operations >= self.crash_at:
                    raise Crashed
            return real(*args, **named)

        return call

    # What differs.

    def _session(self, name: str) -> Any:
        raise NotImplementedError

    def _new_process(self, talk: Any) -> None:
        raise NotImplementedError

    def hook_crashing(self, talk: Any, crash: int) -> Any:
        raise NotImplementedError

    def lives(self, name: str) -> bool:
        raise NotImplementedError

    def die(self, name: str) -> None:
        raise NotImplementedError

    def later(self, seconds: float) -> None:
        raise NotImplementedError


class Spool(Contract):
    """All in this process: the clock and the sessions' processes are pretended."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.alive: dict[int, list[str]] = {}
        self.pids = 10_000_000
        patch = pytest.MonkeyPatch()
        patch.setattr(clock, "now", lambda: self.now)
        patch.setattr(procs, "token", lambda pid: f"start-{pid}" if pid in self.alive else None)
        patch.setattr(procs, "command", lambda pid: self.alive.get(pid, []))
        self.pretended = patch
        try:
            super().__init__(folder)
        except BaseException:
            patch.undo()
            raise

    def close(self) -> None:
        super().close()
        self.pretended.undo()

    def _session(self, name: str) -> InsideSession:
        return InsideSession(self.root, self.folder / name, str(uuid.uuid4()), pid=self._pid())

    def _new_process(self, talk: InsideSession) -> None:
        talk.pid = self._pid("--resume", talk.session_id)

    def _pid(self, *words: str) -> int:
        self.pids += 1
        self.alive[self.pids] = ["claude", *words]
        return self.pids

    def hook_crashing(self, talk: InsideSession, crash: int) -> Any:
        return self.crashing(crash)

    def lives(self, name: str) -> bool:
        return self.talks[name].pid in self.alive

    def die(self, name: str) -> None:
        self.alive.pop(self.talks[name].pid, None)

    def later(self, seconds: float) -> None:
        self.now += seconds


class Hooks(Contract):
    """Each hook a process, each session another; time passes by making what is on disk older."""

    def _session(self, name: str) -> HookSession:
        return HookSession(self.root, self.folder / name)

    def _new_process(self, talk: HookSession) -> None:
        talk.kill()
        talk.words = ["--resume", talk.session_id]
        talk._begin()

    @contextmanager
    def hook_crashing(self, talk: HookSession, crash: int) -> Iterator[None]:
        talk.crash = crash
        yield

    def lives(self, name: str) -> bool:
        return procs.token(self.talks[name].pid) is not None

    def die(self, name: str) -> None:
        self.talks[name].kill()

    def later(self, seconds: float) -> None:
        for name in NAMES:
            box = self.box(name)
            with box.lock(5.0):
                for entry in box.in_flight():
                    receipt = store.load(f"{box.claimed}/{entry}")
                    if receipt is not None and receipt["claim"]:
                        receipt["claim"]["until"] -= seconds
                        receipt["claimed_at"] -= seconds
                        files.write(f"{box.claimed}/{entry}", store.pack(receipt), durable=False)
                state = store.load_state(self.root, box.key)
                if state is not None:
                    state["since"] -= seconds
                    store.save_state(self.root, box.key, state)
