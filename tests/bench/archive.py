"""What 1,000 agents and 1,000,000 archived messages cost a send, a claim, the list of agents and a coordinator's round."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import Measured
from tests.bench.rounds import NotMeasured, alternate
from turnpost.actions import agents as listing
from turnpost.actions import courier, sending
from turnpost.core import (
    archive,
    clock,
    files,
    home,
    ids,
    mailbox,
    outbox,
    procs,
    registry,
    rules,
    store,
    threads,
)
from turnpost.core.mailbox import Mailbox
from turnpost.core.records import TYPE_CHECKING
from turnpost.core.sender import Speaker
from turnpost.lab.progress import Progress
from turnpost.service.loop import Coordinator

if TYPE_CHECKING:
    from turnpost.core.records import Agent, State

AGENTS, QUICK_AGENTS = 1000, 100
MESSAGES, QUICK_MESSAGES = 1_000_000, 20_000
DAYS, QUICK_DAYS = 200, 10
ROUNDS, QUICK = 60, 10
EACH = 5
"""Operations in one measurement of a round."""
LIMIT = 1.2
_BODY = "The tests pass again: the fixture closed the file before the reader was done. " * 4
_PERSON = Speaker(registry.unsaved_person())
Part = Callable[[], float]


def people(root: str, count: int) -> list[Agent]:
    """Agents that are idle, in sessions that this process stands for."""
    registry.prepare(root)
    made = []
    with _unsynced():
        for number in range(count):
            agent = registry.create_agent(
                root, f"agent-{number}", kind="registered", cwd="/shop", project="/shop"
            )
            state: State = {
                "v": 1, "doing": "idle", "since": clock.now(), "session_id": f"{number:08d}-0000", "pid": os.getpid(),
                "token": procs.token(os.getpid()), "transcript": "", "cwd": "/shop", "stops": 0, "source": "startup",
            }  # fmt: skip
            store.save_state(root, agent["key"], state)
            made.append(agent)
    return made


def build(root: str, agents: list[Agent], *, messages: int, days: int) -> None:
    """Make so many messages that are over, in packed days that lie behind us, as the coordinator leaves them."""
    files.mkdir(home.archive(root))
    files.mkdir(home.threads(root))
    share = messages // days
    today = clock.now() // 86_400 * 86_400
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(_day, root, agents, today - (10 + back) * 86_400, share + (back < messages % days))
            for back in range(days)
        ]
        for job in jobs:
            job.result()
    if len(archive.sizes(root)) != days:
        raise NotMeasured("the archive was not built")


def _day(root: str, agents: list[Agent], begin: float, count: int) -> None:
    """One packed day, and the notes of its messages in their threads."""
    person = registry.party(registry.unsaved_person())
    day = clock.day(begin)
    with zipfile.ZipFile(home.packed(root, day), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for number in range(count):
            agent = agents[number % len(agents)]
            message = outbox.compose(person, [registry.party(agent)], f"{_BODY}{number}")
            moment = begin + 86_400 * (number + 0.5) / count
            message["id"] = message["origin"] = ids.new("msg", moment)
            message["sent"] = moment
            receipt = {
                "v": 1, "id": message["id"], "state": "read", "queued_at": moment, "claimed_at": moment, "delivered_at": moment,
                "read_at": moment, "boundary": "rewake", "session_id": "0", "attempts": 1, "digest": "", "claim": None,
            }  # fmt: skip
            record = {"v": 1, "message": message, "receipts": {agent["key"]: receipt}, "replies": []}
            made.writestr(zipfile.ZipInfo(message["id"]), store.pack(record), zipfile.ZIP_DEFLATED)
            threads.index(root, message)
    os.chmod(home.packed(root, day), 0o600)


class Place:
    """A home, in which the same things are done again and again and leave nothing that waits."""

    def __init__(self, root: str, count: int) -> None:
        self.root = root
        self.agents = people(root, count)
        self.one = self.agents[0]
        self.box = Mailbox(root, self.one["key"])
        self.coordinator = Coordinator(root)
        self.coordinator.round()

    def send(self) -> float:
        """Milliseconds of one send."""
        took = 0.0
        for _ in range(EACH):
            begin = time.perf_counter()
            sent = sending.send(self.root, [self.one["name"]], _BODY, speaker=_PERSON)
            took += time.perf_counter() - begin
            self._end(sent.id)
        return took * 1000 / EACH

    def claim(self) -> float:
        """Milliseconds of CPU of one claim of one message."""
        took = 0.0
        for _ in range(EACH):
            sent = sending.send(self.root, [self.one["name"]], _BODY, speaker=_PERSON).id
            begin = time.process_time()
            with self.box.lock():
                claim = mailbox.make_claim(0, "")
                came = self.box.claim(
                    "stop-block", rules.CONTEXT_UNITS, claim, recipient=self.one["name"], session_id="0"
                )
            took += time.process_time() - begin
            if len(came) != 1:
                raise NotMeasured("nothing was claimed")
            self._end(sent)
        return took * 1000 / EACH

    def list(self) -> float:
        """Milliseconds of CPU of a list of all agents."""
        begin = time.process_time()
        found = listing.agents(self.root).agents
        took = time.process_time() - begin
        if len(found) != len(self.agents):
            raise NotMeasured(f"{len(found)} of {len(self.agents)} agents were listed")
        return took * 1000

    def round(self) -> float:
        """Milliseconds of CPU of a round of the coordinator while one message waits."""
        sent = sending.send(self.root, [self.one["name"]], _BODY, speaker=_PERSON).id
        self.coordinator._kept = clock.monotonic()
        begin = time.process_time()
        for _ in range(EACH):
            self.coordinator.round()
        took = time.process_time() - begin
        self._end(sent)
        return took * 1000 / EACH

    def housekeeping(self) -> float:
        """Milliseconds of CPU of a housekeeping, which runs beside the rounds."""
        begin = time.process_time()
        self.coordinator._keep_house()
        return (time.process_time() - begin) * 1000

    def _end(self, message_id: str) -> None:
        with self.box.lock():
            if not self.box.end(message_id, "read", on_its_way=True):
                raise NotMeasured("the message did not wait")


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """A home with the agents and the archive, against the same agents without one, and against one agent."""
    count = QUICK_AGENTS if quick else AGENTS
    messages, days = (QUICK_MESSAGES, QUICK_DAYS) if quick else (MESSAGES, DAYS)
    folder = Path(tempfile.mkdtemp(prefix="tp-", dir="/tmp")).resolve()
    ensure = courier.ensure
    courier.ensure = lambda root: ()
    try:
        progress.update(f"archive: {messages} messages of {count} agents are made")
        full, crowd, lone = (
            Place(str(folder / name), number)
            for name, number in (("full", count), ("crowd", count), ("lone", 1))
        )
        build(full.root, full.agents, messages=messages, days=days)
        places = {"full": full, "crowd": crowd, "lone": lone}
        parts: dict[str, Part] = {
            f"{what} {name}": functools.partial(getattr(Place, what), place)
            for what in ("send", "claim", "list", "round", "housekeeping")
            for name, place in places.items()
            if name != "lone" or what in ("send", "claim", "round")
        }
        for part in parts.values():
            part()
        found = alternate("archive", QUICK if quick else ROUNDS, parts, progress)
    finally:
        courier.ensure = ensure
        shutil.rmtree(folder, ignore_errors=True)
    names = {"list": "agents", "round": "coordinator round"}
    yardsticks = {"crowd": f"{count} agents, none archived", "lone": "one agent, none archived"}
    return [
        Measured(
            f"{names.get(what, what)}, archive",
            "ms",
            found[f"{what} full"],
            yardsticks[name],
            found[f"{what} {name}"],
            ratio_limit=LIMIT,
        )
        for name in yardsticks
        for what in ("send", "claim", "list", "round", "housekeeping")
        if f"{what} {name}" in found
    ]


@contextmanager
def _unsynced() -> Iterator[None]:
    """Without fsync: what is only built to measure in needs to survive nothing."""
    fsync = os.fsync
    os.fsync = lambda fd: None
    try:
        yield
    finally:
        os.fsync = fsync
