"""What a hook with nothing to do costs, against the bare interpreter it runs in."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.places import Played
from tests.bench.rounds import NotMeasured, alternate, ended
from turnpost.core import home, store
from turnpost.lab.progress import Progress

ROUNDS, QUICK = 100, 20
BARE = "python3 -I -S -c pass"
LIMITS = {"PostToolBatch": 1.5, "UserPromptSubmit": 2.0, "Stop": 2.0, "WokenPrompt": 0.5}
"""At most; `WokenPrompt` is UserPromptSubmit for a wake, whose turn its waiter has recorded."""
_WARM_UP = 3
_SCRIPTS = {
    "PostToolBatch": "post_tool_batch.py",
    "UserPromptSubmit": "user_prompt_submit.py",
    "Stop": "stop.py",
}
_ANSWER = "The tests pass again: the fixture closed the file before the reader was done. " * 8
_INPUTS: dict[str, dict[str, object]] = {
    "PostToolBatch": {
        "tool_calls": [
            {
                "tool_name": "Edit",
                "tool_input": {"file_path": "/shop/cart.py", "old_string": "a" * 1500, "new_string": "b" * 1500},
                "tool_use_id": "toolu_01",
                "tool_response": "The file /shop/cart.py has been updated.",
            }
        ]
    },
    "UserPromptSubmit": {"prompt": "Please look at the cart: the total is wrong when a voucher is used. " * 6},
    "Stop": {"stop_hook_active": False, "last_assistant_message": _ANSWER, "background_tasks": []},
}  # fmt: skip
_RECORDS = {"UserPromptSubmit": "working", "Stop": "idle"}


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """The hooks and the bare interpreter, in turns."""
    with Played() as place:
        session_id = place.session()
        bare = [place.interpreter(), "-I", "-S", "-c", "pass"]
        parts: dict[str, Callable[[], float]] = {
            BARE: lambda: _timed(place, bare, session_id, b""),
            **{event: _hook(place, session_id, event) for event in _SCRIPTS},
            "WokenPrompt": _woken(place, session_id),
        }
        for part in parts.values():
            for _ in range(_WARM_UP):
                part()
        found = alternate("hooks", QUICK if quick else ROUNDS, parts, progress)
        log = Path(home.log(place.root))
        failed = (
            [line for line in log.read_text().splitlines() if '"hook-failed"' in line] if log.exists() else []
        )
        if failed:
            raise NotMeasured(f"a hook failed: {failed[0][:500]}")
    return [
        Measured(f"hook {event}", "ms", found[event], BARE, found[BARE], ratio_limit=limit)
        for event, limit in LIMITS.items()
    ]


def _hook(place: Played, session_id: str, event: str) -> Callable[[], float]:
    command = place.command(event, _SCRIPTS[event])
    data = place.payload(session_id, event, **_INPUTS[event])
    key = place.key(session_id)

    def run() -> float:
        before = store.load_state(place.root, key)
        took = _timed(place, command, session_id, data)
        after = store.load_state(place.root, key)
        # A hook that fails is silent too, and fast.
        if event in _RECORDS and (after == before or after is None or after["doing"] != _RECORDS[event]):
            raise NotMeasured(f"{event} recorded nothing")
        return took

    return run


def _woken(place: Played, session_id: str) -> Callable[[], float]:
    """The prompt hook that stands between a waiter's message and its model request."""
    ordinary = "UserPromptSubmit"
    command = place.command(ordinary, _SCRIPTS[ordinary])
    data = place.payload(session_id, ordinary, **_INPUTS[ordinary])
    flag = Path(home.woken(place.root, place.key(session_id)))

    def run() -> float:
        flag.touch()
        took = _timed(place, command, session_id, data)
        if flag.exists():
            raise NotMeasured("the prompt hook of a wake left its flag")
        return took

    return run


def _timed(place: Played, command: list[str], session_id: str, data: bytes) -> float:
    begin = time.perf_counter()
    process = place.start(command, session_id, data)
    code = ended(process)
    took = time.perf_counter() - begin
    out, err = process.communicate()
    if (code, out, err) != (0, b"", b""):
        raise NotMeasured(f"{command[-2:]} ended with {code}: {out!r} {err!r}")
    return took * 1000
