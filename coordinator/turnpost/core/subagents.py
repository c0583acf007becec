"""In-process subagents: who runs inside an agent's session, where its mail lies, and which of the agent's calls are its own.

A subagent is kept as an agent is, in a folder under its agent (`home.agent` of `KEY~ID`), made when it starts. It lives
in the process of its agent's session and ends with it; afterwards it is only remembered, so that a late message is
refused by the right rule.
"""

from __future__ import annotations

import os

from turnpost.core import clock, commands, files, home, mailbox, procs, registry, rules, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from turnpost.core.records import Agent, State

BODY_LIMIT = 4_096
"""Bytes of UTF-8 in a message to a subagent: it has a small task and a conversation of its own."""
MAILBOX_LIMIT = 8
ENDED = "the subagent ended before it could read it"


def key_of(owner: str, sub: str) -> str:
    """The mailbox of an agent's subagent."""
    return f"{owner}~{sub}"


def owner_of(key: str) -> str:
    """The agent a mailbox belongs to: the agent itself, or the one that a subagent runs in."""
    return key.partition("~")[0]


def is_subagent(key: str) -> bool:
    """Whether a mailbox is a subagent's."""
    return "~" in key


def is_id(text: object) -> TypeGuard[str]:
    """Whether a value can be a subagent's id, and so a folder of ours."""
    return (
        isinstance(text, str) and 0 < len(text) <= 64 and text.isascii() and text.replace("-", "").isalnum()
    )


def start(root: str, key: str, *, about: str, state: State, transcript: str) -> None:
    """Make a subagent known, or running again. `state` is its agent's; `about` is what Claude Code calls its type."""
    for folder in ("queue", "claimed"):
        files.mkdir(f"{home.agent(root, key)}/{folder}")
    owner, sub = owner_of(key), key.partition("~")[2]
    agent: Agent = {
        "v": 1, "key": key, "name": f"{_name(root, owner)}/{sub}", "kind": "subagent", "created": clock.now(),
        "cwd": state["cwd"], "root": "", "sessions": [state["session_id"]], "parent": owner, "mission": None,
        "instructions": None, "background": False, "retire": [], "about": about,
    }  # fmt: skip
    own: State = {
        **state, "doing": "working", "since": clock.now(), "transcript": transcript, "stops": 0, "source": "startup",
        "resume": None,
    }  # fmt: skip
    with mailbox.Mailbox(root, key).lock():
        files.write(home.agent(root, key) + "/agent.json", store.pack(agent), durable=False)
        store.save_state(root, key, own)
    files.touch(home.running(root, owner))


def end(root: str, key: str, state: State) -> bool:
    """Record that a subagent has ended, and take what still waits out for good; whether there was any. Holding its lock.

    It stays to be seen, and is never given to another. `giving_up.finish` tells who sent it.
    """
    box = mailbox.Mailbox(root, key)
    store.save_state(root, key, store.change_state(state, "stopped"))
    commands.drop(box.folder, lasting=True)
    left = [mailbox.entry_id(name) for name in box.waiting()]
    if left:
        from turnpost.core import giving_up  # seldom: a subagent's end is a hook

        giving_up.end(box, left, ENDED)
    return bool(left)


def load(root: str, key: str) -> Agent | None:
    """A subagent's record under its agent's present name; None when there is none."""
    found = registry.load_agent(root, key)
    if found is not None:
        found["name"] = f"{_name(root, owner_of(key))}/{key.partition('~')[2]}"
    return found


def every(root: str, owner: str) -> list[str]:
    """The mailboxes of an agent's subagents, also of those that have ended."""
    return [key_of(owner, sub) for sub in files.names(home.subagents(root, owner)) if is_id(sub)]


def running(root: str, owner: str) -> list[str]:
    """The mailboxes of the subagents that run now."""
    if not files.exists(home.running(root, owner)):
        return []
    return [key for key in every(root, owner) if lives(root, key)]


def lives(root: str, key: str) -> bool:
    """Whether a subagent runs: it has not ended, and the process it runs in is there."""
    state = store.load_state(root, key)
    return state is not None and state["doing"] != "stopped" and procs.alive(state["pid"], state["token"])


def forget(root: str, key: str, *, older_than: float) -> None:
    """Remove what is kept of a subagent that ended so many seconds ago. What is not ours, or not empty, stays."""
    state = store.load_state(root, key)
    if state is None or rules.age(state["since"], clock.now()) < older_than:
        return
    folder = home.agent(root, key)
    commands.drop(folder, lasting=True)
    for name in ("agent.json", "recent", "state.json", "lock"):
        files.unlink(f"{folder}/{name}")
    for name in ("queue", "claimed", "given-up", ""):
        try:
            os.rmdir(f"{folder}/{name}")
        except OSError:
            pass


def announce(root: str, key: str) -> None:
    """Let PostToolBatch see with one look that mail waits for a subagent of this agent."""
    files.touch(home.submail(root, owner_of(key)))


def tidy(root: str, owner: str) -> None:
    """Take down the flags that nobody needs any more."""
    _lower(
        home.submail(root, owner),
        lambda: any(mailbox.Mailbox(root, key).waiting() for key in every(root, owner)),
    )
    _lower(
        home.subcommands(root, owner),
        lambda: any(
            commands.pending(home.agent(root, key)) and lives(root, key) for key in every(root, owner)
        ),
    )
    _lower(home.running(root, owner), lambda: any(lives(root, key) for key in every(root, owner)))


def speak(root: str, owner: str, sub: str, command: str, *, lasting: bool = False) -> None:
    """Remember that a shell command is about to run: a subagent's, or with an empty `sub` the agent's own.

    One and the same command of two is the last one's. `lasting` is a command in the background.
    """
    for key in every(root, owner):
        folder = home.agent(root, key)
        if key != key_of(owner, sub):
            commands.forget(folder, command)
        elif lives(root, key):
            commands.note(folder, command, lasting=lasting)
            files.touch(home.subcommands(root, owner))


def speaking(root: str, owner: str, pids: list[int]) -> Agent | None:
    """The subagent whose shell command is run by the last of these processes, the session's own child; None when there is none."""
    words = procs.command(pids[-1])
    for key in every(root, owner):
        if commands.shown(home.agent(root, key), words) and lives(root, key):
            return load(root, key)
    return None


def _lower(flag: str, needed: Callable[[], bool]) -> None:
    """Take a flag down, unless it is needed. One that is stays up all the while: hooks of others look at it.

    After the flag a second look: whoever adds something meanwhile raises it after us.
    """
    if not needed():
        files.unlink(flag)
        if needed():
            files.touch(flag)


def _name(root: str, key: str) -> str:
    agent = store.load(home.agent(root, key) + "/agent.json", {"name": str})
    return str(agent["name"]) if agent else key
