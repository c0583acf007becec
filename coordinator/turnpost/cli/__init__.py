"""The `turnpost` command. One module per family of commands, loaded when it is called."""

from turnpost.cli.app import main

__all__ = ["main"]
