"""The rules of delivery as pure functions of records and the time. No file, no process, no clock."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from turnpost.core.records import Boundary, Doing, Receipt, State
    from turnpost.core.transcript import Seen

    Step = Literal["none", "ring", "check", "resume", "restart", "retire", "give-up"]

CONTEXT_UNITS = 9_000
"""Room for text in a hook's additionalContext, UTF-16 units: the harness turns 10,000 into a preview."""
REWAKE_UNITS = 40_000
"""Room in a waiter's stderr: measured to arrive whole at this size; one longer message goes alone."""
LEASE = 15.0
"""Seconds a claim holds without its mark in the transcript. A text is there within a second or was lost."""
STOP_BLOCKS = 5
"""Stop hooks of one turn that may block. The harness ignores the ninth; other people's hooks count too."""
HOLDING = 50.0
"""Seconds that one step of a Stop hook may hold a turn's end back at most."""
START_GRACE = 15.0
"""Seconds a session that starts may take to its first prompt before it counts as idle."""
IDLE_DOUBT = 1.5
"""Seconds after which a waiter believes the Stop that armed it although the Stop hook recorded nothing."""
DEAF_GRACE = 5.0
"""Seconds an idle agent may be without a waiter: the new one starts while the old one ends."""
RESPAWN = 25.0
"""Seconds the background service may take to bring back a killed session; measured 8 to 14."""
LOST_DOUBT = 1.0
"""Seconds a session without a process is only thought lost."""
RESUME_PENDING = 60.0
"""Seconds after which the note of a resume under way is a dead coordinator's."""
RESUME_ORPHAN = 5.0
"""Seconds a session may take to show itself after a resume whose coordinator was killed: a second one makes a copy."""
CHECK = 2.0
"""Seconds a message waits for a working agent before Claude Code is asked whether it really works."""
SILENT = 60.0
"""Seconds without a word of its hooks or in its transcript after which it is asked whether a session without mail still works."""
REMIND = 20.0
"""Seconds after which an idle agent is reminded of a message that entered but was not answered."""
REMINDERS = 3
"""Times an agent is reminded of one message."""
NUDGES = 3
"""Times an agent is woken for one message that its prompt hook is to bring; after that the waiter brings it."""
DELIVERIES = 5
"""Times a message is handed over without proof before it counts as undeliverable."""


def age(moment: float, now: float) -> float:
    """Seconds since a moment in a record. One from the future was written before the clock was set back: it is for ever ago.

    A record may be a little younger than the `now` that it is held against.
    """
    passed = now - moment
    return max(0.0, passed) if passed > -1.0 else float("inf")


def effective(state: State | None, now: float, alive: bool) -> Doing:
    """What the session does, given what its hooks recorded and whether its process lives."""
    if state is None:
        return "starting"
    if state["doing"] == "stopped":
        return "stopped"
    if not alive:
        return "starting" if _resume_pending(state, now) else "lost"
    if state["doing"] == "starting" and age(state["since"], now) > START_GRACE:
        return "idle"
    return state["doing"]


def listed(status: str | None) -> Literal["idle", "blocked"] | None:
    """What Claude Code's own list tells of a running session that its hooks may not have told; None for nothing."""
    return "idle" if status == "idle" else "blocked" if status == "waiting" else None


def stop_may_block(stops: int, cap: int) -> bool:
    """Whether this Stop of the turn (the `stops`th) may still block, under the harness's cap on consecutive blocks."""
    return stops <= min(STOP_BLOCKS, cap - 3) if cap > 3 else stops < cap


def waiter_takes(
    state: State | None,
    *,
    armed_by_stop: bool,
    armed_at: float,
    held: bool,
    now: float,
    armed_by_prompt: bool = False,
) -> bool:
    """Whether a live waiter may claim now: only while the session is idle.

    What comes in mid-turn is left to PostToolBatch and Stop, which claim at the last moment; a text the harness holds
    for a running turn would be lost with it. A Stop hook that failed records nothing; the waiter armed by the same
    Stop knows better after a moment. One that blocked records that too, and may be done before the waiter has begun:
    only a record that is clearly older than the waiter shows a failure then. With a waiter armed by a prompt a turn
    begins, whose hook may not have recorded it yet. While a Stop hook holds the turn's end, it takes what comes itself.
    """
    if held or state is None or 0.0 < state.get("holding", 0.0) - now <= HOLDING:
        return False
    doing = effective(state, now, True)
    if armed_by_prompt and state["since"] < armed_at and now - armed_at < START_GRACE:
        return False
    failed_before = armed_at - (IDLE_DOUBT if state["stops"] else 0.0)
    if (
        doing == "working"
        and armed_by_stop
        and state["since"] < failed_before
        and now - armed_at > IDLE_DOUBT
    ):
        return True
    return doing == "idle"


