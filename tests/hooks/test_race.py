"""The instant between the Stop hook's look and the waiter's arming: no message falls into it, and none comes out twice."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession
from turnpost.core import clock

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

SESSIONS, TRIES = 4, 50


def _race(root: str, folder: Path, seed: int) -> tuple[list[str], list[str], int]:
    """What one session was sent and what it read, in order, and how often the waiter brought it."""
    chance = random.Random(seed)
    sent: list[str] = []
    wakes = 0
    took = 0.03  # a Stop hook's length, on this machine under its load
    with FakeSession(root, folder) as session:
        session.start()
        agent = session.agent
        for number in range(TRIES):
            session.prompt()
            offset = chance.uniform(0.0, 2 * took)

            def later(offset: float = offset, number: int = number) -> None:
                clock.sleep(offset)
                sent.append(spool.send(root, f"number {number}", agent))

            sender = threading.Thread(target=later)
            sender.start()
            took = session.stop().seconds
            sender.join()
            if len(session.read) < len(sent):
                session.wake()
                wakes += 1
            while session.stop().goes_on:
                pass
        assert session.settled(1)
        return sent, session.read, wakes


def test_a_message_between_the_stop_hook_and_the_waiter_is_delivered_once_in_200_tries(
    root: str, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    with ThreadPoolExecutor(SESSIONS) as pool:
        runs = [pool.submit(_race, root, tmp_path / f"s{n}", seed + n) for n in range(SESSIONS)]
        results = [run.result() for run in runs]
    for sent, read, _ in results:
        assert len(sent) == TRIES
        assert read == sent
    # The race was a race: both sides brought some.
    wakes = sum(wakes for _, _, wakes in results)
    assert 0 < wakes < SESSIONS * TRIES
