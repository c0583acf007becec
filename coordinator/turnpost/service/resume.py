"""Bringing a stopped agent back: wait until it is gone, resume it from its main checkout, confirm that it lives.

Exit code 0 of `--bg --resume` proves nothing, so the proof is the session's own hooks: SessionStart links it and
UserPromptSubmit takes the nudge.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from turnpost.config import Config
from turnpost.core import clock, home, procs, registry, render, rules, store
from turnpost.core.errors import HarnessError, LockBusy
from turnpost.core.mailbox import Mailbox
from turnpost.harness import Claude
from turnpost.service.log import Log

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

GONE_SECONDS = 20.0
"""How long an ending session may still count as running; measured 1 to 3 s."""
RECENT = 6.0
"""Seconds after its end in which a session may still count as running, so that the listing must be asked."""


class Resumer:
    """Resumes one agent. Two coordinators, or a coordinator and a command, make one resume: a lock and a second look decide."""

    def __init__(self, root: str, config: Config, log: Log) -> None:
        self._root = root
        self._config = config
        self._log = log

    def resume(self, key: str, *, stop_first: bool = False) -> bool:
        """Resume the agent if that is still wanted; whether it runs now. With `stop_first` a deaf session is ended before."""
        lock = FileLock(home.agent(self._root, key) + "/resume.lock", mode=0o600)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        try:
            begun = self._begin(key, stop_first)
            return begun is not None and self._attempt(key, *begun, stop_first=stop_first)
        finally:
            lock.release()

    def _begin(self, key: str, stop_first: bool) -> tuple[Agent, State] | None:
        """The second look, under the agent's lock, and the note that a resume is under way."""
        box = Mailbox(self._root, key)
        with box.lock(5.0):
            agent, state = registry.load_agent(self._root, key), store.load_state(self._root, key)
            if agent is None or state is None or box.held() or not box.pressing(state):
                return None
            alive = procs.alive(state["pid"], state["token"])
            doing = rules.effective(state, clock.now(), alive)
            if not (doing in ("stopped", "lost") or (stop_first and doing == "idle")):
                return None
            tries = (state.get("resume") or {"tries": 0})["tries"]
            state["resume"] = {
                "at": clock.now(),
                "tries": tries + 1,
                "next": 0.0,
                "error": None,
                "pending": True,
            }
            store.save_state(self._root, key, state)
            return agent, state

    def _attempt(self, key: str, agent: Agent, state: State, *, stop_first: bool) -> bool:
        error = "no folder to resume it from is left"
        try:
            claude = Claude.find()
            if stop_first:
                claude.stop(state["session_id"])
            _wait_gone(claude, state, stop_first)
            for folder in folders(agent, state):
                error = self._from(claude, key, state, folder)
                if not error:
                    return True
        except HarnessError as failure:
            error = failure.message
        self._failed(key, error)
        return False

    def _from(self, claude: Claude, key: str, state: State, folder: str) -> str:
        """Try one folder; the error, empty when the agent lives."""
        resume = state.get("resume")
        begun = resume["at"] if resume else clock.now()
        started = claude.resume(state["session_id"], render.NUDGE, cwd=folder)
        self._log.write("resume", agent=key, session=state["session_id"], cwd=folder, copy=started.copy)
        end = clock.monotonic() + self._config.resume_confirm_seconds
        if wait_until(lambda: self._lives(key, begun), end):
            return ""
        # It may run without our hooks, or hang: left alone, the next try would make a copy of it.
        claude.stop(started.short_id)
        return f"no sign of life within {self._config.resume_confirm_seconds:g} s from {folder}; Claude Code said: {started.output[:200]}"

    def _lives(self, key: str, begun: float) -> bool:
        state = store.load_state(self._root, key)
        if state is None or state["since"] < begun or state["doing"] in ("stopped", "starting"):
            return False
        return procs.alive(state["pid"], state["token"])

    def _failed(self, key: str, error: str) -> None:
        try:
            with Mailbox(self._root, key).lock(5.0):
                state = store.load_state(self._root, key)
                resume = state.get("resume") if state else None
                if state is None or resume is None:
                    return
                pause = rules.backoff(resume["tries"], self._config.resume_backoff_seconds)
                resume.update({"pending": False, "error": error, "next": clock.now() + pause})
                store.save_state(self._root, key, state)
        except LockBusy:
            pass  # the pending note runs out by itself
        self._log.write("resume-failed", agent=key, error=error)


def _wait_gone(claude: Claude, state: State, stop_first: bool) -> None:
    """Wait until neither a process nor Claude Code's list has the session. Long after its end the record is enough."""
    fresh = stop_first or state["doing"] != "stopped" or clock.now() - state["since"] < RECENT
    if not fresh:
        return
    end = clock.monotonic() + GONE_SECONDS
    if not wait_until(lambda: not procs.alive(state["pid"], state["token"]), end):
        raise HarnessError(f"the session still runs as process {state['pid']} after {GONE_SECONDS:g} s")
    if not wait_until(lambda: not runs(claude, state["session_id"]), end, pause=0.25):
        raise HarnessError(f"Claude Code still lists the session as running after {GONE_SECONDS:g} s")


def runs(claude: Claude, session_id: str) -> bool:
    """Whether Claude Code lists a process for the session."""
    return any(session.session_id == session_id and session.pid for session in claude.listing())


def folders(agent: Agent, state: State) -> list[str]:
    """Where a resume may work: the main checkout first, the other known folders after it. Folders that are gone are left out."""
    known = [agent["root"], registry.main_checkout(agent["cwd"]), agent["cwd"], state["cwd"]]
    return [folder for folder in dict.fromkeys(known) if folder and os.path.isdir(folder)]


def wait_until(condition: Callable[[], bool], end: float, pause: float = 0.02) -> bool:
    """Whether a condition came true before the monotonic moment `end`."""
    while not condition():
        if clock.monotonic() >= end:
            return False
        clock.sleep(pause)
    return True
