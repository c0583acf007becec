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
_dry_run = click.option("--dry-run", is_flag=True, help="Show the difference and write nothing.")


@base.command(
    example="""
    turnpost install
    turnpost install --scope user --dry-run
    """
)
@_scope
@_project
@_dry_run
def install(scope: Literal["project", "local", "user"], project: str | None, dry_run: bool) -> Installed:
    """Put turnpost's hooks into Claude Code's settings.

    All that is there stays, twice is once, and the difference is shown. Sessions started from then on are agents.
    """
    return installing.install(scope, project, dry_run=dry_run)


@base.command(example="turnpost uninstall --scope user")
@_scope
@_project
@_dry_run
def uninstall(scope: Literal["project", "local", "user"], project: str | None, dry_run: bool) -> Installed:
    """Take the hooks out again and restore the file."""
    return installing.uninstall(scope, project, dry_run=dry_run)
