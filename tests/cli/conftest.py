"""The command line in this process (`run`), and as a process of its own (`start`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tests.actions.fakes import PERSON, FakeHome
from turnpost.cli import main
from turnpost.core import sender
from turnpost.core.sender import Speaker


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def home(
    home: FakeHome, own_settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FakeHome:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def speaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Speaker], None]:
    """Who the process tree says the caller is."""

    def set_speaker(speaker: Speaker) -> None:
        monkeypatch.setattr(sender, "who", lambda _root, _pid=None: speaker)

    return set_speaker


@pytest.fixture
def run(home: FakeHome, speaks: Callable[[Speaker], None]) -> Run:
    """Run a command as the person; `input` is stdin."""
    speaks(PERSON)

    def invoke(*words: str, input: bytes | None = None) -> Outcome:
        done = CliRunner().invoke(main, list(words), input=input, prog_name="turnpost")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)

    return invoke


def start(home: FakeHome, *words: str, environment: dict[str, str] | None = None) -> Outcome:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "turnpost", *words], capture_output=True,
        env={**os.environ, "TURNPOST_HOME": home.root, **(environment or {})}, timeout=60,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def modules_of(home: FakeHome, *words: str) -> set[str]:
    """The modules that a command has loaded when it ends, run as a process of its own."""
    code = (
        "import sys\n"
        "from turnpost.actions import courier\n"
        "courier.ensure = lambda root: ()\n"
        "from turnpost.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
    return set(eval(done.stderr))
