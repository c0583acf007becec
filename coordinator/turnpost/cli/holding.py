"""`stop`, `hold`, `release`, `wake`."""

from __future__ import annotations

import click

from turnpost.actions.results import Held, Woken
from turnpost.cli import base

_agent = click.argument("agent", shell_complete=base.complete_names)


@base.command(example="turnpost stop alpha")
@_agent
def stop(agent: str) -> Held:
    """End an agent's session.

    Done by you it is a hold too: what is sent to it waits, and only your own next message, `release` or `wake` starts
    it again. A parent may stop its own child.
    """
    from turnpost.actions import stopping

    return stopping.stop(base.root(), agent)


@base.command(example="turnpost hold alpha")
@_agent
def hold(agent: str) -> Held:
    """Let messages to an agent wait until you release it."""
    from turnpost.actions import holding

    return holding.hold(base.root(), agent)


@base.command(example="turnpost release alpha")
@_agent
def release(agent: str) -> Held:
    """Lift a hold; what waited is delivered."""
    from turnpost.actions import holding

    return holding.release(base.root(), agent)


@base.command(
    takes_text=True,
    example="""
    turnpost wake alpha "go on with the second part"
    turnpost wake 1f3a9c02-5d1e-4c7b-9a55-0e6f8a1b2c3d "what did you find?"
    """,
)
@click.argument("target", metavar="AGENT|SESSION", shell_complete=base.complete_names)
@click.argument("body", metavar="[BODY|-]", required=False, callback=base.read_text)
def wake(target: str, body: str | None) -> Woken:
    """Wake an agent, held or not, with BODY or a fixed note.

    A session that turnpost does not know is forked: the copy gets the message and goes on under an id of its own, and
    the session itself stays as it is.
    """
    from turnpost.actions import holding

    return holding.wake(base.root(), target, body)
