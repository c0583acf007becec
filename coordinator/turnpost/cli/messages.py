"""`send`, `reply`, `show`, `cancel`, `inbox`."""

from __future__ import annotations

import sys

import click

from turnpost.actions import documents, receipts, sending
from turnpost.actions.results import Cancelled, MessageView, Sent
from turnpost.cli import base
from turnpost.core import text
from turnpost.core.errors import TurnpostError

_wake = click.option(
    "--wake",
    is_flag=True,
    help="Resume a stopped agent for it. Between agents a note, report or answer does not.",
)


@base.command(
    takes_text=True,
    example="""
    turnpost send alpha "the tests fail on main, please look"
    git diff | turnpost send alpha,beta - --kind contract
    turnpost send alpha --urgent -- "--force was wrong, stop"
    """,
)
@click.argument("to", metavar="TO[,TO...]", shell_complete=base.complete_names)
@click.argument("body", metavar="BODY|-", callback=base.read_text)
@click.option(
    "--kind", type=click.Choice(sending.KINDS), default="note", show_default=True, help="What it is."
)
@click.option("--urgent", is_flag=True, help="Enter at the next model request, not at the turn's end.")
@click.option(
    "--thread",
    metavar="T",
    help="The thread it belongs to; default: the mission's, or that of all concerned.",
)
@click.option("--reply-to", metavar="ID", help="The message it answers.")
@click.option(
    "--ref",
    "refs",
    metavar="R",
    multiple=True,
    help="What it is about: FILE[:LINE[-LINE]], a commit, [OWNER/REPO]#PR or a URL; repeatable.",
)
@click.option(
    "--option", "options", metavar="O", multiple=True, help="An answer a question offers; repeatable."
)
@_wake
def send(
    to: str,
    body: str,
    kind: str,
    urgent: bool,
    thread: str | None,
    reply_to: str | None,
    refs: tuple[str, ...],
    options: tuple[str, ...],
    wake: bool,
) -> Sent:
    """Send a message to one or more agents, or to `person`.

    Returns when it is durable and never waits for the recipient; the answer says at which boundary it will enter.
    BODY is taken letter for letter; `-` reads it from stdin.
    """
    names = [name.strip() for name in to.split(",") if name.strip()]
    return sending.send(
        base.root(),
        names,
        body,
        kind=kind,
        urgent=urgent,
        thread=thread,
        reply_to=reply_to,
        refs=refs,
        options=options,
        wake=wake,
    )


@base.command(
    takes_text=True,
    example="""
    turnpost reply msg-01JD3QK8V5T0YF6Z2M9XWB4C7R "yes, go on"
    turnpost reply msg-01JD3QK8V5T0YF6Z2M9XWB4C7R 2
    """,
)
@click.argument("message_id", metavar="ID")
@click.argument("body", metavar="BODY|-", callback=base.read_text)
@_wake
def reply(message_id: str, body: str, wake: bool) -> Sent:
    """Answer a message: to its sender, in its thread.

    A question's option is taken by its number or its words; any other text is an answer too.
    """
    return sending.reply(base.root(), message_id, body, wake=wake)


@base.command(example="turnpost show msg-01JD3QK8V5T0YF6Z2M9XWB4C7R")
@click.argument("message_id", metavar="ID")
def show(message_id: str) -> MessageView:
    """Show a message and how far it has come with each recipient."""
    return receipts.show(base.root(), message_id)


@base.command(example="turnpost cancel msg-01JD3QK8V5T0YF6Z2M9XWB4C7R")
@click.argument("message_id", metavar="ID")
def cancel(message_id: str) -> Cancelled:
    """Take back what no recipient has claimed yet."""
    return receipts.cancel(base.root(), message_id)


@base.command(example="turnpost inbox --keep")
@click.option("--keep", is_flag=True, help="Do not mark what is shown as read.")
@click.pass_context
def inbox(ctx: click.Context, keep: bool) -> None:
    """Show what waits for you, and mark it as read.

    Questions to you come first, and again each time until you answer them with `turnpost reply`.
    """
    from turnpost.actions import inbox as mail
    from turnpost.cli import render

    root = base.root()
    found = mail.waiting(root)
    render.emit(found, base.json_wanted(ctx))
    sys.stdout.flush()
    # Only what has left this process was shown; a pipe that broke has raised by now.
    if not keep:
        try:
            mail.mark_read(root, [message.id for message in found.messages])
        except (TurnpostError, OSError) as error:
            # The one document is out already.
            known = documents.known(error)
            click.echo(f"turnpost: not marked as read: {text.visible(known.message)}", err=True)
            ctx.exit(known.exit_code)
