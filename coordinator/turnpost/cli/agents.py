"""`agents` and `rename`."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

import click

from turnpost.actions import agents as known
from turnpost.actions.results import Agents, Renamed
from turnpost.cli import base

if TYPE_CHECKING:
    from turnpost.actions.results import AgentView

_HOME = "\x1b[H\x1b[J"
_ROUND = 0.5
"""Seconds between two looks of `--watch`."""


@base.command(
    example="""
    turnpost agents --json
    turnpost agents --watch
    """
)
@click.option("--watch", is_flag=True, help="Go on showing changes until Ctrl-C.")
@click.pass_context
def agents(ctx: click.Context, watch: bool) -> Agents | None:
    """List the agents: what they do, and what waits for them."""
    if not watch:
        return known.agents(base.root())
    if base.json_wanted(ctx):
        raise click.UsageError(
            "--watch never ends and --json is one document; call `agents --json` again instead", ctx
        )
    try:
        _watch()
    except KeyboardInterrupt:
        pass  # the way to end it
    return None


@base.command(example="turnpost rename myproject-1f3a9c02 alpha")
@click.argument("agent", shell_complete=base.complete_names)
@click.argument("new", metavar="NEW")
def rename(agent: str, new: str) -> Renamed:
    """Give an agent another name."""
    return known.rename(base.root(), agent, new)


def _watch() -> None:
    """On a terminal the list is drawn anew; in a pipe each change is a line."""
    from turnpost.cli import views
    from turnpost.core import clock

    live = sys.stdout.isatty()
    before: dict[str, str] = {}
    drawn: Agents | None = None
    while not _nobody_reads():
        now = known.agents(base.root())
        if live and now != drawn:
            click.echo(_HOME + views.view(now))
        elif not live:
            for agent in now.agents:
                _tell_change(before, agent, clock.rfc3339(clock.now()))
        drawn = now
        clock.sleep(_ROUND)


def _nobody_reads() -> bool:
    """Whether the pipe's other end is closed: without a change there is no write that would tell."""
    ends = select.poll()
    ends.register(sys.stdout.fileno(), 0)
    return bool(ends.poll(0))


def _tell_change(before: dict[str, str], agent: AgentView, moment: str | None) -> None:
    from turnpost.cli import views

    line = f"{agent.name} {views.doing(agent)} waiting={agent.waiting}"
    if before.get(agent.name) != line:
        before[agent.name] = line
        click.echo(f"{moment} {line}")
        sys.stdout.flush()
