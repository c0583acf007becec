"""JSON records on disk, and the two that every hook needs: what a session does, and who waits for it."""

from __future__ import annotations

from turnpost.core import clock, fastjson, files, home
from turnpost.core.errors import BadFile, Newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    from turnpost.core.records import Doing, State, Waiter

    Words = ParamSpec("Words")
    Found = TypeVar("Found")

VERSION = 1
"""The newest version of a record that is understood here."""

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
    """A JSON record; None when it is missing, damaged, without one of `fields`, or no plain file of ours.

    Raises Newer for one that a newer turnpost wrote: what is damaged is made anew, and that one must stay.
    """
    try:
        found = fastjson.loads(files.read(path))
    except (OSError, ValueError, RecursionError, BadFile):
        return None
    return understood(found, path, fields)


def understood(found: object, path: str, fields: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """What was read, when it is a record with these fields; None when it is not. Raises Newer as `load` does."""
    if not isinstance(found, dict):
        return None
    version = found.get("v")
    if isinstance(version, int) and version > VERSION:
        raise Newer(
            f"refused by rule 'newer': {path} is a record of version {version}, and this turnpost knows none above "
            f"{VERSION}; it was left as it is: upgrade turnpost to the version that wrote it, or a later one",
            path=path, version=version, known=VERSION,
        )  # fmt: skip
    return found if all(field in found for field in fields) else None


def if_known(look: Callable[Words, Found], *words: Words.args, **named: Words.kwargs) -> Found | None:
    """What `look` finds, None where that needs a record of a newer turnpost: for those who go on with the others."""
    try:
        return look(*words, **named)
    except Newer:
        return None


def pack(record: object) -> bytes:
    """A record as bytes."""
    return fastjson.dumps(record).encode()
