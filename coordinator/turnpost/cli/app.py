"""The `turnpost` group: finds a command's module when it is called, and turns every failure into its exit code."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from turnpost import __version__
from turnpost.cli import failures
from turnpost.core.errors import NotFound, TimedOut

COMMANDS = {
    "install": "setting_up:install",
    "uninstall": "setting_up:uninstall",
    "launch": "launching:launch",
    "rename": "agents:rename",
    "agents": "agents:agents",
    "send": "messages:send",
    "reply": "messages:reply",
    "show": "messages:show",
    "wait": "waiting:wait",
    "cancel": "messages:cancel",
    "inbox": "messages:inbox",
    "threads": "threads:threads",
    "thread": "threads:thread",
    "search": "threads:search",
    "stop": "holding:stop",
    "hold": "holding:hold",
    "release": "holding:release",
    "wake": "holding:wake",
    "mission": "missions:mission",
    "policy": "policy:policy",
    "export": "exporting:export",
    "summary": "summary:summary",
    "log": "journal:log",
    "coordinator": "coordinator:coordinator",
    "mcp": "mcp:mcp",
    "doctor": "doctor:doctor",
    "demo": "demo:demo",
    "completion": "completions:completion",
}
"""Each command, in the order of the help, and where it is: a module beside this one, and the name in it."""

_MAY_BE_AMONG_THEM = (NotFound.exit_code, TimedOut.exit_code)
"""Codes of failures that a newer turnpost's records can explain: one of these was looked for, or waited for."""


class Turnpost(click.Group):
    """The group of all commands. `main` is the one way in for the entry point, `python -m` and the tests."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Load a command. `turnpost send` must not pay for what `launch` needs."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        found: click.Command = getattr(importlib.import_module(f"turnpost.cli.{module}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but an unknown command is told the nearest ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 3)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            raise click.UsageError(f"there is no command '{args[0]}'{hint}", ctx) from error

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *more: Any, **extra: Any
    ) -> NoReturn:
        """Run a command and exit with its code."""
        words = list(sys.argv[1:] if args is None else args)
        as_json = failures.wants_json(words)
        if os.name == "nt":
            sys.exit(failures.report(failures.no_windows(), as_json))
        _tolerate_any_stream()
        from turnpost.actions import left_out  # not before Windows was told no

        with left_out.noted() as found:
            try:
                # Every failure leaves from here: click's own way of printing it knows no JSON.
                code: int | None = super().main(
                    words, prog_name or "turnpost", *more, **{**extra, "standalone_mode": False}
                )
                sys.stdout.flush()
            except Exception as error:  # noqa: BLE001 - the last guard, which names a bug a bug
                code = failures.report(error, as_json)
            except KeyboardInterrupt as error:
                code = failures.report(error, as_json)
        if not code or code in _MAY_BE_AMONG_THEM:
            # With --json too: a list has no room for it.
            for warning in found.warnings:
                click.echo(f"warning: {warning}", err=True)
        sys.exit(code or 0)


def _tolerate_any_stream() -> None:
    """A stream that the caller closed is an empty one, and a terminal that cannot show a character gets its code.

    An error in the middle of a list helps nobody.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@click.group(
    cls=Turnpost,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 done, 1 bug, 2 usage, 3 refused by a rule, 4 no such agent or message, 5 timed out, 6 Claude Code missing or failed.",
)
@click.version_option(__version__, "--version", prog_name="turnpost")
def main() -> None:
    """Durable messages to Claude Code agents, delivered at turn boundaries.

    A message reaches an agent whether it works, is idle or has stopped, is read exactly once, and its sender can see
    when. Every command takes --json.
    """
