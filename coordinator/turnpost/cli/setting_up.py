"""`install` and `uninstall`."""

from __future__ import annotations

from typing import Literal

import click

from turnpost.actions import installing
from turnpost.actions.results import Installed
from turnpost.cli import base

_SCOPES = ("project", "local", "user")
_scope = click.option(
    "--scope", type=click.Choice(_SCOPES), default="project", show_default=True, help="Whose settings."
)
_project = click.option(
    "--project", metavar="DIR", type=click.Path(), help="The project's folder; default: this one."
)
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Show the difference, line by line, and write nothing."
)


@base.command(
    example="""
    turnpost install
    turnpost install --scope user --dry-run
    turnpost install --allow-tools
    """
)
@_scope
@_project
@_dry_run
@click.option("--python", metavar="FILE", help="The Python that runs the hooks; default: turnpost's own.")
@click.option("--no-tools", is_flag=True, help="Install the hooks only, without the tools for agents.")
@click.option("--allow-tools", is_flag=True, help="Let agents use the tools without being asked.")
def install(
    scope: Literal["project", "local", "user"],
    project: str | None,
    dry_run: bool,
    python: str | None,
    no_tools: bool,
    allow_tools: bool,
) -> Installed:
    """Put turnpost's hooks and tools into Claude Code's settings.

    All that is there stays, twice is once; --dry-run shows each line. Sessions started from then on are agents. No
    permission is added unless you ask for it with --allow-tools.
    """
    if no_tools and allow_tools:
        raise click.UsageError("--no-tools and --allow-tools exclude each other")
    return installing.install(
        base.root(),
        scope,
        project,
        dry_run=dry_run,
        python=python,
        tools=not no_tools,
        allow_tools=allow_tools,
    )


@base.command(example="turnpost uninstall --scope user")
@_scope
@_project
@_dry_run
def uninstall(scope: Literal["project", "local", "user"], project: str | None, dry_run: bool) -> Installed:
    """Take the hooks and the tools out again and restore the files."""
    return installing.uninstall(base.root(), scope, project, dry_run=dry_run)
