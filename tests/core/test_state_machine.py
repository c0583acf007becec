"""The contract as a state machine: whatever happens in whatever order, nothing is lost, nothing comes twice, order is kept.

The same machine drives the spool inside the test's process, where time and crashes are the machine's, and the hooks as they
are installed, each a process of its own that may be killed.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.core import contract, spool
from tests.core.contract import LIMIT, NAMES, Contract, Crashed
from tests.long import scale
from turnpost.core import rules
from turnpost.core.errors import Refused

WHO = st.sampled_from(NAMES)


class Model:
    """What must be true: per recipient what was accepted, and how much of it was read."""

    def __init__(self) -> None:
        self.accepted: dict[str, list[str]] = {name: [] for name in NAMES}
        self.urgent: set[str] = set()

    def agrees(self, name: str, read: list[str]) -> bool:
        """Each once, and in the order accepted; what is urgent goes before."""
        orders = [[one for one in ids if one not in self.urgent] for ids in (read, self.accepted[name])]
        return len(read) == len(set(read)) and orders[0] == orders[1][: len(orders[0])]


class ContractMachine(RuleBasedStateMachine):
    """Senders, recipients, boundaries, crashes, lost texts, deaths and relinks."""

    make: type[Contract]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=contract.memory()))
        self.model = Model()
        self.world = self.make(self.folder)

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    # What happens.

    @rule(
        by=st.sampled_from(["person", *NAMES, "mother"]),
        to=st.sets(WHO, min_size=1),
        urgent=st.booleans(),
        crash=st.integers(0, 40),
    )
    def send(self, by: str, to: set[str], urgent: bool, crash: int) -> None:
        """Somebody sends to some; the process may end on the way."""
        names = sorted(to - {by})
        if not names:
            return
        message = self.world.message(by, names, urgent=urgent)
        full = any(len(self.world.box(name).waiting()) >= LIMIT for name in names)
        before = spool.tree(self.world.root)
        try:
            self.world.send(message, names, crash)
        except Refused:
            assert full
            assert spool.tree(self.world.root) == before
            return
        except Crashed:
            self.world.recover()
        have = {name for name in names if self.world.box(name).receipt(message["id"])}
        assert have in (set(), set(names)), "some have it and some have not"
        for name in have:
            self.model.accepted[name].append(message["id"])
        if urgent:
            self.model.urgent.add(message["id"])

    @rule(
        who=WHO,
        what=st.sampled_from(["prompt", "tool_batch", "stop", "wake"]),
        enters=st.booleans(),
        answers=st.booleans(),
        crash=st.integers(0, 60),
    )
    def boundary(self, who: str, what: str, enters: bool, answers: bool, crash: int) -> None:
        """A hook takes what waits. What it prints enters the conversation, or is dropped by the harness."""
        if self.world.lives(who):
            self.world.boundary(who, what, enters=enters, answers=answers, crash=crash)

    @rule(who=WHO, crash=st.integers(0, 30))
    def settle(self, who: str, crash: int) -> None:
        """The coordinator looks at the transcripts."""
        self.world.settle(who, crash)

    @rule(who=WHO, crash=st.integers(0, 20), which=st.integers(0, LIMIT))
    def cancel(self, who: str, crash: int, which: int) -> None:
        """A message that waits is taken back, or is not when the process ends on the way."""
        waiting = self.world.waiting(who)
        if waiting:
            message_id = waiting[which % len(waiting)]
            self.world.cancel(who, message_id, crash)
            if self.world.state(who, message_id) == "cancelled":
                self.model.accepted[who].remove(message_id)

    @rule(who=WHO)
    def answer(self, who: str) -> None:
        """The model answers what stands in its conversation."""
        if self.world.lives(who):
            self.world.talks[who].answer()

    @rule(seconds=st.sampled_from([1.0, rules.LEASE + 1, 3 * rules.LEASE]))
    def later(self, seconds: float) -> None:
        """Time passes."""
        self.world.later(seconds)

    @rule(who=WHO)
    def die(self, who: str) -> None:
        """kill -9 of a session."""
        self.world.die(who)

    @rule(who=WHO, crash=st.integers(0, 60))
    def resume(self, who: str, crash: int) -> None:
        """A session that ended goes on, with its conversation."""
        if not self.world.lives(who):
            self.world.begin(who, "resume", crash=crash)

    @rule(who=WHO, crash=st.integers(0, 60))
    def copy(self, who: str, crash: int) -> None:
        """A session goes on under another id, and the old one ends: the copy has the whole conversation."""
        self.world.die(who)
        self.world.begin(who, "fork", session_id=str(uuid.uuid4()), crash=crash)

    @rule(who=WHO, crash=st.integers(0, 60))
    def clear(self, who: str, crash: int) -> None:
        """The conversation is cleared away, in the same process; what it did not answer nobody has read."""
        if self.world.lives(who):
            self.world.begin(who, "clear", session_id=str(uuid.uuid4()), crash=crash)

    # What must hold.

    @invariant()
    def nothing_is_lost(self) -> None:
        """Each accepted message is known, and is read or still in hand."""
        for name in NAMES:
            for message_id in self.model.accepted[name]:
                assert self.world.state(name, message_id) in ("queued", "claimed", "delivered", "read")

    @invariant()
    def nothing_is_read_twice_or_out_of_order(self) -> None:
        """The model's answers went to messages in the order they were accepted in, each once."""
        for name in NAMES:
            read = self.world.talks[name].has_read()
            assert self.model.agrees(name, read), (name, read, self.model.accepted[name])

    @invariant()
    def nothing_unread_is_called_read(self) -> None:
        """A receipt says `read` only when the model has answered."""
        for name in NAMES:
            read = self.world.talks[name].has_read()
            for message_id in self.model.accepted[name]:
                if message_id not in read:
                    assert self.world.state(name, message_id) != "read"

    # How it ends.

    def _drain(self) -> None:
        """Everything works again for a while: all that was accepted is read."""
        self.world.recover()
        for name in NAMES:
            if not self.world.lives(name):
                self.world.begin(name, "resume")
            for _ in range(len(self.model.accepted[name]) + 3):
                self.world.later(3 * rules.LEASE)
                self.world.turn(name)
            assert sorted(self.world.talks[name].has_read()) == sorted(self.model.accepted[name])
            assert self.world.box(name).waiting() == self.world.box(name).in_flight() == []
        self.nothing_is_read_twice_or_out_of_order()


