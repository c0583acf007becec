"""What a scene can do and see: the command line of turnpost, the model's requests, and the clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from turnpost.core import clock, render
from turnpost.core.errors import TimedOut
from turnpost.demo.results import Failure
from turnpost.demo.timeline import Timeline
from turnpost.lab.detach import Finished
from turnpost.lab.errors import LabError, LabTimeout
from turnpost.lab.model import ModelRequest, ScriptedModel
from turnpost.lab.world import World

PATIENCE = 75.0
"""Seconds any one thing may take. Longest of all is a killed session's return: some 15 s on a quiet machine."""
_POLL = 0.1
# The tools of the agents run without a person to ask.
_SETTINGS = {"permissions": {"allow": ["Bash"]}}
_T = TypeVar("_T")


class Cut(LabError):
    """The demo was ended before the scene was."""


class Stage:
    """The laboratory as the scenes see it. All methods may be called from several threads.

    `project` is everybody's; `changing` is one for a scene that changes a project's settings.
    When `over` is set nothing more is started: every method that would raises Cut.
    """

    def __init__(self, world: World, model: ScriptedModel, timeline: Timeline, over: threading.Event) -> None:
        self.world = world
        self.model = model
        # Both before the first session starts: Claude Code's spare session may not know of one trusted later.
        self.project = world.project("shop", settings=_SETTINGS)
        self.changing = world.project("other-shop", settings=_SETTINGS)
        self.timeline = timeline
        self._over = over
        self.failures: list[Failure] = []

    def tell(self, who: str, what: str) -> None:
        """Add a line to the timeline."""
        self.timeline.tell(who, what)

    def expect(self, agent: str, expected: str, seen: object, good: bool) -> None:
        """Note a check; a failed one ends nothing, so that all of them are seen."""
        if not good:
            self.failures.append(Failure(agent, expected, str(seen)))
            self.tell(agent, f"NOT AS EXPECTED: expected {expected}; seen: {seen}")

    def command(self, *words: str) -> Any:
        """A turnpost command's answer as JSON. Raises LabError with what it said when it fails."""
        return json.loads(self._run(words).check().stdout)

    def launch(self, name: str, words: str, project: Path | None = None) -> str:
        """Launch an agent whose conversation the model knows by its name; its session id."""
        answer = self.command(
            "launch", name, f"[[lab:{name}]] You are {name}. {words}", "--cwd", str(project or self.project)
        )
        self.tell(name, f"launched, session {answer['session_id'][:8]}")
        return str(answer["session_id"])

    def send(self, name: str, body: str) -> str:
        """Send a message as the person; its id."""
        answer = self.command("send", name, body)
        boundary = answer["recipients"][0]["boundary"]
        self.tell(name, f"sent ...{answer['id'][-6:]}, expected to enter by: {boundary}")
        return str(answer["id"])

    def agent(self, name: str) -> dict[str, Any]:
        """The agent as `turnpost agents` shows it."""
        return self.agents()[name]

    def agents(self) -> dict[str, dict[str, Any]]:
        """All agents by name."""
        return {agent["name"]: agent for agent in self.command("agents")}

    def wait_idle(self, name: str) -> None:
        """Wait until the agent's turn is over."""
        self._wait_for(name, "idle")

    def wait_read(self, name: str, message_id: str) -> None:
        """Wait until the message is read; told in the timeline."""
        self._wait_for(message_id, "read")
        receipt = self.receipt(name, message_id)
        queued, read = clock.parse(receipt["queued_at"]), clock.parse(receipt["read_at"] or "")
        took = f" after {(read - queued) * 1000:,.0f} ms" if queued and read else ""
        self.tell(name, f"...{message_id[-6:]} {receipt['state']} by {receipt['boundary']}{took}")

    def receipt(self, name: str, message_id: str) -> dict[str, Any]:
        """How far a message has come."""
        found: dict[str, Any] = self.command("show", message_id)["receipts"][name]
        return found

    def wait_file(self, name: str) -> None:
        """Wait until an agent's tool has made a file in the project."""
        self.wait(lambda: (self.project / name).exists() or None, f"the file {name}")

    def with_mark(self, message_id: str) -> list[ModelRequest]:
        """The requests of main conversations in which a message stands."""
        mark = render.mark(message_id)
        return [request for request in self.model.requests() if not request.side and request.has(mark)]

    def last_request(self, session_id: str) -> ModelRequest | None:
        """The newest request of a session's main conversation."""
        found = [request for request in self.model.requests(session_id) if request.subagent_id is None]
        return found[-1] if found else None

    def wait(self, look: Callable[[], _T | None], what: str) -> _T:
        """What `look` finds, asked again and again. Raises LabTimeout."""
        end = time.monotonic() + PATIENCE
        while (found := look()) is None:
            if time.monotonic() > end:
                raise LabTimeout(f"waited {PATIENCE:g} s for {what}")
            self.go_on()
            time.sleep(_POLL)
        return found

    def _wait_for(self, target: str, goal: str) -> dict[str, Any]:
        """What `turnpost wait` shows at last. Its longest wait is 30 s, so it is asked again."""
        words = ("wait", target, "--for", goal, "--timeout", "30")
        end = time.monotonic() + PATIENCE
        while True:
            done = self._run(words)
            if done.returncode != TimedOut.exit_code:
                answer: dict[str, Any] = json.loads(done.check().stdout)
                return answer
            if time.monotonic() > end:
                said = json.loads(done.stdout)["error"]["message"]
                raise LabTimeout(f"waited {PATIENCE:g} s for {target} to be {goal}: {said}")

    def _run(self, words: Sequence[str]) -> Finished:
        self.go_on()
        return self.world.turnpost(*words, "--json", cwd=self.project)

    def go_on(self) -> None:
        """Raise Cut when the demo is being ended."""
        if self._over.is_set():
            raise Cut("the demo was ended")
