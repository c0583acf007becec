"""The demo on both tested versions of Claude Code, and its end by Ctrl-C."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turnpost.demo import run
from turnpost.lab import processes

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.timeout(300)
def test_every_message_is_read_exactly_once(claude_binary: Path, claude_version: str) -> None:
    """All five situations, and nothing is left of them."""
    stream = io.StringIO()
    shown = run.play(claude_binary, claude_version, stream)
    told = stream.getvalue()
    assert shown.failures == (), told
    assert [one.agent for one in shown.deliveries] == [
        "working",
        "working",
        "idle",
        "stopped",
        "copied",
        "killed",
    ]
    assert {one.boundary for one in shown.deliveries[:2]} == {"stop-block"}, told
    assert all(one.read_ms is not None for one in shown.deliveries)
    _assert_gone(told)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(
    claude_binary: Path, claude_version: str, number: signal.Signals
) -> None:
    """Ctrl-C in the middle, as agents run."""
    process = subprocess.Popen(
        [sys.executable, "-m", "turnpost", "demo", "--version-of-claude", claude_version],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    told = ""
    end = time.monotonic() + 90
    while "launched" not in told and time.monotonic() < end and (line := process.stdout.readline()):
        told += line
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    assert "launched" in told, told
    assert process.returncode == 130, told + rest
    _assert_gone(told)


def _assert_gone(told: str) -> None:
    found = re.search(r"/tmp/tp-\w+", told)
    assert found, told
    root = Path(found[0])
    assert processes.in_home(root / "home") == []
    assert not root.exists()
