"""What all commands have in common: `--json`, an answer that is rendered in one place, and texts that look like options."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import click

from turnpost.cli import render
from turnpost.core import files, home, registry
from turnpost.core.errors import Refused

_LIKE_OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9-]*(=.*)?", re.DOTALL)
_STDIN_LIMIT = 16 * 1024 * 1024
_WANTED = "turnpost.json"


class Command(click.Command):
    """A command whose function answers with a result, shown as text or, with `--json`, as one document."""

    def __init__(self, *args: Any, takes_text: bool = False, example: str = "", **extra: Any) -> None:
        self.takes_text = takes_text
        lines = example.strip().splitlines()
        extra["epilog"] = "\b\nExample:\n" + "\n".join(f"  {line.strip()}" for line in lines)
        # Its own, not only its group's: click keeps the help option of the first context it is called in.
        extra.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **extra)
        wants_json = click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_note_json, help="Print one JSON document."
        )
        self.params.append(wants_json)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A text such as `-x` or `- item` is no option; only `--name` is, and before a `--`."""
        return super().parse_args(ctx, self._with_texts_last(args) if self.takes_text else args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and show its answer."""
        result = super().invoke(ctx)
        if result is not None:
            render.emit(result, json_wanted(ctx))
            if code := render.exit_code(result):
                ctx.exit(code)

    def _with_texts_last(self, args: list[str]) -> list[str]:
        valued = {
            name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts
        }
        options: list[str] = []
        texts: list[str] = []
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                texts += rest
                break
            if word != "-h" and not _LIKE_OPTION.fullmatch(word):
                texts.append(word)
                continue
            options.append(word)
            if word in valued and rest:
                options.append(rest.pop(0))
        return [*options, "--", *texts]


def command(
    *, example: str, takes_text: bool = False, name: str | None = None
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function; `example` is shown in its help."""
    return click.command(name, cls=Command, takes_text=takes_text, example=example)


def json_wanted(ctx: click.Context) -> bool:
    """Whether this call asks for JSON."""
    return bool(ctx.meta.get(_WANTED))


def root() -> str:
    """The home this call works on. Raises Refused (`home`) when it is not private."""
    path = home.home()
    registry.check_home(path)
    return path


def read_text(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """A text given as an argument, or with `-` all of stdin. Bytes that are no UTF-8 are replaced where it is stored."""
    if value != "-" or ctx.resilient_parsing:
        return value
    if sys.stdin.isatty():
        click.echo("turnpost: reading the text from this terminal; end it with Ctrl-D", err=True)
    data = sys.stdin.buffer.read(_STDIN_LIMIT)
    if more := _rest(sys.stdin.buffer):
        size = len(data) + more
        raise Refused(
            f"refused by rule 'too-long': the text on stdin has {size} bytes, and none may have more than {_STDIN_LIMIT}; "
            "put it in a file and send its path",
            rule="too-long", bytes=size, limit=_STDIN_LIMIT,
        )  # fmt: skip
    return data.decode("utf-8", "surrogateescape")


def _rest(stream: BinaryIO) -> int:
    """How many bytes a stream still has; they are read and dropped."""
    size = 0
    while part := stream.read(1 << 20):
        size += len(part)
    return size


def complete_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names for the shell to offer; in a list `a,b` the last one is completed."""
    done, comma, begun = incomplete.rpartition(",")
    known = files.names(home.home() + "/names")
    return [f"{done}{comma}{name}" for name in known if name.startswith(begun.casefold())]


def complete_threads(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """What threads are called, for the shell to offer."""
    from turnpost.actions import conversations

    return [name for name in conversations.names(root()) if name.casefold().startswith(incomplete.casefold())]


def _note_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[_WANTED] = value
