"""What the real Claude Code takes from a send to the model request that carries it, against the least it could take."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.figures import Measured
from tests.bench.places import stamped
from tests.bench.rounds import PATIENCE, NotMeasured, alternate, settle, until
from turnpost.actions import sending
from turnpost.core import bell, procs, registry, render, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker
from turnpost.lab.fetch import NEWEST, fetch_claude
from turnpost.lab.model import ModelRequest, ScriptedModel
from turnpost.lab.progress import Progress
from turnpost.lab.world import World

WAKES, QUICK_WAKES, WAKE_LIMIT = 30, 8, 1.15
RESUMES, QUICK_RESUMES, RESUME_LIMIT = 7, 2, 1.3
FLOOR = "a shell waiter on a FIFO"
RESUME = "claude --bg --resume"
BODY = "the figures of the last build are in"
_GONE = 3.0
"""Seconds after the end of a stopped session's process: nothing of it is being put away any more."""


def wake(quick: bool, progress: Progress) -> list[Measured]:
    """From the end of `send` to the request, to an idle agent: by the command, and by the Python API."""
    with Ground(progress) as ground:
        command, api = ground.launch("alpha"), ground.launch("beta")
        floor = Floor(ground)
        parts = {
            "command": lambda: ground.wake_by_command(command),
            "api": lambda: ground.wake_by_api(api),
            FLOOR: floor.wake,
        }
        found = alternate("wake", QUICK_WAKES if quick else WAKES, parts, progress)
    return [
        Measured(
            "wake after the command", "ms", found["command"], FLOOR, found[FLOOR], ratio_limit=WAKE_LIMIT
        ),
        # Without a target: a program that has just rung the bell is still there, the command's last milliseconds are not.
        Measured("wake after the API call", "ms", found["api"], FLOOR, found[FLOOR]),
    ]


def stopped(quick: bool, progress: Progress) -> list[Measured]:
    """From the end of `send` to the request, to an agent that was stopped and is gone."""
    with Ground(progress) as ground:
        key = ground.launch("sigma")
        bare = ground.bare("tau", {})
        parts = {"send": lambda: ground.send_to_stopped(key), RESUME: lambda: ground.resume(bare)}
        found = alternate("stopped", QUICK_RESUMES if quick else RESUMES, parts, progress)
    name = "resume of a stopped one"
    return [Measured(name, "ms", found["send"], RESUME, found[RESUME], ratio_limit=RESUME_LIMIT)]


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

    def launch(self, name: str) -> str:
        """An idle agent of turnpost's; its key."""
        self._progress.update(f"launching {name}")
        self.world.turnpost("launch", name, f"[[lab:{name}]] begin", "--cwd", str(self.shop)).check()
        key = registry.key_of_name(self.root, name)
        if key is None:
            raise NotMeasured(f"{name} was launched and is not known")
        self._until_idle(key)
        return key

    def bare(self, name: str, hooks: dict[str, Any]) -> str:
        """An idle session without turnpost; its id."""
        self._progress.update(f"launching {name}")
        words = ("--bg", f"[[lab:{name}]] begin", "--name", name, "--settings", json.dumps({"hooks": hooks}))
        self.world.claude(*words, cwd=self.shop).check()
        session_id = self.model.wait_for(lambda one: one.name == name and not one.side, PATIENCE).session_id
        if session_id is None:
            raise NotMeasured("a model request without a session id")
        return session_id

    def wake_by_command(self, key: str) -> float:
        """Send by the command line; milliseconds from the end of its process."""
        self._until_idle(key)
        settle()
        return self._took(key, self._command(key)[1])

    def wake_by_api(self, key: str) -> float:
        """Send by the Python API; milliseconds from its return."""
        self._until_idle(key)
        # Given, not asked for: this process may itself run below somebody's Claude session.
        speaker = Speaker(registry.person(self.root))
        agent = registry.known_agent(self.root, key)
        settle()
        sending.send(self.root, [agent["name"] if agent else key], BODY, speaker=speaker)
        return self._took(key, time.monotonic())

    def send_to_stopped(self, key: str) -> float:
        """Stop the agent, wait until it is gone, send; milliseconds from the end of the command."""
        self._until_idle(key)
        state = store.load_state(self.root, key)
        if state is None:
            raise NotMeasured("a running agent without a state")
        self._stop(state["session_id"])
        return self._took(key, self._command(key)[1])

    def resume(self, session_id: str) -> float:
        """Stop a bare session, wait until it is gone, resume it; milliseconds from the start of the command."""
        self._stop(session_id)
        command = [str(self.world.claude_path), "--bg", "--resume", session_id]
        nudge = f"{render.NUDGE} {self.mark()}"
        begin, _ = stamped(command, cwd=self.shop, env=self.world.env(), input=nudge)
        request = self.carried(nudge)
        if request.session_id != session_id:
            raise NotMeasured(f"the resume of {session_id} made a copy")
        return (request.monotonic - begin) * 1000

    def carried(self, text: str) -> ModelRequest:
        """The first request of a conversation that has this text."""
        return self.model.wait_for(lambda request: not request.side and request.has(text), PATIENCE)

    def _command(self, key: str) -> tuple[float, float]:
        agent = registry.known_agent(self.root, key)
        words = [sys.executable, "-m", "turnpost", "send", agent["name"] if agent else key, BODY]
        return stamped(words, cwd=self.shop, env=self.world.env())

    def _took(self, key: str, since: float) -> float:
        """Milliseconds until the newest message's request; once it is proven to be read, as the product itself sees it."""
        message_id = self._newest(key)
        request = self.carried(render.mark(message_id))
        box = Mailbox(self.root, key)

        def read() -> bool:
            receipt = box.receipt(message_id)
            return receipt is not None and receipt["state"] == "read"

        until(read, f"{message_id} is read")
        return (request.monotonic - since) * 1000

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

    def _until_idle(self, key: str) -> None:
        def idle() -> bool:
            state = store.load_state(self.root, key)
            return state is not None and state["doing"] == "idle" and bell.listening(self.root, key)

        until(idle, "the agent is idle and has a waiter")

    def _stop(self, session_id: str) -> None:
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


class Floor:
    """A session with nothing but a shell that blocks on a FIFO: nothing that wakes a session can be faster."""

    # As long as a message of turnpost's, so that both conversations grow alike.
    _TEXT = "The figures of the last build are in. " * 18

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._fifo = ground.world.root / "floor.fifo"
        os.mkfifo(self._fifo, 0o600)
        script = f"read -r mark < '{self._fifo}'; echo \"$mark {self._TEXT}\" >&2; exit 2"
        waiter = {
            "type": "command",
            "command": "/bin/sh",
            "args": ["-c", script],
            "timeout": 3600,
            "asyncRewake": True,
        }
        ground.bare("floor", {"Stop": [{"hooks": [waiter]}]})  # fmt: skip

    def wake(self) -> float:
        """Write into the FIFO; milliseconds from the write."""
        mark = self._ground.mark()
        writer = self._open()
        try:
            settle()
            begin = time.monotonic()
            os.write(writer, f"{mark}\n".encode())
        finally:
            os.close(writer)
        request = self._ground.carried(mark)
        settle()
        return (request.monotonic - begin) * 1000

    def _open(self) -> int:
        writer = -1

        def listening() -> bool:
            nonlocal writer
            try:
                writer = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
            return True

        until(listening, "the shell waits on the FIFO")
        return writer


Measure = Callable[[bool, Progress], list[Measured]]
