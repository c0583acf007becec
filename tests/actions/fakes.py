"""A home with agents whose sessions are plain processes, and whose conversations are written by the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from turnpost.core import attach, clock, mailbox, missions, registry, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Boundary, Doing, Mission

PERSON = Speaker(registry.unsaved_person())
FOREIGN = Speaker(registry.unsaved_person(), 4711)


class FakeHome:
    """A spool, and the agents a test puts into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = str(folder / "home")
        self._last: dict[str, str] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def agent(
        self,
        name: str,
        doing: Doing = "idle",
        *,
        parent: Agent | None = None,
        background: bool = True,
        ago: float = 0.0,
    ) -> Agent:
        """An agent whose session runs (unless it is stopped) and has done `doing` for `ago` seconds."""
        process = subprocess.Popen(["sleep", "300"])
        self._processes.append(process)
        transcript = self.folder / f"{name}.jsonl"
        transcript.touch()
        start = attach.Start(
            str(uuid.uuid4()), "startup", process.pid, name=name, cwd=str(self.folder), transcript=str(transcript),
            background=background,
        )  # fmt: skip
        agent = attach.attach(self.root, start)
        agent["parent"] = parent["key"] if parent else None
        registry.save_agent(self.root, agent)
        state = store.load_state(self.root, agent["key"])
        assert state is not None
        state["doing"] = doing
        state["since"] = clock.now() - ago
        store.save_state(self.root, agent["key"], state)
        return agent

    def claude(self, source: str) -> str:
        """Make a `claude` of a Python program, in whose text `{folder}` is this folder; the path of it."""
        program = self.folder / "claude"
        program.write_text(f"#!{sys.executable}\n{source.format(folder=str(self.folder))}")
        program.chmod(0o700)
        return str(program)

    def team(self, *agents: Agent, name: str = "team", coordinator: Agent | None = None) -> Mission:
        """A running mission of these agents."""
        made: Mission = {
            "v": 1, "name": name, "state": "running", "coordinator": coordinator["key"] if coordinator else None,
            "goal": None, "started": clock.now(), "ended": None, "reason": None,
        }  # fmt: skip
        registry.prepare(self.root)
        assert missions.create(self.root, made)
        for agent in agents:
            agent["mission"] = name
            registry.save_agent(self.root, agent)
        return made

    def policy(self, words: str) -> None:
        """Write `policy.toml`."""
        registry.prepare(self.root)
        Path(self.root, "policy.toml").write_text(words)

    def plan_mode(self, agent: Agent, mode: str = "plan") -> None:
        """The session's hooks have seen this permission mode."""
        state = store.load_state(self.root, agent["key"])
        assert state is not None
        state["mode"] = mode
        store.save_state(self.root, agent["key"], state)

    def speaker(self, agent: Agent) -> Speaker:
        return Speaker(agent)

    def box(self, agent: Agent) -> Mailbox:
        return Mailbox(self.root, agent["key"])

    def claim(self, agent: Agent, boundary: Boundary = "rewake") -> list[str]:
        """Take what waits, as a hook does; the rendered blocks."""
        state = store.load_state(self.root, agent["key"])
        assert state is not None
        box = self.box(agent)
        with box.lock():
            claim = mailbox.make_claim(state["pid"], state["transcript"])
            return box.claim(
                boundary, 1 << 20, claim, recipient=agent["name"], session_id=state["session_id"]
            )

    def enters(self, agent: Agent, blocks: list[str], *, answered: bool = True) -> None:
        """The blocks stand in the conversation, and the model has gone on after them."""
        entries = [{"type": "user", "message": {"content": block}} for block in blocks]
        if answered:
            entries.append({"type": "assistant", "message": {"content": "done"}})
        with (self.folder / f"{agent['name']}.jsonl").open("a") as file:
            for entry in entries:
                before, self._last[agent["key"]] = self._last.get(agent["key"]), str(uuid.uuid4())
                chain = {"uuid": self._last[agent["key"]], "parentUuid": before}
                file.write(json.dumps({**entry, **chain}) + "\n")

    def tree(self) -> dict[str, bytes | None]:
        """Every file and folder of the home, to be compared; not the log, in which refusals are told too."""
        found: dict[str, bytes | None] = {}
        for folder, folders, names in os.walk(self.root):
            found.update({os.path.join(folder, name): None for name in folders})
            for name in (name for name in names if name != "turnpost.log"):
                path = Path(folder, name)
                found[str(path)] = path.read_bytes()
        return found

    def kill(self, agent: Agent) -> None:
        """The session is gone without a word."""
        state = store.load_state(self.root, agent["key"])
        process = next(p for p in self._processes if state is not None and p.pid == state["pid"])
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
