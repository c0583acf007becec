"""`demo`."""

from __future__ import annotations

import sys

import click

from turnpost.cli import base, columns, render, views
from turnpost.core.errors import HarnessError, TurnpostError
from turnpost.demo.results import Shown

FAILED = 1
"""A demo that did not show what it promises has found a bug."""


@base.command(
    example="""
    turnpost demo
    turnpost demo --version-of-claude 2.1.319
    """
)
@click.option("--version-of-claude", "version", metavar="X", help="Fetch and use exactly this version.")
@click.option("--keep", is_flag=True, help="Leave the folder with all records for a look.")
@click.pass_context
def demo(ctx: click.Context, version: str | None, keep: bool) -> None:
    """Show the main job on the real Claude Code, with no account.

    No network either: a scripted model answers on loopback, all happens in a temporary home. Messages go to an agent that works, one that
    is idle, one that is stopped, one whose session is copied, and one that is killed. Uses `claude` from PATH when it
    is recent enough, else fetches it from npm. Exit 0 only if every message was read exactly once.
    """
    as_json = base.json_wanted(ctx)
    shown = _play(version, keep, as_json)
    render.emit(shown, as_json)
    if not shown.worked:
        ctx.exit(FAILED)


def _play(version: str | None, keep: bool, as_json: bool) -> Shown:
    from turnpost.demo import run
    from turnpost.lab import fetch
    from turnpost.lab.errors import FetchError, LabError
    from turnpost.lab.progress import Progress

    try:
        claude = (
            fetch.fetch_claude(version, Progress()) if version else fetch.find_claude(progress=Progress())
        )
        known = version or fetch.claude_version(claude) or "of unknown version"
        return run.play(claude, known, sys.stderr if as_json else sys.stdout, keep=keep)
    except FetchError as error:
        raise HarnessError(str(error)) from error
    except LabError as error:
        raise TurnpostError(f"the demo could not run: {error}", rule="demo") from error


@views.view.register
def _(result: Shown) -> str:
    rows = [["AGENT", "WAS", "ENTERED BY", "→ MODEL", "→ READ", "SEEN"]]
    rows += [
        [one.agent, one.situation, one.boundary or "-", _ms(one.reached_ms), _ms(one.read_ms), f"{one.seen}×"]
        for one in result.deliveries
    ]
    lines = ["", columns.table(rows, [8, 27, 12, 9, 9]), ""]
    faults = [f"FAILED {one.agent}: expected {one.expected}; seen: {one.seen}" for one in result.failures]
    lines += [columns.paragraph(fault) for fault in faults]
    if result.worked:
        lines.append(f"all {len(result.deliveries)} messages were read exactly once")
    lines.append(f"{result.seconds:.1f} s with Claude Code {result.claude_version}")
    if result.kept:
        lines.append(columns.paragraph(f"the folder was kept: {result.kept}"))
    return "\n".join(lines)


def _ms(millis: int | None) -> str:
    return "-" if millis is None else f"{millis:,} ms"
