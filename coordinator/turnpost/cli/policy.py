"""`policy check`."""

from __future__ import annotations

from typing import get_args

import click

from turnpost.actions import policies
from turnpost.actions.results import PolicyVerdict
from turnpost.cli import base
from turnpost.core.routing import Power


@click.group(epilog="\b\nExample:\n  turnpost policy check alpha beta")
def policy() -> None:
    """Who may write to whom. Your own decisions stand in policy.toml in turnpost's folder."""


@policy.command(
    cls=base.Command,
    example="""
    turnpost policy check alpha beta
    turnpost policy check alpha person --json
    turnpost policy check lead alpha --for control
    """,
)
@click.argument("from_", metavar="FROM", shell_complete=base.complete_names)
@click.argument("to", metavar="TO", shell_complete=base.complete_names)
@click.option(
    "--for", "may", type=click.Choice(get_args(Power)), default="write", show_default=True,
    help="What FROM would do: write and wait, or stop, hold, release and rename.",
)  # fmt: skip
def check(from_: str, to: str, may: Power) -> PolicyVerdict:
    """Explain whether FROM may write to TO, and which rule says so.

    Exit code 0 for either verdict; 2 for a policy.toml that cannot be used.
    """
    return policies.check(base.root(), from_, to, may)
