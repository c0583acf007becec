"""What it takes to reach an idle session of the real Claude Code.

From a send to the model request that carries it, against a bare shell waiter on a FIFO; and between two sessions, from the
model's call of the sender's tool to the request of the recipient, against Claude Code's own SendMessage.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.bench.figures import Measured
from tests.bench.ground import Ground, Script
from tests.bench.rounds import PATIENCE, alternate, settle, until
from tests.bench.shell import Shell
from turnpost.lab.model import Say, Tool
from turnpost.lab.progress import Progress

ROUNDS, QUICK, LIMIT = 30, 8, 1.15
FLOOR = "a shell waiter on a FIFO"
BUILT_IN = "Claude Code's SendMessage"
_ALLOWED = {"allow": ["SendMessage"], "defaultMode": "default", "disableAutoMode": "disable"}


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """By the command, by the Python API, and from agent to agent."""
    count = QUICK if quick else ROUNDS
    with Ground(progress) as ground:
        command, api = ground.launch("alpha"), ground.launch("beta")
        floor = Shell(ground, "floor")
        parts = {
            "command": lambda: _by_command(ground, command),
            "api": lambda: _by_api(ground, api),
            FLOOR: lambda: _floor(floor),
        }
        found = alternate("wake", count, parts, progress)
    with Ground(progress) as ground:
        ours, theirs = Agents(ground), Sessions(ground)
        parts = {"tool": ours.send, BUILT_IN: theirs.send}
        found |= alternate("wake, session to session", count, parts, progress)
    return [
        Measured("wake after the command", "ms", found["command"], FLOOR, found[FLOOR], ratio_limit=LIMIT),
        # Without a target: a program that has just rung the bell is still there, the command's last milliseconds are not.
        Measured("wake after the API call", "ms", found["api"], FLOOR, found[FLOOR]),
        Measured("agent to agent", "ms", found["tool"], BUILT_IN, found[BUILT_IN]),
    ]


def _by_command(ground: Ground, key: str) -> float:
    ground.until_idle(key)
    settle()
    message_id, end = ground.send_by_command(key)
    return (ground.read(key, message_id).monotonic - end) * 1000


def _by_api(ground: Ground, key: str) -> float:
    ground.until_idle(key)
    settle()
    message_id = ground.send(key)
    end = time.monotonic()
    return (ground.read(key, message_id).monotonic - end) * 1000


def _floor(floor: Shell) -> float:
    request, begin = floor.wake()
    settle()
    return (request.monotonic - begin) * 1000


class Agents:
    """Two agents in a mission, of which one writes to the other with turnpost's tool."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        ground.world.turnpost("mission", "start", "pair").check()
        ground.model.script("from-us", [_load("mcp__turnpost__send"), Say("loaded")])
        self._from, self._to = (ground.launch(name, "--mission", "pair") for name in ("from-us", "to-us"))

    def send(self) -> float:
        """Let the one send; milliseconds from its model's call to the other's request."""
        ground, mark = self._ground, self._ground.mark()
        for key in (self._from, self._to):
            ground.until_idle(key)
        settle()
        # The person's word begins the turn, so the two do not come to the limit of what agents say to each other alone.
        return _sent(
            ground, "from-us", Tool("mcp__turnpost__send", {"to": "to-us", "body": mark}), mark, self._wake
        )

    def _wake(self) -> None:
        self._ground.read(self._from, self._ground.send(self._from))


class Sessions:
    """Two sessions without turnpost, of which one writes to the other with the tool that Claude Code has for that."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        ground.model.script("from-cc", [_load("SendMessage"), Say("loaded")])
        self._from = Shell(ground, "from-cc", permissions=_ALLOWED)
        ground.bare("to-cc", {}, permissions=_ALLOWED)
        until(lambda: len(ground.model.requests("from-cc")) > 1, "its tool is loaded")

    def send(self) -> float:
        """Let the one send; milliseconds from its model's call to the other's request."""
        mark = self._ground.mark()
        call = Tool("SendMessage", {"to": "to-cc", "message": mark, "summary": "the figures"})
        return _sent(self._ground, "from-cc", call, mark, self._wake)

    def _wake(self) -> None:
        self._from.wake()


def _load(tool: str) -> Tool:
    return Tool("ToolSearch", {"query": f"select:{tool}"})


def _sent(ground: Ground, name: str, call: Tool, mark: str, wake: Callable[[], None]) -> float:
    """Begin a turn in which `call` is made; milliseconds until another's request has `mark`."""
    step = Script(call)
    ground.model.script(name, [step, Say("sent")])
    wake()
    request = ground.model.wait_for(lambda one: one.name != name and not one.side and one.has(mark), PATIENCE)
    settle()
    return (request.monotonic - step.left()) * 1000
