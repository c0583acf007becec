"""Bringing a stopped agent back: wait until it is gone, resume it from its main checkout, confirm that it lives.

Exit code 0 of `--bg --resume` proves nothing, so the proof is the session's own hooks: SessionStart links it and
UserPromptSubmit takes the nudge.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from turnpost.config import Config
from turnpost.core import (
    audit,
    bell,
    clock,
    files,
    fork,
    home,
    missions,
    procs,
    registry,
    render,
    rules,
    store,
    text,
)
from turnpost.core.errors import HarnessError, LockBusy
from turnpost.core.mailbox import Mailbox
from turnpost.harness import Claude

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

NO_HOOKS = (
    "turnpost's hooks are not installed for {folder} any more, so a resume would bring it nothing; "
    "`turnpost install --project {folder}`"
)
GONE_SECONDS = 20.0
"""Seconds an ending session's process may take; while it runs a resume makes a copy. Measured under 1 s."""


class Resumer:
    """Resumes one agent. Two coordinators, or a coordinator and a command, make one resume: a lock and a second look decide."""

    def __init__(self, root: str, config: Config) -> None:
        self._root = root
        self._config = config

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
            if missions.over(self._root, agent) is not None:
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
            box.remind(box.unanswered(state))
            return agent, state

    def _attempt(self, key: str, agent: Agent, state: State, *, stop_first: bool) -> bool:
        error = "no folder to resume it from is left"
        try:
            claude = Claude.find()
            if without_hooks(agent, state):
                raise HarnessError(NO_HOOKS.format(folder=state["cwd"] or agent["cwd"]))
            if stop_first or state["doing"] != "stopped":
                # Also for a session that was killed: its service may be about to bring it back beside ours.
                claude.stop(state["session_id"])
            if not wait_until(
                lambda: not procs.alive(state["pid"], state["token"]), clock.monotonic() + GONE_SECONDS
            ):
                raise HarnessError(
                    f"the session still runs as process {state['pid']} after {GONE_SECONDS:g} s"
                )
            for folder in folders(agent, state, claude):
                error = self._from(claude, key, state, folder)
                if not error:
                    return True
        except HarnessError as failure:
            error = failure.message
        self._failed(key, error)
        return False

    def _from(self, claude: Claude, key: str, state: State, folder: str) -> str:
        """Try one folder; the error, empty when the agent lives."""
        started = claude.resume(
            state["session_id"], render.NUDGE, cwd=folder, on_start=lambda pid: self._note_command(key, pid)
        )
        audit.write(
            self._root, "resume", agent=key, session=state["session_id"], cwd=folder, copy=started.copy
        )
        end = clock.monotonic() + self._config.resume_confirm_seconds
        if started.copy:
            self._adopt(claude, key, started.copy, state["session_id"], end)
        if wait_until(lambda: self._lives(key, state), end):
            return ""
        # It may run without our hooks, or hang: left alone, the next try would make a copy of it.
        claude.stop(started.short_id)
        return f"no sign of life within {self._config.resume_confirm_seconds:g} s from {folder}; Claude Code said: {text.one_line(started.output)}"

    def _note_command(self, key: str, pid: int) -> None:
        """Note which process resumes the agent: it goes on when the coordinator is killed."""
        with Mailbox(self._root, key).lock(5.0):
            state = store.load_state(self._root, key)
            resume = state.get("resume") if state else None
            if state is not None and resume and resume["pending"]:
                resume.update({"pid": pid, "token": procs.token(pid)})
                store.save_state(self._root, key, state)

    def _adopt(self, claude: Claude, key: str, short_id: str, original: str, end: float) -> None:
        """Relink to the copy that Claude Code made after all, the other session is retired; or end the copy.

        It is ended when somebody resumed the original meanwhile: that one keeps the name, and its hooks take the mail.
        """
        found: list[str] = []

        def registered() -> bool:
            found.extend(name for name in files.names(self._root + "/sessions") if name.startswith(short_id))
            return bool(found)

        if not wait_until(registered, end):
            return
        copy = registry.key_of_session(self._root, found[0])
        if copy is None:
            return
        adopted = copy == key or fork.adopt(self._root, key, copy)
        ended = not adopted and fork.discard(self._root, copy)
        audit.write(self._root, "relink", agent=key, session=found[0], adopted=adopted, ended=ended)
        if adopted:
            self._retire(key, original)
        elif ended:
            claude.stop(found[0])

    def _retire(self, key: str, original: str) -> None:
        """End the session that was copied, also when our hooks have seen its end.

        Claude Code made the copy because it takes the original for running: one that runs without our hooks, or a resume
        by hand that died and that its service may yet bring back.
        """
        with files.Lock(self._root + "/registry.lock", 5.0):
            agent = registry.load_agent(self._root, key)
            if agent is not None and original not in agent["retire"]:
                agent["retire"] = [*agent["retire"], original]
                registry.save_agent(self._root, agent)
        bell.announce(self._root, key)

    def _lives(self, key: str, before: State) -> bool:
        """Whether the agent runs, in another process than before. When it says that it began proves nothing: clocks step."""
        state = store.load_state(self._root, key)
        if state is None or state["doing"] in ("stopped", "starting"):
            return False
        new = (state["pid"], state["token"]) != (before["pid"], before["token"])
        return new and procs.alive(state["pid"], state["token"])

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
        audit.write(self._root, "resume-failed", agent=key, error=error)


def runs(claude: Claude, session_id: str) -> bool:
    """Whether Claude Code lists a process for the session."""
    return any(session.session_id == session_id and session.pid for session in claude.listing())


def without_hooks(agent: Agent, state: State | None) -> bool:
    """Whether a resume would run without our hooks: a turn of the model that no message enters.

    What turnpost launched has them in settings that Claude Code keeps with the session; any other has its folder's only.
    """
    from turnpost.install import installed_hooks

    known = {agent["cwd"], agent["root"], state["cwd"] if state else ""} - {""}
    return agent["kind"] != "managed" and not any(installed_hooks(Path(folder)) for folder in known)


def folders(agent: Agent, state: State, claude: Claude) -> list[str]:
    """Where a resume may work, the likeliest first; folders that are gone are left out.

    From another folder than Claude Code keeps the session under it dies at once. Where no worktree is involved there is
    but one folder; else Claude Code's own list tells best, asked only then since it takes a while.
    """
    known = [agent["cwd"], agent["root"], state["cwd"]]
    if len(set(known)) > 1:
        listed = next((s.cwd for s in claude.listing() if s.session_id == state["session_id"]), None)
        known.insert(0, listed or "")
    return [folder for folder in dict.fromkeys(known) if folder and os.path.isdir(folder)]


def wait_until(condition: Callable[[], bool], end: float, pause: float = 0.02) -> bool:
    """Whether a condition came true before the monotonic moment `end`."""
    while not condition():
        if clock.monotonic() >= end:
            return False
        clock.sleep(pause)
    return True
