"""The spool as a state machine: whatever happens in whatever order, nothing is lost, nothing comes twice, order is kept."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.core import spool
from turnpost.core import clock, files, mailbox, outbox, procs, rules, store
from turnpost.core.errors import Refused
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent

LIMIT = 6


class Crashed(BaseException):
    """The process ends here."""


class Conversation:
    """What one agent's model has seen: the test's own, simple truth."""

    def __init__(self, folder: Path, agent: Agent) -> None:
        self.folder = folder
        self.agent = agent
        self.number = 0
        self.pid = 0
        self.unanswered: list[str] = []  # entered the present conversation, no answer yet
        self.read: list[str] = []
        self.last: str | None = None

    @property
    def session_id(self) -> str:
        return f"{self.agent['name']}-{self.number:04d}"

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.session_id}.jsonl"

    def write(self, kind: str, now: float, **entry: object) -> None:
        parent, self.last = self.last, os.urandom(8).hex()
        line = {
            "type": kind,
            "uuid": self.last,
            "parentUuid": parent,
            "timestamp": clock.rfc3339(now),
            **entry,
        }
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class SpoolMachine(RuleBasedStateMachine):
    """Senders, recipients, boundaries, crashes, lost texts, deaths and relinks around one spool."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1_800_000_000.0
        self.alive: set[int] = set()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(clock, "now", lambda: self.now)
        self.patch.setattr(procs, "token", lambda pid: f"start-{pid}" if pid in self.alive else None)
        self.patch.setattr(os, "fsync", lambda fd: None)
        self.root = spool.make(self.folder)
        self.talks = [
            Conversation(self.folder, spool.agent(self.root, name)) for name in ("alpha", "beta", "gamma")
        ]
        self.accepted: dict[str, list[str]] = {talk.agent["key"]: [] for talk in self.talks}
        self.crash_at = 0
        self.operations = 0
        for name, value in list(vars(files).items()):
            if inspect.isfunction(value) and not name.startswith("_"):
                self.patch.setattr(files, name, self._crashing(value))
        for talk in self.talks:
            self._begin(talk, "startup")

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            self.patch.undo()
            shutil.rmtree(self.folder)

    # What happens.

    @rule(to=st.sets(st.integers(0, 2), min_size=1), crash=st.integers(0, 40))
    def send(self, to: set[int], crash: int) -> None:
        """Somebody sends to some; the process may end on the way."""
        agents = [self.talks[index].agent for index in to]
        message = spool.message("hello", *agents)
        before = spool.tree(self.root)
        full = any(len(mailbox.Mailbox(self.root, agent["key"]).waiting()) >= LIMIT for agent in agents)
        try:
            with self._crash(crash):
                outbox.send(self.root, message, agents, limit=LIMIT)
        except Refused:
            assert full
            assert spool.tree(self.root) == before
            return
        except Crashed:
            outbox.recover(self.root, older_than=0.0)
        have = {
            agent["key"]: mailbox.Mailbox(self.root, agent["key"]).receipt(message["id"]) is not None
            for agent in agents
        }
        assert len(set(have.values())) == 1, "some have it and some have not"
        if all(have.values()):
            for key in have:
                self.accepted[key].append(message["id"])

    @rule(
        who=st.integers(0, 2),
        enters=st.booleans(),
        answered=st.booleans(),
        crash=st.integers(0, 40),
        room=st.sampled_from([900, 9_000]),
    )
    def boundary(self, who: int, enters: bool, answered: bool, crash: int, room: int) -> None:
        """A hook takes what waits. What it prints enters the conversation, or is dropped by the harness."""
        talk = self.talks[who]
        if talk.pid not in self.alive:
            return
        try:
            with self._crash(crash):
                blocks = self._claim(talk, room)
        except Crashed:
            return
        if enters and blocks:
            self._enter(talk, blocks)
        if answered:
            self._answer(talk)

    @rule(who=st.integers(0, 2), crash=st.integers(0, 30))
    def settle(self, who: int, crash: int) -> None:
        """The coordinator looks at the transcripts."""
        box = mailbox.Mailbox(self.root, self.talks[who].agent["key"])
        try:
            with self._crash(crash), box.lock():
                box.settle(store.load_state(self.root, box.key))
        except Crashed:
            pass

    @rule(who=st.integers(0, 2))
    def answer(self, who: int) -> None:
        """The model answers."""
        if self.talks[who].pid in self.alive:
            self._answer(self.talks[who])

    @rule(seconds=st.sampled_from([1.0, rules.LEASE + 1, 3 * rules.LEASE]))
    def later(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    @rule(who=st.integers(0, 2))
    def die(self, who: int) -> None:
        """kill -9 of a session."""
        self.alive.discard(self.talks[who].pid)

    @rule(who=st.integers(0, 2))
    def resume(self, who: int) -> None:
        """A session that ended goes on, with its conversation."""
        if self.talks[who].pid not in self.alive:
            self._begin(self.talks[who], "resume")

    @rule(who=st.integers(0, 2))
    def copy(self, who: int) -> None:
        """A session is copied under another id, and the old one ends: the copy has the whole conversation."""
        talk = self.talks[who]
        before = talk.transcript.read_bytes()
        self.alive.discard(talk.pid)
        talk.number += 1
        talk.transcript.write_bytes(before)
        self._begin(talk, "fork")

    @rule(who=st.integers(0, 2))
    def clear(self, who: int) -> None:
        """The conversation is cleared away, in the same process; what it did not answer nobody has read."""
        talk = self.talks[who]
        if talk.pid in self.alive:
            talk.number += 1
            talk.unanswered, talk.last = [], None
            talk.transcript.touch()
            self._record(talk, "clear")

    # What must hold.

    @invariant()
    def nothing_is_lost(self) -> None:
        """Each accepted message is known, and is read or still in hand."""
        for talk in self.talks:
            for message_id in self.accepted[talk.agent["key"]]:
                assert spool.receipt(self.root, talk.agent, message_id)["state"] in (
                    "queued",
                    "claimed",
                    "delivered",
                    "read",
                )

    @invariant()
    def nothing_is_read_twice_or_out_of_order(self) -> None:
        """The model's answers went to messages in the order they were accepted in, each once."""
        for talk in self.talks:
            accepted = self.accepted[talk.agent["key"]]
            assert talk.read == accepted[: len(talk.read)]

    @invariant()
    def nothing_unread_is_called_read(self) -> None:
        """A receipt says `read` only when the model has answered."""
        for talk in self.talks:
            for message_id in self.accepted[talk.agent["key"]]:
                if message_id not in talk.read:
                    assert spool.receipt(self.root, talk.agent, message_id)["state"] != "read"

    # How it is done.

    def _drain(self) -> None:
        """Everything works again for a while: all that was accepted is read."""
        outbox.recover(self.root, older_than=0.0)
        for talk in self.talks:
            if talk.pid not in self.alive:
                self._begin(talk, "resume")
            for _ in range(len(self.accepted[talk.agent["key"]]) + 3):
                self.now += 3 * rules.LEASE
                if blocks := self._claim(talk, rules.CONTEXT_UNITS):
                    self._enter(talk, blocks)
                self._answer(talk)
            assert self._claim(talk, rules.CONTEXT_UNITS) == []
            assert talk.read == self.accepted[talk.agent["key"]]
            box = mailbox.Mailbox(self.root, talk.agent["key"])
            assert box.waiting() == box.in_flight() == []

    def _claim(self, talk: Conversation, room: int) -> list[str]:
        key = talk.agent["key"]
        box = mailbox.Mailbox(self.root, key)
        with box.lock():
            state = store.load_state(self.root, key)
            assert state is not None
            box.settle(state)
            # The attempts of this test have no end.
            for name in box.waiting():
                entry = store.load(f"{box.queue}/{name}")
                if entry is not None and entry.get("attempts", 0) > 1:
                    Path(f"{box.queue}/{name}").write_bytes(store.pack({**entry, "attempts": 1}))
            return box.claim(
                "stop-block", room, mailbox.make_claim(talk.pid, str(talk.transcript)), recipient=talk.agent["name"],
                session_id=talk.session_id,
            )  # fmt: skip

    def _enter(self, talk: Conversation, blocks: list[str]) -> None:
        attachment = {"type": "hook_additional_context", "content": ["\n".join(blocks)]}
        talk.write("attachment", self.now, attachment=attachment)
        talk.unanswered += [block.partition('about="')[2].partition('"')[0] for block in blocks]

    def _answer(self, talk: Conversation) -> None:
        talk.write("assistant", self.now, message={"role": "assistant", "content": "ok"})
        talk.read += talk.unanswered
        talk.unanswered = []

    def _begin(self, talk: Conversation, source: str) -> None:
        talk.pid = 1000 + len(self.alive) + int(self.now) % 7 + max(self.alive, default=0)
        self.alive.add(talk.pid)
        talk.transcript.touch()
        self._record(talk, source)

    def _record(self, talk: Conversation, source: str) -> None:
        spool.state(
            self.root,
            talk.agent["key"],
            talk.session_id,
            str(talk.transcript),
            pid=talk.pid,
            source=source,
            since=self.now,
        )

    def _crash(self, number: int) -> _Crash:
        return _Crash(self, number)

    def _crashing(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            if self.crash_at:
                self.operations += 1
                if self.operations == self.crash_at:
                    raise Crashed
            return real(*args, **named)

        return call


class _Crash:
    """While inside, the `number`th file operation ends the process; 0 for none."""

    def __init__(self, machine: SpoolMachine, number: int) -> None:
        self.machine = machine
        self.number = number

    def __enter__(self) -> None:
        self.machine.crash_at, self.machine.operations = self.number, 0

    def __exit__(self, *error: object) -> None:
        self.machine.crash_at = 0


TestSpool = SpoolMachine.TestCase
# Without shrinking: it takes minutes here, and a failure names its steps anyway.
TestSpool.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
)
