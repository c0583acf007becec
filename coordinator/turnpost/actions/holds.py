"""The hold itself: one file beside the agent's mail, looked for by every hook, waiter and coordinator."""

from __future__ import annotations

from turnpost.core import bell, clock, files, home, registry, store


def path(root: str, key: str) -> str:
    """The file that keeps an agent from being woken while it is there."""
    return home.agent(root, key) + "/hold"


def put(root: str, key: str, why: str, by: str = registry.PERSON) -> bool:
    """Hold an agent; False when it was held already. The person's hold takes the place of a parent's."""
    record = store.pack({"v": 1, "why": why, "by": by, "at": clock.now()})
    if by == registry.PERSON and owner(root, key) not in (None, by):
        files.write(path(root, key), record)
        return False
    return files.create(path(root, key), record)


def owner(root: str, key: str) -> str | None:
    """Who holds an agent, as a key; None when nobody does. A damaged hold is the person's."""
    if not files.exists(path(root, key)):
        return None
    found = store.load(path(root, key), {"by": str})
    return str(found["by"]) if found else registry.PERSON


def lift(root: str, key: str) -> None:
    """Remove an agent's hold and ring for what waited behind it."""
    files.unlink(path(root, key))
    bell.announce(root, key)
    bell.ring_waiter(root, key)
