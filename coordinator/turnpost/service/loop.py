"""The coordinator's rounds. What to do is decided by pure rules; each slow step runs in a thread of its own."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from turnpost import config
from turnpost.core import (
    audit,
    bell,
    clock,
    deliver,
    files,
    giving_up,
    home,
    mailbox,
    missions,
    outbox,
    procs,
    registry,
    reporting,
    rules,
    store,
    subagents,
    transcript,
)
from turnpost.core.archive import Keeping
from turnpost.core.errors import HarnessError, Newer
from turnpost.core.mailbox import Mailbox
from turnpost.harness import Claude
from turnpost.service.archiving import Archivist
from turnpost.service.reports import send_all
from turnpost.service.resume import Resumer, runs, wait_until
from turnpost.service.watch import Bells

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

QUIET = 5.0
"""Seconds between rounds while nothing waits: a lost bell costs no more."""
FLYING = 0.1
"""Seconds between looks at the transcripts of what is on its way."""
WAITING = 0.5
"""Seconds between looks at what cannot go yet."""
YIELD = 0.03
"""Seconds left to the agent's own waiter, which the same send wakes: both would want the agent's lock."""
HOUSEKEEPING = 30.0
"""Seconds between the beginnings, or parts, of the housekeeping."""
SHARE = 0.0005
"""The part of a processor that it may take: the more agents there are, the longer until each has been looked at."""
STRAY = 60.0
"""Seconds after which a temporary file is a killed writer's."""
UNBORN = 600.0
"""Seconds a launch may take until the session has reported in; it gives up by itself long before."""
REMEMBERED = 86_400.0
"""Seconds that an ended subagent is remembered: until then a late message is refused by the right rule."""