class SpoolMachine(ContractMachine):
    make = contract.Spool


class HooksMachine(ContractMachine):
    make = contract.Hooks


def sized(examples: int, steps: int) -> settings:
    # Without shrinking: it takes minutes here, and a failure names its steps anyway.
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        phases=[Phase.reuse, Phase.generate],
        report_multiple_bugs=False,
    )


TestSpool = SpoolMachine.TestCase
TestSpool.settings = sized(scale(30, 1000), 30)
TestHooks = pytest.mark.process(HooksMachine.TestCase)
TestHooks.settings = sized(scale(3, 60), 15)


@pytest.mark.parametrize("make", [contract.Spool, pytest.param(contract.Hooks, marks=pytest.mark.process)])
def test_what_a_copy_of_a_copy_has_read_is_not_delivered_again_after_a_clear(
    make: type[Contract], tmp_path: Path
) -> None:
    world = make(tmp_path)
    try:
        message = world.message("person", ["alpha"], urgent=False)
        world.send(message, ["alpha"], 0)
        world.boundary("alpha", "prompt", enters=True, answers=False, crash=0)
        for copied in ("once", "twice"):
            world.die("alpha")
            world.begin("alpha", "fork", session_id=str(uuid.uuid4()))
            if copied == "once":
                world.talks["alpha"].answer()
        world.begin("alpha", "clear", session_id=str(uuid.uuid4()))
        world.later(3 * rules.LEASE)
        world.turn("alpha")
        assert world.talks["alpha"].has_read() == [message["id"]]
        assert world.state("alpha", message["id"]) == "read"
    finally:
        world.close()
