"""Load on the real Claude Code: agents, sender processes, and kill -9 of sessions, waiters, hooks, coordinator and senders."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.load.kills import Kills, children, coordinator, killed
from tests.load.traffic import Read, Traffic, Verdict, messages
from tests.long import scale
from tests.real.kit import Post
from turnpost.core import mailbox, outbox, procs, store
from turnpost.lab.fetch import NEWEST
from turnpost.lab.model import ModelRequest, ScriptedModel
from turnpost.lab.world import World
from turnpost.service import process

SENDERS = 8
AGENTS, MESSAGES, KILLS, PAUSE = scale((3, 64, 5, 1.0), (8, 1_000, 100, 4.0))
STANDSTILL = 150.0
"""Seconds in which at least one message must be read. A killed session is back after some ten, or after half a minute; one
whose Stop hook was killed is seen to be idle after a minute, and the look may be half a minute late."""
LOG = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(scale(300, 3600)),
    pytest.mark.parametrize("claude_version", [NEWEST], scope="session"),
]


@pytest.fixture
def post(world: World, model: ScriptedModel) -> Iterator[Post]:
    """turnpost in a fresh world, installed in the project `shop`."""
    made = Post(world, model)
    yield made
    made.close()


def test_nothing_is_lost_twice_or_out_of_order_on_the_real_claude_code(post: Post) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    names = [f"agent-{number}" for number in range(AGENTS)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(post.launch_idle, names))
    traffic = Traffic(
        post.root, post.world.root, post.world.env(), names, seed=seed, senders=SENDERS, each=MESSAGES // SENDERS,
        pause=PAUSE,
    )  # fmt: skip
    kills = Kills(
        chance,
        {
            "session": lambda aimed: _kill_session(post, chance.choice(names), aimed=aimed),
            "waiter": lambda _: _kill_child(post, chance.choice(names), waiter=True),
            "hook": lambda _: _kill_child(post, chance.choice(names), waiter=False),
            "coordinator": lambda _: coordinator(post.root),
            "sender": lambda _: traffic.kill(chance),
        },
    )
    begun = time.monotonic()
    try:
        while traffic.tend():
            if kills.done.total() * MESSAGES < traffic.accepted * KILLS:
                kills.one()
            time.sleep(0.05)
    finally:
        traffic.end()
    sent = time.monotonic()
    _settle(post, names)
    times = f"sent in {sent - begun:.1f} s, read {time.monotonic() - sent:.1f} s later"
    LOG.info("%d messages %s; killed: %s", traffic.accepted, times, dict(kills.done))

    conversations = {name: post.present_requests(name) for name in names}
    read = {name: _messages(requests[-1]) for name, requests in conversations.items()}
    verdict = traffic.judge(read)
    for name, requests in conversations.items():
        for request in requests:
            counts = Counter(one.id for one in _messages(request))
            verdict.twice += [
                f"{one} at {name}, in one request" for one, count in counts.items() if count > 1
            ]
        states = {one.id: post.receipt(name, one.id).state for one in read[name]}
        assert set(states.values()) == {"read"}, states
    assert verdict == Verdict(), f"seed {seed}"
    kills.assert_done(KILLS)


def _messages(request: ModelRequest) -> list[Read]:
    return [one for role, text in request.texts if role != "tool" for one in messages(text)]


def _pid(post: Post, name: str) -> int | None:
    state = store.load_state(post.root, post.key(name))
    return state["pid"] if state is not None and procs.alive(state["pid"], state["token"]) else None


def _kill_session(post: Post, name: str, *, aimed: bool) -> bool:
    """kill -9 of a session; when it is `aimed`, of one to which a message is on its way."""
    pid = _pid(post, name)
    if pid is None or (aimed and not mailbox.Mailbox(post.root, post.key(name)).in_flight()):
        return False
    return killed(pid)


def _kill_child(post: Post, name: str, *, waiter: bool) -> bool:
    """kill -9 of a session's waiter, or of a hook that it waits for."""
    for child in children(_pid(post, name) or 0):
        script, marker = ["", "", *procs.command(child)][-2:]
        if marker == "turnpost" and script.endswith("/waiter.py") == waiter:
            return killed(child)
    return False


def _settle(post: Post, names: list[str]) -> None:
    """Wait until all is read and every agent rests; what a killed sender left half done is finished first."""
    outbox.recover(post.root, 0.0)
    boxes = [mailbox.Mailbox(post.root, post.key(name)) for name in names]
    before, since = -1, time.monotonic()
    while (left := sum(len(box.waiting()) + len(box.in_flight()) for box in boxes)) or not all(
        post.state(name) in ("idle", "stopped") for name in names
    ):
        if left != before:
            before, since = left, time.monotonic()
        assert time.monotonic() - since < STANDSTILL, f"{left} messages stand still: {post.run('agents')}"
        if not process.status(post.root).running:
            post.run("coordinator", "start")  # what a person does whose coordinator was killed
        time.sleep(0.2)
