"""JSON records on disk, and the two that every hook needs: what a session does, and who waits for it."""

from __future__ import annotations

from turnpost.core import clock, fastjson, files, home
from turnpost.core.errors import BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnpost.core.records import Doing, State, Waiter


STATE = ("doing", "since", "session_id", "pid", "token", "transcript", "cwd", "stops", "source")
WAITER = ("id", "pid", "token", "session_id", "harness_pid", "since")


def load_state(root: str, key: str) -> State | None:
    """What the agent's session last did; None before its first session, or when the record is damaged."""
    return load(home.agent(root, key) + "/state.json", STATE)  # type: ignore[return-value]


def save_state(root: str, key: str, state: State) -> None:
    """Record what a session does. Not fsynced: after a power cut there is no session."""
    files.write(home.agent(root, key) + "/state.json", pack(state), durable=False)


def change_state(state: State, doing: Doing) -> State:
    """The same session, now doing something else."""
    state["doing"] = doing
    state["since"] = clock.now()
    return state


def load_waiter(root: str, key: str) -> Waiter | None:
    """The record of the agent's newest waiter, which may be gone."""
    return load(home.agent(root, key) + "/waiter.json", WAITER)  # type: ignore[return-value]


def load(path: str, fields: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """A JSON record; None when it is missing, damaged, without one of `fields`, or no plain file of ours."""
    try:
        found = fastjson.loads(files.read(path))
    except (OSError, ValueError, RecursionError, BadFile):
        return None
    return found if isinstance(found, dict) and all(field in found for field in fields) else None


def pack(record: object) -> bytes:
    """A record as bytes."""
    return fastjson.dumps(record).encode()
