"""Every command of the program, by its full name: what the tests of the help and of the documents go through."""

from __future__ import annotations

import click

from turnpost.cli import main
from turnpost.cli.app import COMMANDS


def leaves() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(main, info_name="turnpost")
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found.update({f"{name} {sub}": leaf for sub, leaf in command.commands.items()})
        else:
            found[name] = command
    return found
