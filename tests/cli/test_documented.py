"""Every command says in its help what it does, shows an example, and takes --json."""

from __future__ import annotations

import io
import re
import shlex
import sys

import click
import pytest

from tests.cli.conftest import Run
from tests.commands import leaves
from turnpost.cli import main
from turnpost.cli.app import COMMANDS

OF_THE_TABLE = [
    "install", "uninstall", "launch", "rename", "agents", "send", "show", "wait", "cancel", "stop", "hold", "release",
    "wake", "mission start", "mission add", "mission finish", "mission abort", "mission show", "policy check", "coordinator run", "coordinator start", "coordinator stop", "coordinator status",
]  # fmt: skip


def test_the_commands_of_the_table_are_there() -> None:
    assert set(OF_THE_TABLE) <= set(leaves())


@pytest.mark.parametrize("name", sorted(leaves()))
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_explains_shows_an_example_and_fits_the_screen(run: Run, name: str, flag: str) -> None:
    done = run(*name.split(), flag)
    assert done.code == 0
    assert f"Usage: turnpost {name}" in done.out
    assert "Example:" in done.out
    assert "--json" in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 80


@pytest.mark.parametrize("name", sorted(leaves()))
def test_the_examples_are_commands_that_parse(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(*name.split(), "--help").out.partition("Example:")[2]
    examples = [line.strip() for line in shown.splitlines() if line.strip()]
    assert examples
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from stdin")))
    for example in examples:
        found = re.search(r"turnpost [^|<>)]*", example)
        assert found, example
        words = shlex.split(found[0])
        command, rest = leaves()[name], words[1 + len(name.split()) :]
        # With the group's settings: click keeps the help option it made for the first context.
        parent = click.Context(main, **main.context_settings)
        command.make_context(name, rest, parent=parent, resilient_parsing=False)


def test_the_overview_lists_all_commands_in_their_order(run: Run) -> None:
    shown = run("--help").out
    places = [shown.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "Exit codes" in shown
    assert run().code == 2
    assert run("--version").out.startswith("turnpost, version ")
