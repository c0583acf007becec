"""One vocabulary for what happens to a session, spoken by the fake harness and by the real Claude Code.

The tests in this folder run with both. What the fake one lets through, the real one does: so the many tests that are only
driven by the fake one say something about Claude Code.
"""

from __future__ import annotations

import re
from typing import Protocol

from tests.hooks.driver import FakeSession
from tests.real.kit import Gate, Post
from turnpost.actions import receipts, sending
from turnpost.core import clock, registry, store
from turnpost.core.sender import Speaker
from turnpost.lab.model import Say

_MARK = re.compile(r'<message about="(msg-[0-9A-Z]{26})"')


class Harness(Protocol):
    """A session of the agent `name` in the home `root`."""

    root: str

    @property
    def name(self) -> str:
        """What the agent is called."""
        ...

    def begin(self) -> None:
        """The session begins and comes to rest."""

    def work(self) -> None:
        """A turn begins, and a tool runs."""

    def tool_ends(self) -> None:
        """The tool ends, and the next model request goes out."""

    def turn_ends(self) -> None:
        """The model ends its turn; the session comes to rest once nothing keeps it going."""

    def woken(self) -> None:
        """The idle session is woken, and that turn ends as well."""

    def end(self) -> None:
        """The session ends."""

    def resumed(self) -> None:
        """The ended session goes on with what waits, and comes to rest."""

    def read(self) -> list[str]:
        """The messages in the conversation that the last model request carries, in order; one that is there twice comes twice."""
        ...


def send(harness: Harness, body: str, *, urgent: bool = False) -> str:
    """Send as the person; the message's id."""
    person = Speaker(registry.person(harness.root))
    return sending.send(harness.root, [harness.name], body, urgent=urgent, speaker=person).id


def boundary(harness: Harness, message_id: str) -> str | None:
    """Where a message entered, as its receipt says."""
    return receipts.show(harness.root, message_id).receipts[harness.name].boundary


class Fake:
    """The fake harness, in the vocabulary."""

    def __init__(self, session: FakeSession) -> None:
        self._session = session
        self.root = session.root

    @property
    def name(self) -> str:
        return self._session.agent["name"]

    def begin(self) -> None:
        assert self._session.start().briefs
        self._session.turn()
        assert self._session.settled()

    def work(self) -> None:
        self._session.prompt()

    def tool_ends(self) -> None:
        self._session.tool_batch()

    def turn_ends(self) -> None:
        while self._session.stop().reason:
            pass
        assert self._session.settled()

    def woken(self) -> None:
        self._session.wake()
        self.turn_ends()

    def end(self) -> None:
        self._session.end()

    def resumed(self) -> None:
        state = store.load_state(self.root, self._session.key)
        assert state is not None
        # What the coordinator notes before it resumes.
        state["resume"] = {"at": clock.now(), "tries": 0, "next": 0.0, "error": None, "pending": True}
        store.save_state(self.root, self._session.key, state)
        self._session.respawn()
        self._session.turn()

    def read(self) -> list[str]:
        return self._session.read


class Real:
    """The real Claude Code, in the vocabulary."""

    name = "alpha"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._go = post.world.root / "go"
        self._after: Gate | None = None
        self.root = post.root

    def begin(self) -> None:
        self._post.launch_idle(self.name)

    def work(self) -> None:
        self._after = self._post.gate(Say("done"))
        self._post.launch_working(
            self.name, self._after, command=f"until [ -e {self._go} ]; do sleep 0.1; done"
        )

    def tool_ends(self) -> None:
        assert self._after is not None
        self._go.touch()
        self._after.wait_reached()

    def turn_ends(self) -> None:
        assert self._after is not None
        self._after.open()
        self._post.wait_idle(self.name)

    def woken(self) -> None:
        self._post.wait_idle(self.name)

    def end(self) -> None:
        self._post.end_session(self.name)

    def resumed(self) -> None:
        self._post.wait_idle(self.name)

    def read(self) -> list[str]:
        last = self._post.present_requests(self.name)[-1]
        return _MARK.findall("\n".join(text for _, text in last.texts))
