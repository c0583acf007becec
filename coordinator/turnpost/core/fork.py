"""A forked session is its parent's continuation when the parent is gone, or when our own resume made the copy.

SessionStart tells neither the parent nor our variables (a copy loses them), so a fork is first an agent of its own. Its
transcript, written with its first turn, holds the parent's entries; then it takes the parent's name and mail.
"""

from __future__ import annotations

import json

from turnpost.core import attach, audit, bell, files, home, registry, store, text
from turnpost.core.mailbox import Mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Agent

LINES = 20_000
BYTES = 1 << 28


def trace(root: str, key: str, transcript: str) -> str:
    """The agent a forked session belongs to, once its transcript tells; the same one until then."""
    state = store.load_state(root, key)
    if state is None:
        return key
    parent = parent_session(transcript, state["session_id"])
    if parent is None:
        return key
    owner = registry.key_of_session(root, parent)
    if owner is None or owner == key or not adopt(root, owner, key):
        with Mailbox(root, key).lock(5.0):
            state = store.load_state(root, key)
            if state is not None:
                state["traced"] = True
                store.save_state(root, key, state)
        return key
    audit.write(root, "relink", agent=owner, session=state["session_id"], source="fork")
    return owner


def adopt(root: str, owner: str, key: str) -> bool:
    """Make the session of the agent `key` the session of `owner`; False when the owner's own session lives on by itself.

    A provisional agent that has mail of its own stays: its mail was sent to that conversation by its name.
    """
    with files.Lock(root + "/registry.lock", 5.0):
        agent, copy = registry.load_agent(root, owner), registry.load_agent(root, key)
        if agent is None or copy is None or agent["kind"] == "merged":
            return False
        if copy["kind"] not in ("registered", "merged"):
            return False
        first, second = sorted((owner, key))
        with Mailbox(root, first).lock(5.0), Mailbox(root, second).lock(5.0):
            before, state = store.load_state(root, owner), store.load_state(root, key)
            box = Mailbox(root, key)
            if state is None or box.waiting() or box.in_flight():
                return False
            resume = before.get("resume") if before else None
            # Its own session stands there already when we were killed on the way; then the rest is done now.
            if before is not None and before["session_id"] != state["session_id"] and attach.lives(before):
                if not (resume and resume["pending"]):
                    return False
                agent["retire"] = [
                    *(sid for sid in agent["retire"] if sid != before["session_id"]),
                    before["session_id"],
                ]
            if before is not None:
                Mailbox(root, owner).settle(before)
            _merge(root, copy)
            state.update({"traced": True, "resume": None})
            store.save_state(root, owner, state)
            # Last: killed before it, the session's next hook comes this way again.
            registry.save_agent(root, agent)
            registry.link(root, agent, state["session_id"], state["pid"])
    bell.ring_waiter(root, key)  # it served the provisional agent, and ends
    bell.announce(root, owner)
    return True


def discard(root: str, key: str) -> bool:
    """Forget the provisional agent of a copy that is about to be ended; False when it has mail of its own, and stays."""
    with files.Lock(root + "/registry.lock", 5.0):
        copy = registry.load_agent(root, key)
        box = Mailbox(root, key)
        with box.lock(5.0):
            if copy is None or copy["kind"] != "registered" or box.waiting() or box.in_flight():
                return False
            _merge(root, copy)
    return True


def _merge(root: str, copy: Agent) -> None:
    """Take a provisional agent out of sight: nobody can write to it any more."""
    copy["kind"] = "merged"
    registry.save_agent(root, copy)
    files.unlink(home.name(root, text.name_key(copy["name"])))


def parent_session(transcript: str, own: str) -> str | None:
    """The session a fork was copied from: the last foreign `session_id` among its copied entries."""
    found = None
    try:
        with open(files.open_plain(transcript), "rb") as file:
            for _ in range(LINES):
                line = file.readline(1 << 22)
                if not line or file.tell() > BYTES:
                    break
                if b'"session_id"' in line and (named := _named(line)) and named != own:
                    found = named
    except OSError:
        return None
    return found


def _named(line: bytes) -> str | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    named = entry.get("session_id") if isinstance(entry, dict) else None
    return named if isinstance(named, str) and home.is_session_id(named) else None
