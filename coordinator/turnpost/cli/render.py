"""The one place where an answer becomes output: as text for people, or as one JSON document."""

from __future__ import annotations

import sys

import click

from turnpost.actions import documents
from turnpost.actions.results import Agents, Found, Inbox, Summary, Thread, Threads, Waited
from turnpost.core.errors import TimedOut


def emit(result: object, as_json: bool) -> None:
    """Show a result. What the caller should know beside it goes to stderr, or into the document."""
    if as_json:
        write_json(data(result))
        return
    from turnpost.core import text

    if shown := _text(result):
        click.echo(shown)
    for warning in getattr(result, "warnings", ()):
        click.echo(f"warning: {text.visible(warning)}", err=True)


def exit_code(result: object) -> int:
    """0, or 5 for a wait that saw something else than what it waited for."""
    return TimedOut.exit_code if isinstance(result, Waited) and not result.done else 0


def data(result: object) -> object:
    """A result as JSON values. Agents and threads are lists; an unfinished wait carries its error beside its state."""
    if isinstance(result, Agents):
        return [documents.plain(agent) for agent in result.agents]
    if isinstance(result, Threads):
        return [documents.plain(line) for line in result.threads]
    if isinstance(result, Waited) and not result.done:
        rule = "ended" if result.over else TimedOut.default_rule
        error = {"rule": rule, "message": missed(result), "seconds": result.waited}
        return {**documents.plain(result), "error": error}
    return documents.plain(result)


def missed(result: Waited) -> str:
    """Why a wait did not end as it should."""
    if result.over:
        return result.over
    more = f" with {result.agent.waiting} messages waiting" if result.agent and result.agent.waiting else ""
    what = {
        "read": f"{result.target} is {result.state}, not read",
        "reply": f"{result.target} has no answer",
        "idle": f"{result.target} is {result.state}{more}",
        "message": f"no message from {result.target} waits for you",
    }
    return f"after {result.waited:.1f} s {what[result.for_]}"


def write_json(document: object) -> None:
    """Print one document. ASCII, so that nothing in it can drive a terminal."""
    import json

    click.echo(json.dumps(document, indent=2, default=str).replace("\x7f", "\\u007f"))


def _text(result: object) -> str:
    """A result for a person. What people wrote to each other is Markdown on a terminal, and as written in a pipe."""
    from turnpost.cli import views

    if sys.stdout.isatty() and isinstance(result, (Found, Inbox, Summary, Thread)):
        from turnpost.cli import markdown

        return views.conversation(result, markdown.body)
    return views.view(result)
