"""`export`."""

from __future__ import annotations

import os
import sys

import click

from turnpost.actions import exporting
from turnpost.actions.results import Exported
from turnpost.cli import base
from turnpost.core.errors import UsageError


@base.command(
    example="""
    turnpost export -o messages.jsonl
    turnpost export --thread alpha --since 2026-11-01 | jq .body
    """
)
@click.option("--since", metavar="TIME", help="Only what is newer: 2026-11-30, 2026-11-30T14:02:11Z, 2h, 3d.")
@click.option("--until", metavar="TIME", help="Only what is older.")
@click.option(
    "--thread", "threads", multiple=True, metavar="T", shell_complete=base.complete_threads,
    help="Only what stands in T; can be given several times.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="FILE", default="-", show_default=True, help="Where to write; - is stdout."
)
@click.pass_context
def export(
    ctx: click.Context, since: str | None, until: str | None, threads: tuple[str, ...], output: str
) -> Exported | None:
    """Write all messages, archived ones too, as JSON Lines.

    The oldest first, with their receipts. Each line is the document of `turnpost show ID --json`. With --json, what was written
    is told in a document, so -o must name a file.
    """
    if output != "-":
        path = os.path.abspath(output)
        return exporting.export_to(base.root(), path, since=since, until=until, threads=threads)
    if base.json_wanted(ctx):
        raise UsageError(
            "the messages and the document of --json cannot both go to stdout; name a file with -o"
        )
    done = exporting.export(base.root(), sys.stdout.buffer.write, since=since, until=until, threads=threads)
    sys.stdout.buffer.flush()
    for warning in done.warnings:
        click.echo(f"warning: {warning}", err=True)
    return None