class Coordinator:
    """One home's coordinator. `run` returns after `stop`."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._bells = Bells(home.pending(root))
        self._jobs: dict[str, Future[float | None]] = {}
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="agent")
        self._memory: dict[str, _Memory] = {}
        self._newer: dict[str, str] = {}
        self._stopping = threading.Event()
        self._kept = 0.0
        self._chores: Iterator[None] | None = None
        self._config = config.load(root)
        keeping = Keeping(
            self._config.archive_after_days, self._config.archive_keep_days, self._config.archive_keep_bytes
        )
        self._archivist = Archivist(root, keeping, lambda: not self._stopping.is_set())
        self._archiving: Future[float | None] | None = None

    def stop(self) -> None:
        """End after the round that runs. A resume under way is finished by the next coordinator."""
        self._stopping.set()
        self._bells.rung.set()

    def run(self) -> None:
        """Rounds until `stop`."""
        self._bells.start()
        audit.write(self._root, "coordinator-start", pid=os.getpid())
        try:
            while not self._stopping.is_set():
                self._bells.rung.clear()
                pause = self.round()
                if self._bells.rung.wait(pause):
                    clock.sleep(YIELD)
        finally:
            self._bells.stop()
            self._pool.shutdown(wait=False, cancel_futures=True)
            audit.write(self._root, "coordinator-stop", pid=os.getpid())

    def round(self) -> float:
        """Look at every agent with something waiting or on its way; seconds until the next look."""
        if clock.monotonic() - self._kept > HOUSEKEEPING or not self._kept:
            self._guarded("housekeeping", self._keep_house)
            self._kept = clock.monotonic()
        pause = QUIET
        for key in files.names(home.pending(self._root)):
            pause = min(pause, self._guarded(key, lambda key=key: self._look(key)) or QUIET)  # type: ignore[misc]
        return pause

    def _look(self, key: str) -> float:
        box = Mailbox(self._root, key)
        with box.lock(1.0):
            state = store.load_state(self._root, key)
            agent = registry.load_agent(self._root, key)
            flying = box.in_flight()
            if flying and self._memory_of(key).transcript_moved(state):
                box.settle(state)
                flying = box.in_flight()
            waiting = box.waiting()
            reports = reporting.waiting(self._root, key)
            if agent is None or not (flying or waiting or reports or agent["retire"]):
                files.unlink(f"{home.pending(self._root)}/{key}")
                self._memory.pop(key, None)
                return QUIET
            spent = box.exhausted()
        if reports:
            send_all(self._root, agent)
        if spent:
            giving_up.give_up(
                self._root,
                key,
                spent,
                f"handed over {rules.DELIVERIES} times, never seen in the conversation",
            )
        if subagents.is_subagent(key):
            self._give_up_ended(key, box)
        elif state is not None:
            self._act(agent, box, state)
        return FLYING if flying or key in self._jobs else WAITING

    def _act(self, agent: Agent, box: Mailbox, state: State) -> None:
        """Start the slow step that the rules ask for, one at a time for each agent."""
        key = agent["key"]
        if self._busy(key):
            return
        self._jobs.pop(key, None)
        now, tick = clock.now(), clock.monotonic()
        memory = self._memory_of(key)
        alive = procs.alive(state["pid"], state["token"])
        doing = rules.effective(state, now, alive)
        memory.see(doing, tick)
        listening = doing == "idle" and bell.listening(self._root, key)
        over = missions.over(self._root, agent)
        # A mission's end is never lifted: mail behind it waits for nobody, held and quiet mail neither.
        pressing, held = (bool(box.waiting()), False) if over else (box.pressing(state), box.held())
        step = rules.next_step(
            state, doing, pressing=pressing, held=held, listening=listening, background=agent["background"],
            retire=bool(agent["retire"]), attempts=self._config.resume_attempts, lost_for=memory.lost_for(tick), checked_for=memory.checked_for(tick), now=now,
            orphan_for=memory.orphan_for(state, tick),
        )  # fmt: skip
        step = rules.without_resume(step) if over else step
        if step == "ring":
            bell.ring_waiter(self._root, key)
        elif step == "give-up":
            resume = state.get("resume")
            failed = f"could not be resumed: {resume['error'] if resume else 'unknown'}"
            self._give_up(key, box, f"the mission {over['name']} is over" if over else failed)
        elif step != "none":
            work = {
                "retire": self._retire,
                "resume": self._resume,
                "restart": self._restart,
                "check": self._check,
            }[step]
            if step == "check":
                memory.checked(tick)
            self._begin(key, work)

    def _busy(self, key: str) -> bool:
        job = self._jobs.get(key)
        return job is not None and not job.done()

    def _begin(self, key: str, work: Callable[[str], None]) -> None:
        self._jobs[key] = self._pool.submit(self._guarded, key, lambda: work(key))

    def _resume(self, key: str) -> None:
        Resumer(self._root, self._config).resume(key)
        self._bells.rung.set()

    def _restart(self, key: str) -> None:
        audit.write(self._root, "deaf", agent=key)
        Resumer(self._root, self._config).resume(key, stop_first=True)
        self._bells.rung.set()

    def _retire(self, key: str) -> None:
        """End the sessions an agent has left for a copy of itself."""
        agent = registry.load_agent(self._root, key)
        claude = Claude.find()
        for session_id in agent["retire"] if agent else []:
            claude.stop(session_id)
            end = clock.monotonic() + 10.0
            gone = wait_until(lambda sid=session_id: not runs(claude, sid), end, pause=0.25)  # type: ignore[misc]
            audit.write(self._root, "retire", agent=key, session=session_id, gone=gone)
            if gone:
                with files.Lock(self._root + "/registry.lock", 5.0):
                    fresh = registry.load_agent(self._root, key)
                    if fresh is not None:
                        fresh["retire"] = [sid for sid in fresh["retire"] if sid != session_id]
                        registry.save_agent(self._root, fresh)

    def _check(self, key: str) -> None:
        """Ask Claude Code what a session really does: Esc, a dialog and a vanished process fire no hook."""
        before = store.load_state(self._root, key)
        if before is None:
            return
        session = next((s for s in Claude.find().listing() if s.session_id == before["session_id"]), None)
        doing = rules.listed(session.status) if session is not None and session.pid else None
        if doing is None or doing == before["doing"]:
            return
        with Mailbox(self._root, key).lock(5.0):
            state = store.load_state(self._root, key)
            if state is None or state != before:
                return  # a hook spoke meanwhile, and knows better
            deliver.note_blocked(self._root, key, doing)
            if doing == "blocked":
                # A wake that waits behind a dialog: its prompt hook has to record that the turn begins after all.
                files.unlink(home.woken(self._root, key))
            else:
                state.pop("due", None)  # a turn that ended without a Stop has no last words
            store.save_state(self._root, key, store.change_state(state, doing))
        if doing == "blocked":
            audit.write(self._root, "found-blocked", agent=key, session=before["session_id"])
            return
        audit.write(self._root, "found-idle", agent=key, session=before["session_id"])
        bell.ring_waiter(self._root, key)

    def _give_up(self, key: str, box: Mailbox, reason: str) -> None:
        with box.lock(5.0):
            # What entered a conversation that cannot be brought back is not read by anybody any more either.
            ids = [receipt["id"] for receipt in box.waiting_receipts()]
            state = store.load_state(self._root, key)
            if state is not None:
                state["resume"] = None
                store.save_state(self._root, key, state)
        giving_up.give_up(self._root, key, ids, reason)

    def _give_up_ended(self, key: str, box: Mailbox) -> None:
        """A subagent is resumed by nobody: what waits for one that has ended, or went with its session, is given up."""
        with box.lock(1.0):
            ended = not subagents.lives(self._root, key)
            waiting = [mailbox.entry_id(name) for name in box.waiting()] if ended else []
        if waiting:
            giving_up.give_up(self._root, key, waiting, subagents.ENDED)

    def _keep_house(self) -> None:
        """Finish sends that were killed, and go on with the housekeeping; at the start with all of it."""
        self._guarded("outbox", self._recover)
        self._guarded("archive", self._archive)
        end = clock.processor() + (HOUSEKEEPING * SHARE if self._kept else math.inf)
        chores, self._chores = self._chores or self._housekeeping(), None
        for _ in chores:
            if clock.processor() >= end:
                self._chores = chores  # the rest next time
                return

    def _recover(self) -> None:
        outbox.recover(self._root)

    def _housekeeping(self) -> Iterator[None]:
        """Clear away what killed processes left, and look at every agent once: the bells are only hints. In small parts."""
        self._guarded("home", self._clear_away)
        known: list[Agent] = []
        for key in files.names(home.agents(self._root)):
            self._guarded(key, lambda key=key: self._keep(key, known))  # type: ignore[misc]
            yield
        registry.forget_names(self._root, known)

    def _clear_away(self) -> None:
        for folder in (self._root, *(f"{self._root}/{name}" for name in home.SHARED)):
            files.sweep(folder, STRAY)
        registry.forget_processes(self._root)

    def _archive(self) -> None:
        if (self._archiving is None or self._archiving.done()) and self._archivist.due():
            self._archiving = self._pool.submit(self._guarded, "archive", self._archivist.step)

    def _keep(self, key: str, known: list[Agent]) -> None:
        box = Mailbox(self._root, key)
        agent = registry.load_agent(self._root, key)
        if agent is not None:
            known.append(agent)
            self._forget_unborn(agent)
        elif not files.exists(f"{box.folder}/agent.json"):
            registry.forget_unmade(self._root, key)
        if key != registry.PERSON and (
            box.waiting()
            or box.in_flight()
            or reporting.waiting(self._root, key)
            or (agent is not None and agent["retire"])
        ):
            bell.announce(self._root, key)
        elif not self._busy(key) and self._memory_of(key).fell_silent(store.load_state(self._root, key)):
            self._begin(key, self._check)
        self._keep_subagents(key)
        for folder in (
            box.folder,
            box.queue,
            box.claimed,
            home.reports(self._root, key),
            box.folder + "/given-up",
        ):
            files.sweep(folder, STRAY)
        giving_up.finish(self._root, key)
        bell.sweep(self._root, key)

    def _forget_unborn(self, agent: Agent) -> None:
        """Free the name of an agent whose launch was killed before it had a session, and tell those who wrote to it."""
        born = agent["kind"] != "managed" or agent["sessions"] or clock.now() - agent["created"] < UNBORN
        if born or store.load_state(self._root, agent["key"]) is not None:
            return
        box = Mailbox(self._root, agent["key"])
        if waiting := [mailbox.entry_id(name) for name in box.waiting()]:
            giving_up.give_up(
                self._root, agent["key"], waiting, f"the launch of {agent['name']} was broken off"
            )
        with files.Lock(self._root + "/registry.lock", 5.0), box.lock(1.0):
            if not box.waiting():  # else somebody wrote just now, and is told the next time
                registry.forget(self._root, agent)

    def _keep_subagents(self, owner: str) -> None:
        """Look at an agent's subagents once, and forget those that ended long ago."""
        for key in subagents.every(self._root, owner):
            box = Mailbox(self._root, key)
            for folder in (box.folder, box.queue, box.claimed, box.folder + "/given-up"):
                files.sweep(folder, STRAY)
            giving_up.finish(self._root, key)
            if box.waiting() or box.in_flight():
                bell.announce(self._root, key)
            elif not subagents.lives(self._root, key):
                subagents.forget(self._root, key, older_than=REMEMBERED)

    def _memory_of(self, key: str) -> _Memory:
        return self._memory.setdefault(key, _Memory())

    def _guarded(self, what: str, work: Callable[[], float | None]) -> float | None:
        """One agent's trouble is logged and leaves the others alone."""
        try:
            return work()
        except Newer as error:
            if self._newer.get(what) != error.message:  # it stays so: told once
                self._newer[what] = error.message
                audit.write(self._root, "trouble", about=what, error=error.message, kind="Newer")
        except Exception as error:  # noqa: BLE001 - the last guard: one agent's bad record must not stop everybody's mail
            audit.write(self._root, "trouble", about=what, error=str(error), kind=type(error).__name__)
            if isinstance(error, HarnessError):  # no claude, or a broken one: ask less often
                self._memory_of(what).checked(clock.monotonic())
        return WAITING


