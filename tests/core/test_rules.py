"""The rules of delivery, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from turnpost.core import rules
from turnpost.core.records import TYPE_CHECKING
from turnpost.core.transcript import Seen

if TYPE_CHECKING:
    from turnpost.core.records import Receipt, State

NOW = 1_000_000.0


def state(doing: str = "idle", **changed: Any) -> State:
    made: dict[str, Any] = {
        "v": 1, "doing": doing, "since": NOW - 10, "session_id": "s", "pid": 1, "token": "t", "transcript": "x", "cwd": "",
        "stops": 0, "source": "startup", "resume": None,
    }  # fmt: skip
    return {**made, **changed}  # type: ignore[typeddict-item]


def receipt(boundary: str = "stop-block", *, until: float = NOW + 5, pid: int = 1) -> Receipt:
    claim = {"by": "1", "pid": pid, "token": "t", "until": until, "transcript": "x", "offset": 0}
    return {"boundary": boundary, "claim": claim, "state": "claimed"}  # type: ignore[typeddict-item]


def seen(
    at: int = -1, read_at: float | None = None, *, rewound: bool = False, enqueued: bool = False
) -> Seen:
    made = Seen()
    made.at, made.read_at, made.rewound, made.enqueued = at, read_at, rewound, enqueued
    return made


@pytest.mark.parametrize(
    ("recorded", "alive", "doing"),
    [
        (None, True, "starting"),
        (state("stopped"), True, "stopped"),
        (state("working"), True, "working"),
        (state("working"), False, "lost"),
        (state("stopped"), False, "stopped"),
        (state("starting", since=NOW - rules.START_GRACE + 1), True, "starting"),
        (state("starting", since=NOW - rules.START_GRACE - 1), True, "idle"),
        (state("idle", resume={"pending": True, "at": NOW - 1}), False, "starting"),
        (state("idle", resume={"pending": True, "at": NOW - rules.RESUME_PENDING - 1}), False, "lost"),
        (state("idle", resume={"pending": False, "at": NOW - 1}), False, "lost"),
    ],
)
def test_what_a_session_does(recorded: State | None, alive: bool, doing: str) -> None:
    assert rules.effective(recorded, NOW, alive) == doing


@pytest.mark.parametrize("cap", range(20))
def test_blocks_never_reach_the_harness_cap(cap: int) -> None:
    allowed = [stops for stops in range(1, 30) if rules.stop_may_block(stops, cap)]
    assert len(allowed) <= rules.STOP_BLOCKS
    assert all(stops < max(cap, 1) for stops in allowed)
    assert allowed == list(range(1, len(allowed) + 1))
    assert allowed or cap < 2


@pytest.mark.parametrize(
    ("recorded", "by_stop", "armed", "held", "takes"),
    [
        (state("idle"), True, 5, False, True),
        (state("idle"), False, 5, False, True),
        (state("idle"), True, 5, True, False),
        (None, True, 5, False, False),
        (state("blocked"), True, 5, False, False),
        (state("starting", since=NOW), True, 5, False, False),
        (state("stopped"), True, 5, False, False),
        # A Stop hook that failed: the record of the turn's begin is older than the waiter.
        (state("working", since=NOW - 10), True, 5, False, True),
        (state("working", since=NOW - 10), True, 1, False, False),  # too soon to tell
        (state("working", since=NOW - 10), False, 5, False, False),  # armed by a start
        (state("working", since=NOW - 3), True, 5, False, False),  # the next turn has begun
        # A Stop hook that blocked an instant before the waiter began.
        (state("working", since=NOW - 5.2, stops=1), True, 5, False, False),
        (state("working", since=NOW - 10, stops=1), True, 5, False, True),
    ],
)
def test_when_a_waiter_takes(
    recorded: State | None, by_stop: bool, armed: float, held: bool, takes: bool
) -> None:
    assert (
        rules.waiter_takes(recorded, armed_by_stop=by_stop, armed_at=NOW - armed, held=held, now=NOW) is takes
    )


@pytest.mark.parametrize(
    ("since", "armed", "takes"),
    [
        (NOW - 60, 1, False),  # the turn begins, and its hook has yet to say so
        (NOW - 60, rules.START_GRACE + 1, True),  # it never did
        (NOW - 1, 5, True),  # the turn is over
    ],
)
def test_when_a_waiter_armed_by_a_prompt_takes(since: float, armed: float, takes: bool) -> None:
    found = rules.waiter_takes(
        state("idle", since=since), armed_by_stop=False, armed_by_prompt=True, armed_at=NOW - armed, held=False, now=NOW
    )  # fmt: skip
    assert found is takes


@pytest.mark.parametrize(
    ("claim", "shown", "alive", "current", "recorded", "verdict"),
    [
        (receipt(), seen(5, NOW), True, True, state(), "read"),
        (receipt(), seen(5, NOW), False, False, None, "read"),
        (receipt(), seen(5), True, True, state(), "delivered"),
        (receipt(until=NOW - 99), seen(5), False, True, state(), "delivered"),
        (receipt(), seen(5, rewound=True), True, True, state(), "requeue"),
        (receipt(), seen(5), True, False, state(source="clear"), "requeue"),
        (receipt(), seen(5), True, False, state(since=NOW), "delivered"),
        (receipt(), seen(5), True, False, state(since=NOW - 3 * rules.LEASE), "requeue"),
        ({**receipt(), "claim": None}, seen(), True, True, state(), "requeue"),
        (receipt(), seen(), True, True, state(), "keep"),
        (receipt(), seen(), False, True, state(), "requeue"),
        (receipt(pid=0), seen(), False, True, state(), "keep"),
        (receipt(until=NOW - 1), seen(), True, True, state(), "requeue"),
        (receipt(until=NOW - 1), seen(enqueued=True), True, True, state(), "keep"),
        (receipt(until=NOW - 1, pid=0), seen(enqueued=True), False, True, state(), "requeue"),
        (receipt("rewake", until=NOW - 1), seen(), True, True, state("working"), "keep"),
        (receipt("next-request", until=NOW - 1), seen(), True, True, state("blocked"), "keep"),
        (receipt("prompt", until=NOW - 1), seen(), True, True, state("working"), "keep"),
        (receipt("rewake", until=NOW - 1), seen(), True, True, state("idle"), "requeue"),
        (receipt("rewake", until=NOW - 1), seen(), True, False, state("working"), "requeue"),
        (receipt("stop-block", until=NOW - 1), seen(), True, True, state("working"), "requeue"),
    ],
)
def test_what_becomes_of_a_claim(
    claim: Receipt, shown: Seen, alive: bool, current: bool, recorded: State | None, verdict: str
) -> None:
    assert rules.settle(claim, shown, alive=alive, current=current, state=recorded, now=NOW) == verdict


@pytest.mark.parametrize(
    ("doing", "urgent", "held", "listening", "background", "boundary"),
    [
        ("working", False, False, True, True, "stop-block"),
        ("working", True, False, True, True, "next-request"),
        ("blocked", False, False, True, True, "next-request"),
        ("idle", False, False, True, False, "rewake"),
        ("idle", False, False, False, True, "resume"),
        ("idle", True, False, False, False, "prompt"),
        ("stopped", False, False, False, False, "resume"),
        ("lost", False, False, False, True, "resume"),
        ("starting", False, False, False, True, "prompt"),
        ("working", True, True, True, True, "held"),
        ("stopped", False, True, False, True, "held"),
    ],
)
def test_which_boundary_a_sender_is_told(
    doing: Any, urgent: bool, held: bool, listening: bool, background: bool, boundary: str
) -> None:
    told = rules.predict(doing, urgent=urgent, held=held, listening=listening, background=background)
    assert told == boundary


def test_the_pause_after_a_failed_resume_doubles_up_to_ten_minutes() -> None:
    pauses = [rules.backoff(tries, 2.0) for tries in range(1, 12)]
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert max(pauses) == 600.0
    assert pauses == sorted(pauses)
    assert rules.backoff(0, 2.0) == 2.0


STEP: dict[str, Any] = {
    "pressing": True, "held": False, "listening": False, "background": True, "retire": False, "attempts": 3,
    "lost_for": 0.0, "checked_for": 0.0, "now": NOW,
}  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "doing", "changed", "step"),
    [
        (state(), "idle", {"retire": True, "pressing": False, "held": True}, "retire"),
        (state(), "stopped", {"held": True}, "none"),
        (state(), "stopped", {"pressing": False}, "none"),
        (state(), "stopped", {}, "resume"),
        (state(resume={"pending": False, "tries": 3, "next": 0.0, "at": 0.0}), "stopped", {}, "give-up"),
        (state(resume={"pending": False, "tries": 2, "next": NOW + 1, "at": 0.0}), "stopped", {}, "none"),
        (state(resume={"pending": False, "tries": 2, "next": NOW - 1, "at": 0.0}), "stopped", {}, "resume"),
        (state(), "lost", {"lost_for": rules.RESPAWN - 1}, "none"),
        (state(), "lost", {"lost_for": rules.RESPAWN}, "resume"),
        (state(), "lost", {"lost_for": rules.LOST_DOUBT, "background": False}, "resume"),
        (state(), "idle", {"listening": True}, "ring"),
        (state(since=NOW), "idle", {"listening": True}, "none"),
        (state(), "idle", {}, "restart"),
        (state(since=NOW - 1), "idle", {}, "none"),
        (state(), "idle", {"background": False}, "none"),
        (state(), "working", {"checked_for": rules.CHECK + 1}, "check"),
        (state(), "working", {"checked_for": rules.CHECK - 1}, "none"),
        (state(since=NOW), "working", {"checked_for": rules.CHECK + 1}, "none"),
    ],
)
def test_what_the_coordinator_does_next(
    recorded: State, doing: Any, changed: dict[str, Any], step: str
) -> None:
    assert rules.next_step(recorded, doing, **{**STEP, **changed}) == step


LATER = NOW + 86_400
"""A moment in a record of before the clock was set back a day."""


@pytest.mark.parametrize(
    ("recorded", "doing", "changed", "step"),
    [
        (
            state(resume={"pending": False, "tries": 2, "next": LATER + 5, "at": LATER}),
            "stopped",
            {},
            "resume",
        ),
        (state(resume={"pending": True, "tries": 2, "next": 0.0, "at": LATER}), "stopped", {}, "resume"),
        (state(since=LATER), "idle", {"listening": True}, "ring"),
        (state(since=LATER), "idle", {}, "restart"),
        (state(since=LATER), "working", {"checked_for": rules.CHECK + 1}, "check"),
    ],
)
def test_a_clock_set_back_makes_nobody_wait_until_it_has_caught_up(
    recorded: State, doing: Any, changed: dict[str, Any], step: str
) -> None:
    assert rules.next_step(recorded, doing, **{**STEP, **changed}) == step


def test_a_clock_set_back_leaves_no_session_starting_holding_or_resuming() -> None:
    assert rules.effective(state("starting", since=LATER), NOW, True) == "idle"
    assert rules.effective(state("idle", resume={"pending": True, "at": LATER}), NOW, False) == "lost"
    given: dict[str, Any] = {"armed_by_stop": False, "armed_at": NOW - 5, "held": False, "now": NOW}
    assert rules.waiter_takes(state(holding=LATER), **given)
    assert not rules.waiter_takes(state(holding=NOW + rules.HOLDING), **given)
    mark_in_what_was_left = seen(at=3)
    verdict = rules.settle(
        receipt(), mark_in_what_was_left, alive=True, current=False, state=state(since=LATER), now=NOW
    )
    assert verdict == "requeue"
