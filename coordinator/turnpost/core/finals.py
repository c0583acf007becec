"""Holding a parent's last answer back while its children work, so that it comes after their results.

Bounded twice: one step takes at most the seconds that `launch` wrote into the flag, and every further step is a block
of the turn's end, of which there are few.
"""

from __future__ import annotations

from turnpost.core import clock, files, home, procs, registry, reporting, rules, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Agent

STEP = 30.0
"""Seconds of one step, unless the person set another number. The Stop hook's own time limit must be longer."""
LOOK = 0.1


def switch_on(root: str, key: str, seconds: float) -> None:
    """Hold this agent's last answers back, for at most so many seconds a step."""
    files.write(home.hold_final(root, key), store.pack({"v": 1, "seconds": seconds}))


def step(root: str, key: str) -> float:
    """Seconds of one step of this agent."""
    found = store.if_known(store.load, home.hold_final(root, key), {"seconds": float})
    return min(float(found["seconds"]) if found else STEP, rules.HOLDING)


def wait(root: str, key: str) -> list[str]:
    """Wait, at most a step, until something came for the agent or no child works any more; the names of those that still do then."""
    children = [agent for agent in registry.everyone(root) if agent["parent"] == key]
    end = clock.monotonic() + step(root, key)
    queue = home.agent(root, key) + "/queue"
    while (
        busy := [child["name"] for child in children if store.if_known(works, root, child)]
    ) and not files.names(queue):
        if clock.monotonic() >= end:
            break
        clock.sleep(LOOK)
    return busy


def works(root: str, child: Agent) -> bool:
    """Whether something may still come from a child: it is in a turn, has mail for one, or its report is on its way."""
    key = child["key"]
    if reporting.waiting(root, key):
        return True
    state, now = store.load_state(root, key), clock.now()
    doing = rules.effective(state, now, state is not None and procs.alive(state["pid"], state["token"]))
    if doing in ("starting", "working", "blocked"):
        return True
    if files.exists(home.agent(root, key) + "/hold"):
        return False
    return bool(doing == "idle" and state and state.get("due")) or bool(
        files.names(home.agent(root, key) + "/queue")
    )
