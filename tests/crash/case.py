"""A home that is hit, restarted and looked at: what every crash scenario has in common."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from tests.actions.fakes import PERSON
from tests.crash import points
from tests.crash.points import Blow, Outcome
from tests.hooks.inside import InsideSession
from turnpost.actions import documents, sending
from turnpost.core import clock, mailbox, procs, registry, rules, store, text
from turnpost.core.mailbox import Mailbox
from turnpost.core.records import TYPE_CHECKING
from turnpost.service.loop import Coordinator

if TYPE_CHECKING:
    from turnpost.core.records import Agent

LAST = "the last"
"""What is sent after the restart: a lock that is stuck would be in its way."""
AFTER = 40.0
"""Seconds between the blow and the restart: leases have ended."""
LATER = 120.0
"""Seconds after which nothing may be left lying about."""
BOUNDED = ("state/agents/ID/waiter-N-N.fifo", "config/.claude.json.lock")
"""What a kill may leave, at most once for each agent or file: the next of its kind takes it away."""
_CLAUDE = """#!/bin/sh
case "$1" in
agents) echo "[]" ;;
--bg) exec {python} "$0.py" "$@" ;;
esac
"""
_STARTS = """import sys
sys.path[:0] = {path!r}
from tests.crash.claude import main
main({folder!r}, sys.argv[1:])
"""
_WORDS = (
    (re.compile(r"(msg|ag)-[0-9A-Z]{26}"), "ID"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "SESSION"),
    (re.compile(r"\b[0-9a-f]{24,64}\b"), "DIGEST"),
    (re.compile(r"\d+"), "N"),
)


class Case:
    """A home with agents, always under the same path: prepared once, and put back for each blow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "case"
        self.root = str(self.folder / "state")
        self.sent: list[tuple[str, tuple[str, ...]]] = []
        self.ids: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        self.talks: dict[str, InsideSession] = {}
        self._ahead = 0.0
        self._template = folder / "template"
        self._pids: dict[str, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sessions: dict[str, str] = {}
        self.project = self.folder / "project"
        self.project.mkdir(parents=True)
        registry.prepare(self.root)
        registry.person(self.root)

    @property
    def ahead(self) -> float:
        """Seconds that this home's clock is ahead of the real one."""
        return self._ahead

    @ahead.setter
    def ahead(self, seconds: float) -> None:
        self._ahead = seconds
        if (self.folder / "claude-code").exists():
            (self.folder / "ahead").write_text(str(seconds))

    # Preparing.

    def start(self, *names: str) -> None:
        """Sessions start, of agents of these names, and are idle."""
        for name in names:
            self._pids[name] = self._spawn()
            self.talks[name] = InsideSession(
                self.root, self.folder / "claude" / name, str(uuid.uuid4()), pid=self._pids[name]
            )
            self.talks[name].hook("SessionStart", source="startup", session_title=name)
            self.agents[name] = self.talks[name].key

    def stop(self, name: str) -> None:
        """A session ends as it should."""
        self.talks[name].hook("SessionEnd", reason="other")
        self.kill(name)

    def kill(self, name: str) -> None:
        """A session ends by kill -9."""
        process = next(one for one in self._processes if one.pid == self.talks[name].pid)
        process.kill()
        process.wait()

    def new_process(self, name: str, *words: str) -> None:
        """From now on the session runs in another process, which was started with these words."""
        self._pids[name] = self.talks[name].pid = self._spawn(*words)

    def agent(self, name: str) -> Agent:
        return registry.find(self.root, name)

    def box(self, name: str) -> Mailbox:
        return Mailbox(self.root, self.agent(name)["key"] if name != "person" else registry.PERSON)

    def send(self, body: str, *names: str, **more: Any) -> str:
        """The person sends, before the blow; the id."""
        self.sent.append((body, names))
        self.ids[body] = sending.send(self.root, names, body, speaker=PERSON, **more).id
        return self.ids[body]

    def claude(self) -> None:
        """Let `claude` be a program that resumes sessions as the real one does."""
        program = self.folder / "claude-code"
        program.write_text(_CLAUDE.format(python=sys.executable))
        Path(f"{program}.py").write_text(_STARTS.format(path=sys.path, folder=str(self.folder)))
        program.chmod(0o700)
        self.ahead = self.ahead

    def freeze(self) -> None:
        """What is there now is what each blow finds."""
        self._sessions = {name: talk.session_id for name, talk in self.talks.items()}
        shutil.copytree(self.folder, self._template, symlinks=True)

    def restore(self) -> None:
        self.end_claude()
        shutil.rmtree(self.folder)
        shutil.copytree(self._template, self.folder, symlinks=True)
        self.ahead = 0.0
        self.talks = {
            name: InsideSession(self.root, self.folder / "claude" / name, session_id, pid=self._pids[name])
            for name, session_id in self._sessions.items()
        }

    # After the blow.

    @contextmanager
    def lives(self) -> Iterator[None]:
        """The time of this home, and a `claude` that is none of the machine's."""
        real = clock.now

        def now() -> float:
            return real() + self.ahead

        environment = {
            "TURNPOST_HOME": self.root, "TURNPOST_CLAUDE": str(self.folder / "claude-code"),
            "CLAUDE_CONFIG_DIR": str(self.folder / "config"), "HOME": str(self.folder),
        }  # fmt: skip
        with (
            mock.patch.object(clock, "now", now),
            mock.patch.object(os, "fsync", return_value=None),  # a kill loses nothing that was written
            mock.patch.dict(os.environ, environment),
            mock.patch("turnpost.actions.courier.ensure", return_value=()),
        ):
            yield

    def restart(self, seconds: float = AFTER) -> None:
        """A new coordinator does what is to be done, some time later."""
        self.ahead += seconds
        coordinator = Coordinator(self.root)
        for _ in range(5):
            coordinator.round()
            for job in list(coordinator._jobs.values()):
                job.result(points.SECONDS)
            self.ahead += 10.0
        coordinator._pool.shutdown()

    def revive(self, name: str) -> InsideSession:
        """The agent's present session; one that has ended is resumed."""
        talk, state = self.talks[name], store.load_state(self.root, self.agent(name)["key"])
        assert state is not None
        if state["doing"] != "stopped" and procs.alive(state["pid"], state["token"]):
            talk.session_id, talk.pid = state["session_id"], state["pid"]
        elif not procs.token(talk.pid):
            talk.pid = self._spawn()
            talk.start("resume")
        return talk

    def read_all(self) -> None:
        """All sessions take what waits, until nothing is left."""
        for name in self.talks:
            for _ in range(10):
                if not self.box(name).waiting() and not self.box(name).in_flight():
                    break
                self.ahead += 3 * rules.LEASE
                self.revive(name).turn()

    def read(self, name: str) -> list[str]:
        """What the agent's model has read, in its order."""
        messages = [mailbox.load_message(self.root, one) for one in self.talks[name].has_read()]
        return [message["body"] for message in messages if message is not None]

    def files(self) -> Counter[str]:
        """The names of all files and folders of the home and of the project, up to ids and numbers."""
        found: Counter[str] = Counter()
        for top in (self.root, str(self.project), str(self.folder / "config")):
            for folder, folders, names in os.walk(top):
                for name in [*folders, *names]:
                    word = f"{folder}/{name}".removeprefix(str(self.folder) + "/")
                    for pattern, instead in _WORDS:
                        word = pattern.sub(instead, word)
                    found[word] += 1
        return found

    def wait_for_claude(self) -> None:
        """Let the `claude` that a killed process left behind end."""
        program = self.folder / "claude-code"
        end = clock.monotonic() + 20.0
        while program.exists() and _runs(os.fsencode(program), os.fsencode(program) + b".py"):
            assert clock.monotonic() < end, "a fake claude hangs"
            time.sleep(0.01)

    def end_claude(self) -> None:
        """End the sessions that `claude` started."""
        self.wait_for_claude()
        for file in self.folder.glob("session-*"):
            try:
                os.kill(int(file.name.partition("-")[2]), signal.SIGKILL)
            except ProcessLookupError:
                pass
            file.unlink()

    def _spawn(self, *words: str) -> int:
        sleep = ["/bin/sh", "-c", "read nothing", "claude", *words]
        self._processes.append(subprocess.Popen(sleep, stdin=subprocess.PIPE))
        while procs.command(self._processes[-1].pid) != sleep:  # not that program yet
            time.sleep(0.001)
        return self._processes[-1].pid

    def close(self) -> None:
        self.end_claude()
        for process in self._processes:
            process.kill()
            process.communicate()


def _runs(*programs: bytes) -> bool:
    for pid in os.listdir("/proc"):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0") if pid.isdigit() else []
            if set(programs) & set(words):
                return True
        except OSError:
            continue
    return False


def nothing(*_: Any) -> None:
    """No step here."""


@dataclass(frozen=True)
class Scenario:
    """One thing that a process does and at each of whose points it is hit.

    `prepare` makes the home, `act` is done in a process of its own, `show` is what Claude Code does with its result, `again`
    is what happens next whatever became of it: it is done once more. `adds` and `takes` are the messages that it brings or
    takes back, for all their recipients or for none. `last`: who gets a last message, all by default. `leaves`: what is there
    when it was not done, and gone when it was.
    """

    name: str
    prepare: Callable[[Case], object]
    act: Callable[[Case], Any]
    show: Callable[[Case, Any], object] = nothing
    again: Callable[[Case], object] = nothing
    check: Callable[[Case, Outcome], object] = nothing
    adds: dict[str, list[str]] = field(default_factory=dict)
    takes: dict[str, list[str]] = field(default_factory=dict)
    last: tuple[str, ...] | None = None
    leaves: tuple[str, ...] = ()
    how: Literal["core", "plain", "slow"] = (
        "plain"  # how many blows by default; every kill of what is at the core
    )


class Run:
    """A scenario under way: an undisturbed run first, which finds the points, then one for each blow."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.case = Case(folder)
        try:
            with self.case.lives():
                scenario.prepare(self.case)
            self.case.freeze()
            self._files: Counter[str] = Counter()
            self.found = self.blow("none", 0).found
        except BaseException:
            self.case.close()
            raise

    def places(self, blow: Blow) -> list[int]:
        """Where a blow can be dealt."""
        return [at for at, point in enumerate(self.found, 1) if points.concerns(blow, point)]

    def blow(self, blow: Blow, at: int) -> Outcome:
        case, scenario = self.case, self.scenario
        case.restore()
        with case.lives():
            outcome = points.struck(lambda: scenario.act(case), blow, at)
            assert not outcome.unknown, (
                f"these calls are neither counted nor known as harmless: {outcome.unknown}"
            )
            if blow == "none":
                assert outcome.error is None, outcome.trace
            case.wait_for_claude()
            if blow == "clock":
                case.ahead += points.JUMP
            if outcome.error is not None:
                _clear(outcome)
            if not outcome.killed and outcome.error is None:
                scenario.show(case, outcome.result)
            scenario.again(case)
            case.restart()
            last = scenario.last if scenario.last is not None else tuple(case.talks)
            for name in last:  # one each: a mission that is over has no mail for others
                sending.send(case.root, [name], LAST, speaker=PERSON)
            case.read_all()
            case.restart(LATER)
            self._mail(outcome, last)
            scenario.check(case, outcome)
            self._nothing_left(blow)
        return outcome

    def _mail(self, outcome: Outcome, last: tuple[str, ...]) -> None:
        """Nothing lost, nothing twice, in order; what the act changes it has changed for all or for none."""
        case, scenario = self.case, self.scenario
        before: dict[str, list[str]] = {}
        after: dict[str, list[str]] = {}
        for name in case.talks:
            had = [body for body, names in case.sent if name in names]
            end = [LAST] if name in last else []
            before[name] = [*had, *end]
            kept = [body for body in had if body not in scenario.takes.get(name, [])]
            after[name] = [*kept, *scenario.adds.get(name, []), *end]
        got = {name: case.read(name) for name in case.talks}
        done = not outcome.killed and outcome.error is None
        assert got in ([after] if done else [before, after]), f"{outcome}\n{before=}\n{after=}\n{got=}"
        for name in case.talks:
            assert not case.box(name).waiting()
            assert not case.box(name).in_flight()

    def _nothing_left(self, blow: Blow) -> None:
        files = self.case.files()
        if blow == "none":
            self._files = files
        # Midnight may lie between two messages, and an hour before the one that is sent after it.
        days = Counter({"state/messages/N-N-N": 1})
        room = (
            Counter({name: len(self.case.agents) for name in BOUNDED}) + Counter(self.scenario.leaves) + days
        )
        more = {
            name: count - self._files[name]
            for name, count in files.items()
            if count > self._files[name] + room[name]
        }
        assert not more, f"left lying about: {more}"


def _clear(outcome: Outcome) -> None:
    """A failure is told in one line, and is no bug."""
    assert outcome.error is not None
    known = documents.known(outcome.error)
    assert known.rule != "bug", outcome.trace
    assert "\n" not in text.visible(known.message)