def settle(
    receipt: Receipt, seen: Seen, *, alive: bool, current: bool, state: State | None, now: float
) -> Literal["read", "delivered", "keep", "requeue"]:
    """What becomes of a claim, from what the transcripts show.

    `alive`: the session process that took the text still runs. `current`: the claim's session is the agent's present
    one, or the present transcript shows the mark as well.
    """
    claim = receipt.get("claim")
    if seen.read_at is not None:
        return "read"
    if seen.at >= 0 and seen.rewound:
        return "requeue"
    if seen.at >= 0:
        # In a conversation that was cleared away nobody will read it; a fresh copy may still be writing its history.
        cleared = state is not None and (state["source"] == "clear" or age(state["since"], now) > 2 * LEASE)
        return "requeue" if not current and cleared else "delivered"
    if claim is None:
        return "requeue"
    if claim["pid"] and not alive:
        return "requeue"
    if now < claim["until"] or (seen.enqueued and alive):
        return "keep"
    # A rewake or a prompt into a turn, or behind a permission prompt, is held by the harness until the next request.
    waits = receipt["boundary"] in ("rewake", "next-request", "prompt") and state is not None
    return (
        "keep"
        if waits and current and state is not None and state["doing"] in ("working", "blocked")
        else "requeue"
    )


def predict(
    doing: Doing, *, urgent: bool, held: bool, listening: bool, background: bool, quiet: bool = False
) -> Boundary:
    """The boundary a message sent now is expected to take, told to its sender. A `quiet` one waits for somebody else's."""
    if held:
        return "held"
    if doing in ("stopped", "lost"):
        return "prompt" if quiet else "resume"
    if doing == "starting":
        return "prompt"
    if doing == "blocked":
        return "next-request"
    if doing == "working":
        return "next-request" if urgent else "stop-block"
    return "rewake" if listening else "resume" if background and not quiet else "prompt"


def next_step(
    state: State,
    doing: Doing,
    *,
    pressing: bool,
    held: bool,
    listening: bool,
    background: bool,
    retire: bool,
    attempts: int,
    lost_for: float,
    checked_for: float,
    now: float,
    orphan_for: float = RESUME_ORPHAN,
) -> Step:
    """What the coordinator does next for an agent with mail.

    `pressing`: something waits, or entered and was never answered. `lost_for` and `checked_for`: seconds since the
    agent was first seen without its process, and since Claude Code was last asked about it. `orphan_for`: seconds since
    the command of a resume that another coordinator began was last alive. `attempts`: resumes that may fail in a row.
    """
    if retire:
        return "retire"
    if held or not pressing:
        return "none"
    resume = state.get("resume")
    if resume and resume["pending"] and orphan_for < RESUME_ORPHAN:
        return "none"
    if resume and not resume["pending"]:
        if resume["tries"] >= attempts:
            return "give-up"
        if resume["at"] <= now < resume["next"]:
            return "none"
    quiet = age(state["since"], now)
    if doing in ("stopped", "lost"):
        # Killed, a background session is brought back by its service; a resume beside that would make a copy.
        patience = 0.0 if doing == "stopped" else RESPAWN if background else LOST_DOUBT
        return "resume" if lost_for >= patience else "none"
    if doing == "idle":
        return _wake_step(quiet, listening, background)
    return "check" if quiet > CHECK and checked_for > CHECK else "none"


def without_resume(step: Step) -> Step:
    """A step for an agent whose mission is over: nothing starts its session again, and what waits for one that is gone
    is given up at once, so that its senders learn it.
    """
    return "give-up" if step == "resume" else "none" if step == "restart" else step


def _wake_step(quiet: float, listening: bool, background: bool) -> Step:
    """What an idle agent with mail needs: its waiter takes it by itself, unless there is none."""
    if listening:
        return "ring" if quiet > 1.0 else "none"
    return "restart" if background and quiet > DEAF_GRACE else "none"


def backoff(tries: int, base: float) -> float:
    """Seconds to wait after the `tries`th failed resume: doubling, at most ten minutes."""
    return float(min(600.0, base * 2 ** max(0, tries - 1)))


def _resume_pending(state: State, now: float) -> bool:
    resume = state.get("resume")
    return bool(resume and resume["pending"] and age(resume["at"], now) < RESUME_PENDING)
