"""What a failure looks like: one line on stderr, or one JSON document on stdout, and the exit code of its family."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from turnpost.actions import documents
from turnpost.core import text
from turnpost.core.errors import TurnpostError, UsageError

INTERRUPTED = 130
"""What shells report for Ctrl-C."""


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; looked at before it is parsed, since parsing can fail."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def no_windows() -> TurnpostError:
    """The one answer on a platform where neither the locks nor the FIFOs of the spool exist."""
    return TurnpostError("turnpost runs on Linux and macOS; on Windows use it inside WSL", rule="platform")


def report(error: BaseException, as_json: bool) -> int:
    """Tell a failure and answer with its exit code."""
    if isinstance(error, OSError):
        _drop_stdout()
    if isinstance(error, BrokenPipeError):
        return 1  # whoever read us has seen enough
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    if os.environ.get("TURNPOST_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    known = _known(error)
    if as_json:
        from turnpost.cli import render

        render.write_json(documents.failure(known))
    else:
        click.echo(f"turnpost: {text.visible(known.message)}", err=True)
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"try: {error.ctx.command_path} --help", err=True)
    return INTERRUPTED if known.rule == "interrupted" else known.exit_code


def _drop_stdout() -> None:
    """Let go of an output that nobody takes (a closed pipe, a full disk): Python would complain once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _known(error: BaseException) -> TurnpostError:
    """Any failure as one of ours."""
    if isinstance(error, click.UsageError):
        return UsageError(_hinted(error))
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return TurnpostError("interrupted", rule="interrupted")
    return documents.known(error)


def _hinted(error: click.UsageError) -> str:
    if not isinstance(error, click.NoSuchOption):
        return " ".join(error.format_message().split()).rstrip(".")
    if error.option_name == "--json":  # a group's own options are none of its commands'
        return "--json goes behind a command: `turnpost agents --json`"
    message = f"there is no option '{error.option_name}'"
    if error.possibilities:
        message += f"; nearest: {', '.join(sorted(error.possibilities))}"
    if getattr(error.ctx and error.ctx.command, "takes_text", False):
        message += "; a text that begins with '--' goes after '--', or to stdin with '-'"
    return message
