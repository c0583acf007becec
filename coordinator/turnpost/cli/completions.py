"""`completion bash|zsh|fish`."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from turnpost.actions.results import Completion
from turnpost.cli import base

_SCRIPTS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@base.command(
    example="""
    eval "$(turnpost completion bash)"
    turnpost completion fish > ~/.config/fish/completions/turnpost.fish
    """
)
@click.argument("shell", type=click.Choice(tuple(_SCRIPTS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> Completion:
    """Print what makes a shell complete commands and agents' names."""
    script = _SCRIPTS[shell](ctx.find_root().command, {}, "turnpost", "_TURNPOST_COMPLETE").source()
    return Completion(shell, script)
