"""The boundaries at which messages enter: the same with the fake harness as with the real Claude Code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.harnesses import Fake, Harness, Real, boundary, send
from tests.hooks.driver import FakeSession
from tests.real.kit import Post
from turnpost.core import registry
from turnpost.lab.model import ScriptedModel
from turnpost.lab.world import World

pytestmark = pytest.mark.contract


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A fake session; nobody starts a coordinator for it."""
    root = str(tmp_path / "state")
    registry.prepare(root)
    monkeypatch.setattr("turnpost.actions.courier.ensure", lambda _root: ())
    with FakeSession(root, tmp_path / "claude", background=True) as session:
        yield Fake(session)


@pytest.fixture
def real(world: World, model: ScriptedModel) -> Iterator[Real]:
    """The real Claude Code, in each tested version."""
    post = Post(world, model)
    yield Real(post)
    post.close()


class Boundaries:
    """What holds for every harness."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError

    def test_an_urgent_message_comes_with_the_next_request_and_others_at_the_turns_end(
        self, harness: Harness
    ) -> None:
        if isinstance(harness, Fake):
            harness.begin()
        harness.work()
        first, urgent, last = send(harness, "one"), send(harness, "now", urgent=True), send(harness, "two")
        harness.tool_ends()
        assert harness.read() == [urgent]
        harness.turn_ends()
        assert harness.read() == [urgent, first, last]
        assert [boundary(harness, one) for one in (urgent, first, last)] == [
            "next-request",
            "stop-block",
            "stop-block",
        ]

    def test_an_idle_agent_is_woken_and_one_that_has_ended_reads_once_it_goes_on(
        self, harness: Harness
    ) -> None:
        harness.begin()
        idle = send(harness, "wake up")
        harness.woken()
        assert harness.read() == [idle]
        harness.end()
        ended = send(harness, "go on")
        harness.resumed()
        assert harness.read() == [idle, ended]
        assert [boundary(harness, one) for one in (idle, ended)] == ["rewake", "resume"]


@pytest.mark.process
class TestFake(Boundaries):
    """The fake harness, which drives the installed hooks."""

    @pytest.fixture
    def harness(self, fake: Fake) -> Harness:
        return fake


@pytest.mark.real
@pytest.mark.slow
class TestReal(Boundaries):
    """The real Claude Code."""

    @pytest.fixture
    def harness(self, real: Real) -> Harness:
        return real
