"""`log`."""

from __future__ import annotations

import json
import select
import sys

import click

from turnpost.actions import journal
from turnpost.actions.journal import Query
from turnpost.actions.results import Log
from turnpost.cli import base
from turnpost.core import audit


@base.command(
    example="""
    turnpost log --agent alpha --since 2h
    turnpost log --action refusal --json
    turnpost log --follow
    """
)
@click.option(
    "--agent", metavar="AGENT", shell_complete=base.complete_names,
    help="Only what AGENT did, or what was done to it; also `person`.",
)  # fmt: skip
@click.option("--action", type=click.Choice(audit.ACTIONS), metavar="X", help="Only what is called so.")
@click.option("--since", metavar="TIME", help="Only what is newer: 2026-11-30, 2026-11-30T14:02:11Z, 2h.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=journal.NEWEST, show_default=True, metavar="N",
    help="At most the newest N.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Go on with what is added until Ctrl-C.")
@click.pass_context
def log(
    ctx: click.Context, agent: str | None, action: str | None, since: str | None, limit: int, follow: bool
) -> Log | None:
    """Show what happened: sends, refusals, claims, reads, holds.

    Each line says from whom, to whom and in which direction; bodies are not in it. `--follow --json` prints a document
    a line.
    """
    query = Query(agent, action, since)
    if not follow:
        return journal.entries(base.root(), query, newest=limit)
    try:
        _follow(query, limit, as_json=base.json_wanted(ctx))
    except KeyboardInterrupt:
        pass  # the way to end it
    return None


def _follow(query: Query, limit: int, *, as_json: bool) -> None:
    from turnpost.cli import render, views

    for entry in journal.follow(base.root(), query, newest=limit, going=_somebody_reads):
        click.echo(json.dumps(render.data(entry)) if as_json else views.view(entry))
        sys.stdout.flush()


def _somebody_reads() -> bool:
    """Whether the pipe's other end is open: without a new line there is no write that would tell."""
    ends = select.poll()
    ends.register(sys.stdout.fileno(), 0)
    return not ends.poll(0)
