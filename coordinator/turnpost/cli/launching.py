"""`launch`."""

from __future__ import annotations

import click

from turnpost.actions import launching
from turnpost.actions.results import Launched
from turnpost.cli import base, progress

_OPTIONS = "turnpost.claude-options"


class Launch(base.Command):
    """What follows `--` is Claude Code's, not ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the options for `claude` aside before ours are read."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_OPTIONS] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(
    cls=Launch,
    takes_text=True,
    example="""
    turnpost launch alpha "Fix the failing tests, then wait for review"
    turnpost launch beta - --parent alpha --worktree < task.md
    turnpost launch gamma -- --model opus --permission-mode acceptEdits
    """,
)
@click.argument("name")
@click.argument("prompt", metavar="[PROMPT|-]", required=False, callback=base.read_text)
@click.option(
    "--cwd",
    metavar="DIR",
    help="The folder it works in; default: this one.",
    type=click.Path(file_okay=False),
)
@click.option("--instructions", metavar="TEXT", help="Appended to its system prompt.")
@click.option(
    "--parent", metavar="AGENT", shell_complete=base.complete_names, help="The agent it is a child of."
)
@click.option("--mission", metavar="M", help="The mission it belongs to.")
@click.option("--worktree", is_flag=True, help="Give it a git worktree of its own.")
@click.option(
    "--no-report",
    is_flag=True,
    help="Do not report its turns to its parent.",
)
@click.option(
    "--hold-final",
    is_flag=True,
    help="Hold its last answer back while children of its own work.",
)
@click.pass_context
def launch(
    ctx: click.Context,
    name: str,
    prompt: str | None,
    cwd: str | None,
    instructions: str | None,
    parent: str | None,
    mission: str | None,
    worktree: bool,
    no_report: bool,
    hold_final: bool,
) -> Launched:
    """Start a background agent under a name.

    Returns when its session runs. What follows `--` is handed to `claude`. Launched by an agent, the new one is its child. Without a PROMPT it waits
    for messages.
    """
    with progress.Progress(quiet=base.json_wanted(ctx)) as shown:
        return launching.launch(
            base.root(), name, prompt, cwd=cwd, instructions=instructions, parent=parent, mission=mission,
            worktree=worktree, report=not no_report, hold_final=hold_final, options=ctx.meta[_OPTIONS],
            on_wait=lambda seconds: shown.tell(f"waiting for the session of {name}", seconds),
        )  # fmt: skip
