"""`wait`."""

from __future__ import annotations

import click

from turnpost.actions import waiting
from turnpost.actions.results import Waited
from turnpost.cli import base, progress


@base.command(
    example="""
    turnpost wait msg-01JD3QK8V5T0YF6Z2M9XWB4C7R --timeout 30
    turnpost wait alpha --for idle --timeout 10
    """
)
@click.argument("target", shell_complete=base.complete_names)
@click.option(
    "--for", "goal", type=click.Choice(waiting.GOALS), help="Default: read for an ID, idle for an agent."
)
@click.option(
    "--timeout", type=float, metavar="S", default=1.0, show_default=True, help="Seconds, at most 30."
)
@click.pass_context
def wait(ctx: click.Context, target: str, goal: str | None, timeout: float) -> Waited:
    """Wait for a message to be read or answered, or for an agent.

    TARGET is a message's ID or an agent's name; `--for message` waits for one from that agent to you (`person`: from
    anybody). Prints the result, or after the timeout how things stand, with exit code 5.
    """
    with progress.Progress(quiet=base.json_wanted(ctx)) as shown:
        return waiting.wait(base.root(), target, goal, timeout=timeout, on_look=shown.waited)
