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

RESUME = {
    "at": float, "tries": int, "next": float, "error": (str, None), "pending": bool, "pid?": int, "token?": (str, None),
}  # fmt: skip
ANY: dict[str, Any] = {}
"""A record of which nothing is known."""
STATE = {
    "doing": frozenset({"starting", "working", "blocked", "idle", "stopped", "lost"}), "since": float, "session_id": str,
    "pid": int, "token": (str, None), "transcript": str, "cwd": str, "stops": int, "source": str, "traced?": bool,
    "mode?": str, "due?": bool, "holding?": float, "resume?": (RESUME, None),
}  # fmt: skip
WAITER = {
    "id": str, "pid": int, "token": (str, None), "session_id": str, "harness_pid": int, "since": float,
}  # fmt: skip
passed_over: Callable[[Newer], object] | None = None
"""What `if_known` tells of a newer turnpost's record that it goes on without; in hooks and the coordinator it tells nobody."""
_NUMBERS = (int, float)
_TOO_MUCH = 1e12
"""No moment, count, size or process of ours comes near it."""


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


def load(path: str, kind: dict[str, Any] = ANY) -> dict[str, Any] | None:
    """A JSON record; None when it is missing, damaged, not of this kind (see `fits`), or no plain file of ours.

    What is damaged is made anew or set aside. So this raises Newer for one that a newer turnpost wrote, and OSError where
    nothing is known of it: too many open files, a disk that fails.
    """
    try:
        found = fastjson.loads(files.read(path))
    except OSError as error:
        if files.is_passing(error):
            raise
        return None
    except (ValueError, RecursionError, BadFile):
        return None
    return understood(found, path, kind)


def understood(found: object, path: str, kind: dict[str, Any] = ANY) -> dict[str, Any] | None:
    """What was read, when it is a record of this kind; None when it is not. Raises Newer as `load` does."""
    if not isinstance(found, dict):
        return None
    version = found.get("v")
    if isinstance(version, int) and version > VERSION:
        raise newer(path, version)
    return found if fits(found, kind) else None


def newer(path: str, version: int, known: int = VERSION) -> Newer:
    """The refusal of a record of a version that is not known yet."""
    return Newer(
        f"refused by rule 'newer': {path} is a record of version {version}, and this turnpost knows none above "
        f"{known}; it was left as it is: upgrade turnpost to the version that wrote it, or a later one",
        path=path, version=version, known=known,
    )  # fmt: skip


def if_known(look: Callable[Words, Found], *words: Words.args, **named: Words.kwargs) -> Found | None:
    """What `look` finds, None where that needs a record of a newer turnpost: for those who go on with the others."""
    try:
        return look(*words, **named)
    except Newer as error:
        if passed_over is not None:
            passed_over(error)
        return None


def fits(value: object, kind: object) -> bool:
    """Whether a value out of a record is what the code takes it for: half a record's damage is a type that is off.

    A kind is a type, None, a tuple of kinds of which one fits, a set of words, `[kind]` for a list, or an object's fields with
    their kinds; one whose name ends in `?` may be missing, and others may be there. NaN and numbers beyond all sense fit none.
    """
    if isinstance(kind, type) and kind not in _NUMBERS:
        return isinstance(value, kind)
    if isinstance(kind, dict):
        return isinstance(value, dict) and _has(value, kind)
    if isinstance(kind, tuple):
        return any(fits(value, one) for one in kind)
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(one, kind[0]) for one in value)
    if isinstance(kind, frozenset):
        return isinstance(value, str) and value in kind
    if kind is None:
        return value is None
    number = isinstance(value, int) or (kind is float and isinstance(value, float))
    return number and not isinstance(value, bool) and 0 <= value < _TOO_MUCH  # type: ignore[operator]


def _has(found: dict[str, object], fields: dict[str, object]) -> bool:
    for field, kind in fields.items():  # a loop: every record that is read passes here
        name = field.removesuffix("?")
        if not (fits(found[name], kind) if name in found else name != field):
            return False
    return True


def pack(record: object) -> bytes:
    """A record as bytes."""
    return fastjson.dumps(record).encode()