class _Memory:
    """What the coordinator remembers of an agent between rounds; losing it costs only time. `now` is `clock.monotonic`'s."""

    def __init__(self) -> None:
        self._sizes: tuple[object, ...] = ()
        self._settled = 0.0
        self._lost_since: float | None = None
        self._checks = 0
        self._checked_at: float | None = None
        self._resume: tuple[float, float] | None = None
        self._silent: tuple[tuple[float, int], float] | None = None

    def transcript_moved(self, state: State | None) -> bool:
        """Whether a transcript grew since the last look, or the last look is old enough for a lease to have ended."""
        now = clock.monotonic()
        sizes = (transcript.size(state["transcript"]), state["since"], state["session_id"]) if state else ()
        if sizes != self._sizes or now - self._settled > 1.0:
            self._sizes, self._settled = sizes, now
            return True
        return False

    def fell_silent(self, state: State | None) -> bool:
        """Whether a session that works by its hooks has said nothing for long; told once for each silence."""
        if state is None or state["doing"] not in ("working", "blocked"):
            self._silent = None
            return False
        now, last = clock.monotonic(), (state["since"], transcript.size(state["transcript"]))
        if self._silent is None or self._silent[0] != last:
            self._silent = (last, now)
            return False
        over = now - self._silent[1] > rules.SILENT
        if over:
            self._silent = (last, math.inf)
        return over

    def see(self, doing: str, now: float) -> None:
        """Note since when an agent is lost."""
        self._lost_since = (self._lost_since or now) if doing == "lost" else None

    def lost_for(self, now: float) -> float:
        """Seconds the agent has been lost."""
        return now - self._lost_since if self._lost_since is not None else 0.0

    def orphan_for(self, state: State, now: float) -> float:
        """Seconds since the command of a resume under way was last seen alive, or its note first seen."""
        resume = state.get("resume")
        if not resume or not resume["pending"]:
            return 0.0
        known = self._resume is not None and self._resume[0] == resume["at"]
        if not known or procs.alive(resume.get("pid"), resume.get("token")):
            self._resume = (resume["at"], now)
        return now - self._resume[1] if self._resume else 0.0

    def checked(self, now: float) -> None:
        """A check was made."""
        self._checks += 1
        self._checked_at = now

    def checked_for(self, now: float) -> float:
        """Seconds since the last check, shrunk by how many there were: each waits longer for the next."""
        return (
            (now - self._checked_at) / min(2 ** (self._checks - 1), 16)
            if self._checked_at is not None
            else 1e9
        )
