"""The hold itself: one file beside the agent's mail, looked for by every hook, waiter and coordinator."""

from __future__ import annotations

from turnpost.core import bell, clock, files, home, store


def path(root: str, key: str) -> str:
    """The file that keeps an agent from being woken while it is there."""
    return home.agent(root, key) + "/hold"


def put(root: str, key: str, why: str) -> bool:
    """Hold an agent; False when it was held already."""
    return files.create(path(root, key), store.pack({"v": 1, "why": why, "at": clock.now()}))


def lift(root: str, key: str) -> None:
    """Remove an agent's hold and ring for what waited behind it."""
    files.unlink(path(root, key))
    bell.announce(root, key)
    bell.ring_waiter(root, key)
