"""`summary`."""

from __future__ import annotations

import click

from turnpost.actions import conversations, summarizing
from turnpost.actions.results import Summary
from turnpost.cli import base


@base.command(
    example="""
    turnpost summary alpha
    turnpost summary alpha+beta --last 20 --json
    """
)
@click.argument("thread", metavar="THREAD", shell_complete=base.complete_threads)
@click.option(
    "--last", "newest", type=click.IntRange(min=1), default=conversations.NEWEST, show_default=True, metavar="N",
    help="At most the newest N messages.",
)  # fmt: skip
def summary(thread: str, newest: int) -> Summary:
    """Ask Claude Code once what a thread comes to.

    Says what it cost. Its text goes to the model that your Claude Code uses. Nothing else of turnpost's ever does that by itself.
    """
    return summarizing.summary(base.root(), thread, newest=newest)
