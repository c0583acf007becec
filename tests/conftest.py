"""Fixtures of many tests: a home without Claude Code; and with the real one a binary of each tested version, a scripted model, a closed world."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from turnpost.actions import courier
from turnpost.lab.errors import FetchError
from turnpost.lab.fetch import TESTED, fetch_claude
from turnpost.lab.model import ScriptedModel
from turnpost.lab.progress import Progress
from turnpost.lab.world import World

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores it, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", params=TESTED)
def claude_version(request: pytest.FixtureRequest) -> str:
    """Each tested version of Claude Code in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def claude_binary(claude_version: str) -> Path:
    """The binary of `claude_version`; where it cannot be had, a skip at home and a failure in CI."""
    try:
        return fetch_claude(claude_version, Progress())
    except FetchError as error:
        reason = f"NO REAL CLAUDE CODE {claude_version}: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHome]:
    """A spool of its own for each test, and no coordinator: what is tested with it must be right without one."""
    made = FakeHome(tmp_path)
    monkeypatch.setenv("TURNPOST_HOME", made.root)
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    yield made
    made.close()


@pytest.fixture
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's own Claude Code: neither its settings nor its program."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude-config"))
    monkeypatch.setenv("TURNPOST_CLAUDE", str(tmp_path / "no-claude"))


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the home lies, and turnpost's state."""
    monkeypatch.setenv("TURNPOST_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A scripted model on loopback."""
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def world(claude_binary: Path, model: ScriptedModel) -> Iterator[World]:
    """A closed world on `model`; when the test ends, nothing of it may be left running."""
    with World(claude_binary, model.url) as made:
        yield made
    assert made.leftovers() == []
