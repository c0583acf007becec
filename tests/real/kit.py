"""What the tests on the real Claude Code share: one world with turnpost installed, used as a person uses it.

A delivery is proven by the model request that carries it: in the agent's last request a message's mark stands exactly once.
Commands that do something run as processes of their own; looks that are repeated until something has happened read the
same answers without one, which would cost more than what they look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import turnpost
from turnpost.actions import agents, receipts
from turnpost.actions.results import AgentView, ReceiptView
from turnpost.core import files, home, registry
from turnpost.core.render import mark
from turnpost.lab import processes
from turnpost.lab.detach import run
from turnpost.lab.model import Answer, ModelRequest, Say, ScriptedModel, ScriptedStep, Tool
from turnpost.lab.world import World, write_json

PATIENCE = 45.0
"""Seconds anything may take on a loaded machine; what is expected to take longer says so."""
SETTINGS: Mapping[str, Any] = {
    "permissions": {"allow": ["Bash"], "defaultMode": "default", "disableAutoMode": "disable"}
}
"""A project in which commands run without a question."""

_T = TypeVar("_T")
_OK = Say("ok")
_SEND_MANY = """
import json, sys
from turnpost.actions import sending
for body in json.load(sys.stdin):
    print(sending.send(sys.argv[1], [sys.argv[2]], body).id)
