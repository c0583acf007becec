"""A world with the real Claude Code to measure in: agents of turnpost's, and sessions without it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.bench.figures import Measured
from tests.bench.places import stamped
from tests.bench.rounds import PATIENCE, NotMeasured, settle, until
from turnpost.actions import sending
from turnpost.core import bell, procs, registry, render, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker
from turnpost.lab.fetch import NEWEST, fetch_claude
from turnpost.lab.model import ModelRequest, ScriptedModel, Step
from turnpost.lab.progress import Progress
from turnpost.lab.world import World

BODY = "the figures of the last build are in"
TEXT = "The figures of the last build are in. " * 7
"""As long as a message of turnpost's with that body: what is compared makes conversations grow alike."""
_GONE = 3.0
"""Seconds after the end of a stopped session's process: nothing of it is being put away any more."""

Measure = Callable[[bool, Progress], list[Measured]]


class Ground:
    """A world with the real Claude Code, a coordinator, and idle sessions; a context manager."""

    def __init__(self, progress: Progress) -> None:
        self.model = ScriptedModel()
        self._progress = progress
        self._number = 0

    def __enter__(self) -> Ground:
        try:
            self.world = World(fetch_claude(NEWEST, self._progress), self.model.url)
        except BaseException:
            self.model.close()
            raise
        try:
            self.root = str(self.world.state)
            self.shop = self.world.project("shop")
            self.world.turnpost("coordinator", "start").check()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.world.close()
        self.model.close()

    def mark(self) -> str:
        """A word that stands in one request and in none before it."""
        self._number += 1
        return f"floor-{self._number:04d}"

    def launch(self, name: str, *options: str) -> str:
        """An idle agent of turnpost's; its key."""
        self._progress.update(f"launching {name}")
        words = ("launch", name, f"[[lab:{name}]] begin", "--cwd", str(self.shop), *options)
        self.world.turnpost(*words).check()
        key = registry.key_of_name(self.root, name)
        if key is None:
            raise NotMeasured(f"{name} was launched and is not known")
        self.until_idle(key)
        return key

    def bare(self, name: str, hooks: Mapping[str, Any], **settings: object) -> str:
        """An idle session with these hooks only; its id."""
        self._progress.update(f"launching {name}")
        given = json.dumps({"hooks": hooks, **settings})
        words = ("--bg", f"[[lab:{name}]] begin", "--name", name, "--settings", given)
        self.world.claude(*words, cwd=self.shop).check()
        session_id = self.model.wait_for(lambda one: one.name == name and not one.side, PATIENCE).session_id
        if session_id is None:
            raise NotMeasured("a model request without a session id")
        return session_id

    def send(self, key: str) -> str:
        """Send by the Python API, as the person; the message's id."""
        # Given, not asked for: this process may itself run below somebody's Claude session.
        speaker = Speaker(registry.person(self.root))
        return sending.send(self.root, [self._name(key)], BODY, speaker=speaker).id

    def send_by_command(self, key: str) -> tuple[str, float]:
        """Send by the command line; the message's id, and when the command ended."""
        words = [sys.executable, "-m", "turnpost", "send", self._name(key), BODY]
        _, end = stamped(words, cwd=self.shop, env=self.world.env())
        return self._newest(key), end

    def read(self, key: str, message_id: str) -> ModelRequest:
        """The request that brought a message; once it is proven to be read, as the product itself sees it."""
        request = self.carried(render.mark(message_id))
        box = Mailbox(self.root, key)

        def read() -> bool:
            receipt = box.receipt(message_id)
            return receipt is not None and receipt["state"] == "read"

        until(read, f"{message_id} is read")
        return request

    def carried(self, text: str) -> ModelRequest:
        """The first request of a conversation that has this text."""
        return self.model.wait_for(lambda request: not request.side and request.has(text), PATIENCE)

    def _name(self, key: str) -> str:
        agent = registry.known_agent(self.root, key)
        return agent["name"] if agent else key

    def _newest(self, key: str) -> str:
        """The id of the last message; ids begin with their time."""
        days = Path(self.root, "messages")
        found = [path.name for path in days.glob("*/*") if self._is_to(key, path)]
        if not found:
            raise NotMeasured("a send that left no message")
        return max(found)

    @staticmethod
    def _is_to(key: str, folder: Path) -> bool:
        message = store.load(f"{folder}/message.json")
        return message is not None and any(party["key"] == key for party in message["to"])

    def until_idle(self, key: str) -> None:
        """Wait until an agent is idle with a live waiter."""

        def idle() -> bool:
            state = store.load_state(self.root, key)
            return state is not None and state["doing"] == "idle" and bell.listening(self.root, key)

        until(idle, "the agent is idle and has a waiter")

    def stop(self, session_id: str) -> None:
        """End an idle session and wait until its process is gone, and a while longer."""
        pid = 0

        def idle() -> bool:
            nonlocal pid
            listed = [one for one in self.world.agents() if one.get("sessionId") == session_id]
            pid = int(listed[0].get("pid") or 0) if listed else 0
            return bool(pid) and listed[0].get("status") == "idle"

        until(idle, "the session is idle", pause=0.2)
        settle()
        self.world.claude("stop", session_id[:8]).check()
        until(lambda: procs.token(pid) is None, "the stopped session is gone")
        settle(_GONE)


class Script:
    """A step of the model that does something first, and notes when its answer left."""

    def __init__(self, answer: Step, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._answer = answer
        self._meanwhile = meanwhile
        self._left: Future[float] = Future()

    def __call__(self, _request: ModelRequest) -> Step:
        """The step itself."""
        self._meanwhile()
        self._left.set_result(time.monotonic())
        return self._answer

    def left(self) -> float:
        """When the answer left, by `time.monotonic`, waited for."""
        return self._left.result(PATIENCE)
