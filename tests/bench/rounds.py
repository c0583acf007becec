"""Measures things in turns, so that whatever else the machine does meanwhile meets all of them alike."""

from __future__ import annotations

import random
import select
import subprocess
import time
from collections.abc import Callable, Mapping

from turnpost.lab.progress import Progress

PATIENCE = 60.0
"""Seconds after which what should have happened counts as failed, on however loaded a machine."""


class NotMeasured(Exception):
    """Something that was to be measured did not happen, or not as it should."""


def alternate(
    name: str, count: int, parts: Mapping[str, Callable[[], float]], progress: Progress
) -> dict[str, tuple[float, ...]]:
    """`count` rounds; each runs every part once, in an order drawn anew."""
    found: dict[str, list[float]] = {part: [] for part in parts}
    for number in range(1, count + 1):
        progress.update(f"{name}: round {number} of {count}")
        order = list(parts)
        random.shuffle(order)
        for part in order:
            found[part].append(parts[part]())
    return {part: tuple(values) for part, values in found.items()}


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process with little to say on its stdout, a pipe; its exit code.

    Not by `wait` with a timeout, which asks ever more seldom: it finds an end of 9 ms after 15.5 and one of 17 after 31.5.
    """
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], PATIENCE)[0]:
        process.kill()
        raise NotMeasured(f"{process.args!r} did not end within {PATIENCE:g} s")
    return process.wait()


def until(look: Callable[[], object], what: str, pause: float = 0.02) -> None:
    """Wait until `look` is true. Raises NotMeasured when that takes too long."""
    end = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > end:
            raise NotMeasured(f"not within {PATIENCE:g} s: {what}")
        time.sleep(pause)


def settle(least: float = 0.4) -> None:
    """Let what has just ended come to rest, for a time that is in step with nobody's polling."""
    time.sleep(least + random.uniform(0.0, 0.4))
