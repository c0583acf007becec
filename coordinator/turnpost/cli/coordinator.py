"""`coordinator run|start|stop|status`."""

from __future__ import annotations

import click

from turnpost.actions import coordinating, left_out
from turnpost.actions.results import CoordinatorView
from turnpost.cli import base


@click.group(epilog="\b\nExample:\n  turnpost coordinator status")
def coordinator() -> None:
    """The one long-running process, which resumes stopped agents.

    `send` starts it when a message needs it and none runs.
    """


@coordinator.command(cls=base.Command, example="turnpost coordinator run")
@left_out.noted()  # it goes on silently, and the log has them
def run() -> None:
    """Be the coordinator, in the foreground, until Ctrl-C."""
    coordinating.run(base.root())


@coordinator.command(cls=base.Command, example="turnpost coordinator start")
def start() -> CoordinatorView:
    """Start it in the background if none runs."""
    return coordinating.start(base.root())


@coordinator.command(cls=base.Command, example="turnpost coordinator stop")
def stop() -> CoordinatorView:
    """End it; the next send starts one again."""
    return coordinating.stop(base.root())


@coordinator.command(cls=base.Command, example="turnpost coordinator status --json")
def status() -> CoordinatorView:
    """Whether it runs, and since when."""
    return coordinating.status(base.root())
