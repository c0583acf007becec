"""`mission start|add|finish|abort|show`."""

from __future__ import annotations

import click

from turnpost.actions import missions
from turnpost.actions.results import Missions, MissionView
from turnpost.cli import base

_name = click.argument("name", metavar="MISSION")
_reason = click.argument("reason", metavar="[REASON|-]", required=False, callback=base.read_text)


@click.group(epilog="\b\nExample:\n  turnpost mission show")
def mission() -> None:
    """Common tasks: every agent in one may write to every other.

    A mission that is finished or aborted stays so: its agents are never resumed again, by nobody's message.
    """


@mission.command(
    cls=base.Command,
    takes_text=True,
    example="""
    turnpost mission start release "Version 2 is out, with notes"
    turnpost mission start audit - --coordinator lead --agent alpha < goal.md
    """,
)
@_name
@click.argument("goal", metavar="[GOAL|-]", required=False, callback=base.read_text)
@click.option(
    "--coordinator", metavar="AGENT", shell_complete=base.complete_names,
    help="The agent that leads it: it and the members write to each other, and it may add, finish and abort.",
)  # fmt: skip
@click.option(
    "--agent", "members", metavar="AGENT", multiple=True, shell_complete=base.complete_names,
    help="An agent that is in it; repeatable.",
)  # fmt: skip
def start(name: str, goal: str | None, coordinator: str | None, members: tuple[str, ...]) -> MissionView:
    """Start a mission. An agent that starts one is its coordinator."""
    return missions.start(base.root(), name, goal, coordinator=coordinator, members=members)


@mission.command(cls=base.Command, example="turnpost mission add release alpha beta")
@_name
@click.argument("agents", metavar="AGENT...", nargs=-1, required=True, shell_complete=base.complete_names)
def add(name: str, agents: tuple[str, ...]) -> MissionView:
    """Take agents into a mission. An agent is in one at a time."""
    return missions.add(base.root(), name, [one for word in agents for one in word.split(",") if one])


@mission.command(cls=base.Command, takes_text=True, example="turnpost mission finish release")
@_name
@_reason
def finish(name: str, reason: str | None) -> MissionView:
    """End a mission that is done; its agents are told nothing."""
    return missions.finish(base.root(), name, reason)


@mission.command(
    cls=base.Command, takes_text=True, example='turnpost mission abort release "the deadline has moved"'
)
@_name
@_reason
def abort(name: str, reason: str | None) -> MissionView:
    """Break a mission off; its live agents are told to stop working on it."""
    return missions.abort(base.root(), name, reason)


@mission.command(
    cls=base.Command,
    example="""
    turnpost mission show release
    turnpost mission show --json
    """,
)
@click.argument("name", metavar="[MISSION]", required=False)
def show(name: str | None) -> MissionView | Missions:
    """Show a mission and its agents, or all missions."""
    return missions.everyone(base.root()) if name is None else missions.show(base.root(), name)
