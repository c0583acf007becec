"""`threads`, `thread`, `search`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from turnpost.actions import conversations, searching
from turnpost.actions.results import Found, Thread, Threads
from turnpost.actions.searching import Query
from turnpost.actions.sending import KINDS
from turnpost.cli import base

_FILTERS = (
    click.option("--from", "sender", metavar="NAME", help="Only what NAME sent: an agent, person or system."),
    click.option("--kind", type=click.Choice(KINDS), help="Only messages of this kind."),
    click.option("--state", type=click.Choice(searching.STATES), help="Only what is so for a recipient."),
    click.option("--since", metavar="TIME", help="Only what is newer: 2026-11-30, 2026-11-30T14:02:11Z, 2h, 3d."),
    click.option("--until", metavar="TIME", help="Only what is older."),
    click.option(
        "--last", "newest", type=click.IntRange(min=1), default=conversations.NEWEST, show_default=True, metavar="N",
        help="At most the newest N.",
    ),
)  # fmt: skip


def _filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose messages."""
    for option in reversed(_FILTERS):
        function = option(function)
    return function


@base.command(example="turnpost threads")
def threads() -> Threads:
    """List the threads, the newest first.

    There is one for each mission, one for those concerned outside missions, such as `alpha+person`, and `inbox`: all
    that was sent to you.
    """
    return conversations.overview(base.root())


@base.command(
    example="""
    turnpost thread alpha
    turnpost thread alpha+beta --kind question --since 2d
    turnpost thread inbox --last 10
    """
)
@click.argument("name", metavar="T", shell_complete=base.complete_threads)
@click.option("--text", "words", metavar="TEXT", help="Only what holds TEXT, in any case.")
@_filtered
def thread(name: str, words: str | None, newest: int, **asked: str | None) -> Thread:
    """Show a thread, with the questions that are pinned to it.

    On a terminal as Markdown, in a pipe as it was written. T is a thread's name, the names of those concerned, one agent's name for your thread with it, or the ID of a message
    in it. Nothing is marked as read.
    """
    return conversations.thread(base.root(), name, Query(words, **asked), newest=newest)


@base.command(
    takes_text=True,
    example="""
    turnpost search "date format"
    turnpost search --from alpha --state undeliverable --since 2026-11-30
    """,
)
@click.argument("words", metavar="[TEXT]", required=False)
@_filtered
def search(words: str | None, newest: int, **asked: str | None) -> Found:
    """Find messages in all threads, by text, sender, kind or time.

    TEXT is looked for in bodies, references and options, in any case.
    """
    return conversations.search(base.root(), Query(words, **asked), newest=newest)
