"""`doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from turnpost.cli import base, columns, render, views
from turnpost.core import home
from turnpost.core.errors import Refused, UsageError
from turnpost.doctor.results import Check, Diagnosis


@base.command(
    example="""
    turnpost doctor
    turnpost doctor --deep --json
    """
)
@click.option("--project", metavar="DIR", type=click.Path(), help="The project's folder; default: this one.")
@click.option("--deep", is_flag=True, help="Also try what the installed Claude Code honours; some seconds.")
@click.pass_context
def doctor(ctx: click.Context, project: str | None, deep: bool) -> None:
    """Find what keeps messages from arriving, and how to mend it.

    Looks at Claude Code, at the installed hooks (each is run once in a throw-away home), at the spool, the coordinator
    and the agents. Exit code 3 when anything fails.
    """
    from turnpost.doctor.examine import examine

    folder = Path(project or ".").expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    found = examine(home.home(), folder, deep=deep)
    render.emit(found, base.json_wanted(ctx))
    if found.failed:
        ctx.exit(Refused.exit_code)


@views.view.register
def _(result: Diagnosis) -> str:
    count = {status: sum(one.status == status for one in result.checks) for status in ("ok", "warn", "fail")}
    lines = [_shown(check) for check in result.checks]
    lines.append(f"\n{count['ok']} fine, {count['warn']} to look at, {count['fail']} failing")
    return "\n".join(lines)


def _shown(check: Check) -> str:
    mark = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}[check.status]
    lines = [_hanging(f"{mark}  ", f"{check.name}: {check.line}")]
    if check.mend:
        lines.append(_hanging("      -> ", check.mend))
    return "\n".join(lines)


def _hanging(head: str, words: str) -> str:
    """A head, and a paragraph to its right."""
    return head + columns.paragraph(words, " " * len(head)).lstrip(" ")
