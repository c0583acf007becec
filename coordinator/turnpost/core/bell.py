"""Bells: hints that something changed. Nothing depends on one being heard; whoever hears it looks at the spool."""

from __future__ import annotations

import os

from turnpost.core import files, home, procs, store


def fifo(root: str, key: str, waiter_id: str) -> str:
    """The FIFO that a waiter blocks on."""
    return f"{home.agent(root, key)}/waiter-{waiter_id}.fifo"


def ring(path: str) -> bool:
    """Wake whoever reads a FIFO. False when nobody does: the kernel refuses the open, so a dead waiter shows at once."""
    try:
        fd = _open(path)
    except OSError:
        return False
    try:
        os.write(fd, b"!")
    except BlockingIOError:
        pass  # full: it has been rung often enough
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def ring_waiter(root: str, key: str) -> bool:
    """Wake the agent's waiter; False when it has none that lives, or none is known."""
    try:
        waiter = store.if_known(store.load_waiter, root, key)
    except OSError:
        return False
    return waiter is not None and ring(fifo(root, key, waiter["id"]))


def listening(root: str, key: str) -> bool:
    """Whether the agent has a live waiter. Asking wakes nobody."""
    waiter = store.load_waiter(root, key)
    if waiter is None:
        return False
    try:
        os.close(_open(fifo(root, key, waiter["id"])))
    except OSError:
        return False
    return True


def announce(root: str, key: str) -> None:
    """Tell the coordinator that this agent has something waiting or on its way."""
    files.touch(f"{home.pending(root)}/{key}")


def sweep(root: str, key: str) -> None:
    """Remove the FIFOs of waiters that were killed: nobody reads them and none is the active one's."""
    waiter = store.load_waiter(root, key)
    active = f"waiter-{waiter['id']}.fifo" if waiter else ""
    for name in files.names(home.agent(root, key)):
        if name.startswith("waiter-") and name.endswith(".fifo") and name != active:
            pid = name.removeprefix("waiter-").partition("-")[0]
            if pid.isdigit() and procs.token(int(pid)) is None:
                files.unlink(f"{home.agent(root, key)}/{name}")


def _open(path: str) -> int:
    """Open a FIFO to write. Raises OSError at once when nobody reads it."""
    return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
