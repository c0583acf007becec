"""A session starts: which agent is it? Called by the SessionStart hook, idempotent, serialised by one lock."""

from __future__ import annotations

import os

from turnpost.core import audit, bell, clock, files, home, ids, mailbox, procs, registry, store, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from turnpost.core.records import Agent, Doing, State

    Link = Literal["same", "moved", "copied", "stranger"]


class Start:
    """What a SessionStart hook is told, by its input and its environment."""

    __slots__ = (
        "background",
        "cwd",
        "env_key",
        "name",
        "pid",
        "project",
        "session_id",
        "source",
        "transcript",
    )

    def __init__(
        self, session_id: str, source: str, pid: int, *, transcript: str = "", cwd: str = "", project: str = "",
        env_key: str = "", name: str = "", background: bool = False,
    ) -> None:  # fmt: skip
        self.session_id = session_id
        self.source = source
        self.pid = pid
        self.transcript = transcript
        self.cwd = cwd
        self.project = project
        self.env_key = env_key
        self.name = name
        self.background = background


def attach(root: str, start: Start) -> Agent:
    """Find or make the agent of a starting session, relink it, and record its state.

    A person who resumes one conversation in the terminal of another has left that other one: its agent is stopped then,
    or its mail would enter a conversation that is not its own.
    """
    registry.prepare(root)
    with files.Lock(root + "/registry.lock", 5.0):
        agent = _known(root, start) or _register(root, start)
        if start.session_id in agent["retire"]:
            return agent  # about to be ended: what it does is nobody's any more
        box = mailbox.Mailbox(root, agent["key"])
        with box.lock(5.0):
            state = store.load_state(root, agent["key"])
            kind = link_kind(state, start, lives(state))
            if kind == "stranger":
                agent = _register(root, start)
                state = None
            if kind == "copied" and state is not None and state["session_id"] not in agent["retire"]:
                agent["retire"] = [*agent["retire"], state["session_id"]]
                registry.save_agent(root, agent)
            before = state["session_id"] if state else start.session_id
            left = registry.key_of_process(root, start.pid) if start.pid else None
            agent["background"] = start.background
            registry.link(root, agent, start.session_id, start.pid)
            if state is not None and files.exists(home.woken(root, agent["key"])):
                # A wake that was lost with the process before: its turn never began, and no prompt of it comes.
                state["doing"] = "idle"
                files.unlink(home.woken(root, agent["key"]))
            if state is not None:
                box.settle(state)  # what the conversation before has read must not be forgotten with it
            store.save_state(root, agent["key"], first_state(state, start))
        if before != start.session_id:
            audit.write(root, "relink", agent=agent["key"], session=start.session_id, source=start.source)
        if left is not None and left != agent["key"]:
            _leave(root, left, start.pid)
    return agent


def link_kind(state: State | None, start: Start, old_lives: bool) -> Link:
    """How a session relates to the one its agent had. Pure.

    `copied`: ours was resumed while it still ran, so Claude Code made a copy; the copy is the one that has the prompt
    and goes on, the other is to be retired. `stranger`: a person forked a session that lives on; that one keeps the name.
    """
    if state is None or state["session_id"] == start.session_id:
        return "same"
    if state["pid"] == start.pid or not old_lives:
        return "moved"
    resume = state.get("resume")
    return "copied" if resume and resume["pending"] else "stranger"


def first_state(before: State | None, start: Start) -> State:
    """What the session does as it starts. Pure but for the clock.

    A compaction in the middle of a turn changes nothing. A background session that was given a prompt is `starting`
    until it comes; one that the background service brought back after a crash gets none: it goes on with the turn it
    was in, by itself, or is idle.
    """
    resume = before.get("resume") if before else None
    prompt_comes = start.background and (start.source == "startup" or bool(resume and resume["pending"]))
    doing: Doing = "starting" if prompt_comes else "idle"
    if start.source == "resume" and start.background and not prompt_comes and before is not None:
        doing = "working" if before["doing"] in ("working", "blocked") else "idle"
    if start.source == "compact" and before is not None and before["session_id"] == start.session_id:
        doing = before["doing"]
    state: State = {
        "v": 1, "doing": doing, "since": clock.now(), "session_id": start.session_id, "pid": start.pid,
        "token": procs.token(start.pid) if start.pid else None, "transcript": start.transcript, "cwd": start.cwd,
        "stops": before["stops"] if before and start.source == "compact" else 0, "source": start.source,
        "resume": None,
    }  # fmt: skip
    if before and "mode" in before and before["session_id"] == start.session_id:
        state["mode"] = before["mode"]  # a session keeps it, and a compaction comes in the middle of a turn
    if before and before.get("due") and before["session_id"] == start.session_id:
        state["due"] = True  # the turn goes on
    return state


def _known(root: str, start: Start) -> Agent | None:
    for key in (
        registry.key_of_session(root, start.session_id),
        registry.key_of_process(root, start.pid) if start.pid else None,
        registry.key_of_session(root, _forked_from(start.pid)) if start.source == "fork" else None,
        _launched(root, start.env_key),
    ):
        # One that cannot be read stops us: a new agent in its place would take the session away from its mail.
        if key and (agent := registry.known_agent(root, key)):
            return agent
    return None


def _launched(root: str, key: str) -> str | None:
    """The agent a launch reserved for its first session.

    A variable proves nothing, since a project's settings can set it: it never leads to the person, nor to an agent that
    has had a session.
    """
    if not ids.is_id(key, "ag"):
        return None
    agent = registry.known_agent(root, key)
    return key if agent is not None and agent["kind"] != "person" and not agent["sessions"] else None


def _forked_from(pid: int) -> str:
    """The session that `claude --resume ID --fork-session` copies, empty when its command line names none.

    The transcript tells it too, but only with the first turn, and until then the mail of the parent's name would go to
    a conversation that the person has left.
    """
    words = procs.command(pid) if pid else []
    # Not strict: of a process that is gone there are no words.
    for option, value in zip(words, [*words[1:], ""], strict=False):
        if option in ("--resume", "-r"):
            return value
        if option.startswith("--resume="):
            return option.removeprefix("--resume=")
    return ""


def _leave(root: str, key: str, pid: int) -> None:
    """Record that an agent's session no longer runs in this process."""
    with mailbox.Mailbox(root, key).lock(5.0):
        state = store.load_state(root, key)
        if state is None or state["pid"] != pid or state["doing"] == "stopped":
            return
        # The process lives on with another conversation: a resume must not wait for its end.
        state["pid"], state["token"] = 0, None
        store.save_state(root, key, store.change_state(state, "stopped"))
    bell.announce(root, key)


def _register(root: str, start: Start) -> Agent:
    """A session someone started: named as `claude --name` says, else FOLDER-SHORTID."""
    short = start.session_id[:8]
    folder = text.to_name(os.path.basename(start.project or start.cwd) or "agent")
    wanted = [start.name] if start.name and not text.name_fault(start.name) else []
    for name in [*wanted, f"{folder}-{short}", f"{folder}-{start.session_id}"[: text.NAME_LIMIT]]:
        if registry.key_of_name(root, name) is None:
            return registry.create_agent(
                root, name, kind="registered", cwd=start.cwd, background=start.background,
                project=registry.main_checkout(start.project or start.cwd),
            )  # fmt: skip
    return registry.create_agent(
        root, f"agent-{start.session_id}", kind="registered", cwd=start.cwd, project=start.project
    )


def lives(state: State | None) -> bool:
    """Whether the session still has its process."""
    return state is not None and state["doing"] != "stopped" and procs.alive(state["pid"], state["token"])
