"""What it takes from a send to an agent that has ended to the model request that carries it, against a bare resume."""

from __future__ import annotations

from tests.bench.figures import Measured
from tests.bench.ground import Ground
from tests.bench.places import stamped
from tests.bench.rounds import NotMeasured, alternate
from turnpost.core import render, store
from turnpost.lab.progress import Progress

ROUNDS, QUICK, LIMIT = 7, 2, 1.3
RESUME = "claude --bg --resume"


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """From the end of `send` to the request, to an agent that was stopped and is gone."""
    with Ground(progress) as ground:
        key = ground.launch("sigma")
        bare = ground.bare("tau", {})
        parts = {"send": lambda: _send(ground, key), RESUME: lambda: _resume(ground, bare)}
        found = alternate("stopped", QUICK if quick else ROUNDS, parts, progress)
    return [
        Measured("resume of a stopped one", "ms", found["send"], RESUME, found[RESUME], ratio_limit=LIMIT)
    ]


def _send(ground: Ground, key: str) -> float:
    """Stop the agent, wait until it is gone, send; milliseconds from the end of the command."""
    ground.until_idle(key)
    state = store.load_state(ground.root, key)
    if state is None:
        raise NotMeasured("a running agent without a state")
    ground.stop(state["session_id"])
    message_id, end = ground.send_by_command(key)
    return (ground.read(key, message_id).monotonic - end) * 1000


def _resume(ground: Ground, session_id: str) -> float:
    """Stop a bare session, wait until it is gone, resume it; milliseconds from the start of the command."""
    ground.stop(session_id)
    command = [str(ground.world.claude_path), "--bg", "--resume", session_id]
    nudge = f"{render.NUDGE} {ground.mark()}"
    begin, _ = stamped(command, cwd=ground.shop, env=ground.world.env(), input=nudge)
    request = ground.carried(nudge)
    if request.session_id != session_id:
        raise NotMeasured(f"the resume of {session_id} made a copy")
    return (request.monotonic - begin) * 1000