"""


def until(look: Callable[[], _T], what: str, timeout: float = PATIENCE) -> _T:
    """The first true answer of `look`; fails with `what` and the last answer when none comes in time."""
    end = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < end, f"not within {timeout:g} s: {what}; last: {found!r}"
        time.sleep(0.03)
    return found


def bash(command: str) -> Tool:
    """A step that runs a command. Claude Code refuses a bare `sleep` of more than a few seconds."""
    return Tool("Bash", {"command": command, "description": "run it"})


class Gate:
    """A step that answers only when the test says so: a turn that is in the middle for exactly as long as it must be."""

    def __init__(self, answer: Answer = _OK) -> None:
        self._answer = answer
        self._reached = threading.Event()
        self._open = threading.Event()

    def __call__(self, _request: ModelRequest) -> Answer:
        """The step itself."""
        self._reached.set()
        self._open.wait(2 * PATIENCE)
        return self._answer

    def wait_reached(self, timeout: float = PATIENCE) -> None:
        """Wait until the request is there."""
        assert self._reached.wait(timeout), f"no request within {timeout:g} s"

    def open(self) -> None:
        """Answer."""
        self._open.set()


@dataclass(frozen=True)
class Sent:
    """What `send --json` answered."""

    id: str
    recipients: tuple[Mapping[str, Any], ...]

    @property
    def boundary(self) -> str:
        """Where it is expected to enter, for a message to one recipient."""
        (only,) = self.recipients
        return str(only["boundary"])


class Post:
    """turnpost in a world. Made by the `post` fixture, which also makes the project `shop`.

    Without `tools` its projects have the hooks only: the tool server takes a second of the processor in each session.
    """

    def __init__(self, world: World, model: ScriptedModel, *, tools: bool = False) -> None:
        self.world = world
        self.model = model
        self.root = str(world.state)
        self._gates: list[Gate] = []
        self._with = () if tools else ("--no-tools",)
        self.shop = self.project("shop")

    def close(self) -> None:
        """Answer what a failed test left waiting."""
        for gate in self._gates:
            gate.open()

    # Setting up

    def project(self, name: str, *, settings: Mapping[str, Any] = SETTINGS, install: bool = True) -> Path:
        """A repository with turnpost installed by its own command. Make it before the first session starts."""
        folder = self.world.project(name, git=True, settings=settings)
        if install:
            self.run("install", "--project", str(folder), *self._with)
        return folder

    def configure(self, **values: float) -> None:
        """Write `config.toml`; before the coordinator starts."""
        self.world.state.mkdir(mode=0o700, exist_ok=True)
        lines = [f"{name} = {value}\n" for name, value in values.items()]
        (self.world.state / "config.toml").write_text("".join(lines))

    def add_hook(self, event: str, command: str, folder: Path | None = None, **extra: object) -> None:
        """Put somebody else's hook beside ours; before the first session starts."""
        path = (folder or self.shop) / ".claude" / "settings.json"
        settings = json.loads(path.read_text())
        entry = {"hooks": [{"type": "command", "command": command, **extra}]}
        settings.setdefault("hooks", {}).setdefault(event, []).append(entry)
        write_json(path, settings)

    def gate(self, answer: Answer = _OK) -> Gate:
        """A step that waits for the test."""
        self._gates.append(Gate(answer))
        return self._gates[-1]

    def record_starts(self, folder: Path | None = None) -> Callable[[], list[tuple[str, str]]]:
        """Count the starts of sessions with a hook of its own: a look at (source, session id) of each."""
        file = self.world.root / "starts.jsonl"
        self.add_hook("SessionStart", f"cat >> {file}; echo >> {file}", folder)

        def starts() -> list[tuple[str, str]]:
            lines = file.read_text().splitlines() if file.exists() else []
            found = [json.loads(line) for line in lines if line.strip()]
            return [(one["source"], one["session_id"]) for one in found]

        return starts

    # Commands

    def run(self, *args: str, input: str | None = None, cwd: Path | None = None) -> Any:
        """Run a command with `--json` to a good end; its document."""
        return json.loads(self.world.turnpost(*args, "--json", input=input, cwd=cwd).check().stdout)

    def refused(self, *args: str, input: str | None = None) -> dict[str, Any]:
        """Run a command that must be refused; its error."""
        done = self.world.turnpost(*args, "--json", input=input)
        assert done.returncode == 3, done
        return dict(json.loads(done.stdout)["error"])

    def launch(
        self,
        name: str,
        *steps: ScriptedStep,
        prompt: str = "begin",
        cwd: Path | None = None,
        options: Sequence[str] = (),
    ) -> str:
        """Launch an agent under a script; its session id."""
        self.model.script(name, steps)
        words = ("launch", name, f"[[lab:{name}]] {prompt}", "--cwd", str(cwd or self.shop), *options)
        return str(self.run(*words)["session_id"])

    def launch_idle(self, name: str, *, cwd: Path | None = None, options: Sequence[str] = ()) -> str:
        """Launch an agent and wait until its first turn is over and its waiter listens; its session id."""
        session_id = self.launch(name, cwd=cwd, options=options)
        self.wait_idle(name)
        return session_id

    def launch_working(
        self, name: str, *rest: ScriptedStep, command: str = "sleep 2", cwd: Path | None = None
    ) -> str:
        """Launch an agent and wait until it runs `command`; its session id. `rest` are the steps after it."""
        begun = self.world.root / f"begun-{name}"
        session_id = self.launch(name, bash(f"touch {begun}; {command}"), *rest, cwd=cwd)
        until(begun.exists, f"{name} runs its command")
        return session_id

    def send(self, to: str, body: str, *options: str) -> Sent:
        """Send as the person; the body goes on stdin, so any text will do."""
        answer = self.run("send", to, "-", *options, input=body)
        return Sent(answer["id"], tuple(answer["recipients"]))

    def send_many(self, to: str, bodies: Sequence[str]) -> list[str]:
        """Send many messages one after the other, as the person, from one process; their ids."""
        command = (sys.executable, "-c", _SEND_MANY, self.root, to)
        env = self.world.env() | {"PYTHONPATH": str(Path(turnpost.__file__).parents[1])}
        done = run(command, cwd=self.world.root, env=env, input=json.dumps(bodies), timeout=PATIENCE)
        return done.check().stdout.split()

    def end_session(self, name: str, *, wait: bool = True) -> None:
        """End an agent's session behind turnpost's back, with `claude stop`: no hold."""
        before = self.agent(name)
        assert before.session_id is not None
        self.world.claude("stop", before.session_id[:8]).check()
        if wait:
            self.wait_state(name, "stopped")
            until(lambda: not before.pid or not _alive(before.pid), f"the process of {name} is gone")

    def kill_session(self, name: str) -> int:
        """Kill an agent's session with -9; the pid it had."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def coordinator_pid(self) -> int:
        """The coordinator's process, waited for."""
        return int(until(lambda: self.run("coordinator", "status")["pid"], "a coordinator runs"))

    def pause_coordinator(self) -> Callable[[], None]:
        """Let the coordinator stand still, so that nobody is resumed; what to call to let it go on."""
        pid = self.coordinator_pid()
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def paused_waiter(self, name: str) -> Iterator[None]:
        """Let the world's one waiter, an idle agent's, stand still, so that what is sent meanwhile comes at once."""
        until(lambda: len(self.waiters()) == 1 and self.listening(name), "one waiter is left")
        (waiter,) = self.waiters()
        os.kill(waiter.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(waiter.pid, signal.SIGCONT)

    # Looks

    def agent(self, name: str) -> AgentView:
        """An agent as `turnpost agents` shows it."""
        return next(one for one in agents.agents(self.root).agents if one.name == name)

    def state(self, name: str) -> str:
        """What an agent does."""
        return self.agent(name).state

    def pid(self, name: str) -> int:
        """The process of an agent's session."""
        pid = self.agent(name).pid
        assert pid
        return pid

    def key(self, name: str) -> str:
        """An agent's key in the spool."""
        return registry.find(self.root, name)["key"]

    def receipt(self, name: str, message_id: str) -> ReceiptView:
        """How far a message has come with one recipient, as `turnpost show` tells it."""
        return receipts.show(self.root, message_id).receipts[name]

    def log(self, action: str) -> list[dict[str, Any]]:
        """The lines of turnpost's log with this action."""
        try:
            lines = [json.loads(line) for line in Path(home.log(self.root)).read_text().splitlines()]
        except FileNotFoundError:
            return []
        return [line for line in lines if line["action"] == action]

    def leftovers(self, words: str) -> list[processes.Process]:
        """The living processes of this world with these words in their command line."""
        return [one for one in processes.in_home(self.world.home) if words in one.command]

    def waiters(self) -> list[processes.Process]:
        """The living waiters of this world. A launched session names the script too, in its `--settings`."""
        return [one for one in self.leftovers("/waiter.py") if one.command.endswith("/waiter.py turnpost")]

    def requests(self, name: str) -> tuple[ModelRequest, ...]:
        """An agent's model requests, whatever session they came from."""
        return self.model.requests(name)

    def present_requests(self, name: str) -> list[ModelRequest]:
        """The requests of an agent's present session."""
        session_id = self.agent(name).session_id
        assert session_id
        return [one for one in self.model.requests(session_id) if not one.subagent_id]

    # Waiting

    def wait_state(self, name: str, *states: str, timeout: float = PATIENCE) -> None:
        """Wait until an agent is in one of these states."""
        until(lambda: self.state(name) in states, f"{name} is {' or '.join(states)}", timeout)

    def wait_idle(self, name: str, timeout: float = PATIENCE) -> None:
        """Wait until an agent is idle with a live waiter, and nothing waits or is on its way."""
        until(lambda: self._rests(name), f"{name} rests ({self.agent(name)})", timeout)

    def wait_read(self, name: str, *message_ids: str, timeout: float = PATIENCE) -> list[ReceiptView]:
        """Wait until the messages were read; their receipts."""
        return [self.wait_receipt(name, one, "read", timeout=timeout) for one in message_ids]

    def wait_receipt(
        self, name: str, message_id: str, *states: str, timeout: float = PATIENCE
    ) -> ReceiptView:
        """Wait until a receipt has one of these states; the receipt."""
        end = time.monotonic() + timeout
        while (found := self.receipt(name, message_id)).state not in states:
            assert time.monotonic() < end, (
                f"not {' or '.join(states)} within {timeout:g} s: {found}\n{self.agent(name)}"
            )
            time.sleep(0.03)
        return found

    def wait_new_process(self, name: str, old: int, timeout: float = PATIENCE) -> int:
        """Wait until an agent's session runs in another process; its pid."""

        def look() -> int:
            view = self.agent(name)
            alive = view.pid is not None and view.pid != old and view.state not in ("lost", "stopped")
            return view.pid or 0 if alive else 0

        return until(look, f"{name} runs in another process than {old}", timeout)

    # The proof

    def assert_read_once(
        self, name: str, *message_ids: str, marks: int = 1, timeout: float = PATIENCE
    ) -> list[ReceiptView]:
        """Each message is read, and stands once in the last request of the agent's present session, in this order.

        `marks` is 2 for a body over the room for context that came with a Stop block: the harness shows a block's
        reason twice. The agent must come to rest first, so that a second delivery would be seen.
        """
        found = self.wait_read(name, *message_ids, timeout=timeout)
        self.wait_idle(name, timeout)
        last = self.present_requests(name)[-1]
        counts = {one: last.count(mark(one)) for one in message_ids}
        assert counts == dict.fromkeys(message_ids, marks)
        text = "\n".join(text for _, text in last.texts)
        places = [text.index(mark(one)) for one in message_ids]
        assert places == sorted(places), "out of order"
        return found

    def _rests(self, name: str) -> bool:
        view = self.agent(name)
        folder = home.agent(self.root, self.key(name))
        on_its_way = [*files.names(folder + "/queue"), *files.names(folder + "/claimed")]
        return view.state == "idle" and not on_its_way and self.listening(name)

    def listening(self, name: str) -> bool:
        """Whether an agent's waiter lives."""
        from turnpost.core import bell

        return bell.listening(self.root, self.key(name))


def bodies(request: ModelRequest, message_ids: Iterable[str]) -> list[str]:
    """The bodies of messages as they stand in a request."""
    text = "\n".join(text for _, text in request.texts)
    found = []
    for message_id in message_ids:
        _, _, rest = text.partition(mark(message_id))
        _, _, body = rest.partition(">\n")
        found.append(body.partition("\n</message>")[0])
    return found


def _alive(pid: int) -> bool:
    from turnpost.core import procs

    return procs.token(pid) is not None
