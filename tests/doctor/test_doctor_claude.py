"""The platform and Claude Code."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnpost.doctor import claude_code, deep
from turnpost.doctor.claude_code import Found
from turnpost.harness import MINIMUM

GOOD = Found("/opt/claude", MINIMUM, "", ())


def test_a_recent_claude_is_fine() -> None:
    assert claude_code.check_claude(GOOD).status == "ok"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Found(None, None, "no runnable `claude` in PATH"), "no runnable"),
        (Found("/opt/claude", None, "printed no version"), "printed no version"),
        (GOOD._replace(version=(2, 1, 318)), "older than 2.1.319"),
        (GOOD._replace(sessions=None, trouble="printed something else"), "something else"),
    ],
)
def test_a_claude_that_cannot_be_used_fails_and_says_why(bad: Found, says: str) -> None:
    check = claude_code.check_claude(bad)
    assert check.status == "fail"
    assert says in check.line
    assert check.mend


def test_a_missing_claude_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNPOST_CLAUDE", str(tmp_path / "none"))
    assert claude_code.look().binary is None


def test_a_claude_that_is_none_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "claude"
    fake.write_text("#!/bin/sh\necho hello\n")
    fake.chmod(0o755)
    monkeypatch.setenv("TURNPOST_CLAUDE", str(fake))
    assert claude_code.check_claude(claude_code.look()).status == "fail"


@pytest.mark.parametrize(
    ("system", "platform", "status"),
    [
        ("posix", "linux", "ok"),
        ("posix", "darwin", "ok"),
        ("nt", "win32", "fail"),
        ("posix", "sunos5", "warn"),
    ],
)
def test_the_platform(system: str, platform: str, status: str) -> None:
    assert claude_code.check_platform(system, platform).status == status


def test_each_way_into_a_conversation_is_judged_by_itself() -> None:
    seen = {way.text: 1 for way in deep.WAYS}
    assert {check.status for check in deep.check_ways(seen)} == {"ok"}
    for way in deep.WAYS:
        checks = deep.check_ways({**seen, way.text: 0}, "no such request")
        (bad,) = [check for check in checks if check.status != "ok"]
        assert bad.status == "fail"
        assert way.what in bad.line
        assert "no such request" in bad.line
        assert way.without in bad.mend


def test_a_trial_that_does_not_run_is_a_finding() -> None:
    (check,) = deep.try_out(Path("/bin/false"))
    assert check.status == "fail"
