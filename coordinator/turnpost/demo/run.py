"""One demo from its set-up to the last process it started being gone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

from turnpost.core import clock, render
from turnpost.demo import checks, scenes
from turnpost.demo.results import Delivery, Shown
from turnpost.demo.scenes import Scene
from turnpost.demo.stage import Cut, Stage
from turnpost.demo.timeline import Timeline
from turnpost.lab import processes
from turnpost.lab.errors import LabError
from turnpost.lab.model import ScriptedModel
from turnpost.lab.world import World

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def play(
    claude: Path, version: str, stream: TextIO, *, keep: bool = False, scenery: Sequence[Scene] = scenes.ALL
) -> Shown:
    """Play the scenes on a binary of Claude Code, telling the story on `stream`; nothing is left running.

    Raises LabError when not even the set-up works; what fails in a scene is a failure of the answer.
    """
    timeline = Timeline(stream)
    pool = ThreadPoolExecutor(len(scenery), thread_name_prefix="scene")
    with _interruptible(), ScriptedModel() as model:
        world = World(claude, model.url, keep=keep)
        over = threading.Event()
        try:
            stage = Stage(world, model, timeline, over)
            timeline.tell("-", f"Claude Code {version} in {world.root}, a scripted model on loopback")
            for project in (stage.project, stage.changing):
                stage.command("install", "--project", str(project))
            timeline.tell("-", "turnpost's hooks are installed in two projects")
            jobs = {scene: pool.submit(scene.play, stage, scene.agent) for scene in scenery}
            deliveries = _collected(stage, jobs)
            timeline.tell("-", "cleaning up")
        finally:
            _end(world, over, pool)
    failures = [*stage.failures, *checks.faults(deliveries)]
    failures += checks.missing((d.agent for d in deliveries), (s.agent for s in scenery))
    kept = str(world.root) if keep else None
    return Shown(version, round(timeline.seconds(), 1), tuple(deliveries), tuple(failures), kept)


def _collected(stage: Stage, jobs: dict[Scene, Future[list[str]]]) -> list[Delivery]:
    """The messages of all scenes, looked at when the last scene is over: a second copy would be there by then."""
    sent: list[tuple[Scene, str]] = []
    for scene, job in jobs.items():
        try:
            sent += [(scene, message_id) for message_id in job.result()]
        except Cut:
            raise
        except LabError as error:
            stage.expect(scene.agent, "its scene to end", error, False)
    for agent in dict.fromkeys(scene.agent for scene, _ in sent):
        stage.wait_idle(agent)
    living = {name: str(agent["session_id"]) for name, agent in stage.agents().items()}
    return [_delivery(stage, scene, message_id, living[scene.agent]) for scene, message_id in sent]


def _delivery(stage: Stage, scene: Scene, message_id: str, living: str) -> Delivery:
    receipt = stage.receipt(scene.agent, message_id)
    having = stage.with_mark(message_id)
    last = stage.last_request(living)
    queued, read = clock.parse(receipt["queued_at"]), clock.parse(receipt["read_at"] or "")
    reached = having[0].wall if having else None
    return Delivery(
        scene.agent,
        scene.situation,
        message_id,
        receipt["state"],
        receipt["boundary"],
        None if queued is None else round(queued - stage.timeline.begin_wall, 3),
        _millis(queued, reached),
        _millis(queued, read),
        last.count(render.mark(message_id)) if last else 0,
        len({request.conversation for request in having} - {living}),
    )


def _millis(start: float | None, end: float | None) -> int | None:
    return None if start is None or end is None else round((end - start) * 1000)


def _end(world: World, over: threading.Event, pool: ThreadPoolExecutor) -> None:
    """Nothing of the laboratory lives on. Signals wait until that is done; it is done within a minute at worst."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        over.set()
        world.close()
        # The scenes' commands have ended with their world. One may have been about to start just then.
        pool.shutdown(wait=True, cancel_futures=True)
        processes.end_all(world.home)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interruptible() -> Generator[None]:
    """A terminal that closes, or a polite kill, ends a demo as Ctrl-C does: with everything cleaned up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
