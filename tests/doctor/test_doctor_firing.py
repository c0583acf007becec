"""Firing the hooks: what is done is told, what is not is a failure, and nothing real is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from tests.doctor.kit import failing, found, odd
from tests.hooks.driver import python
from turnpost.data import hooks_dir
from turnpost.doctor import firing
from turnpost.doctor.firing import Command, Fired
from turnpost.install.merge import command_of, entries, hooks_block

pytestmark = pytest.mark.process

MARK = '<message about="msg-1"'
BROUGHT = '{"hookSpecificOutput": {"additionalContext": "<message about=\\"msg-1\\" to=x>"}}'
BLOCK = '{"decision": "block", "reason": "<message about=\\"msg-1\\" to=x>"}'
UNSEEN = '{"systemMessage": "<message about=\\"msg-1\\" to=x>"}'
SILENT = Fired("Stop", "stop.py", 0, "", "", 0.1)


def commands(folder: Path) -> list[tuple[str, Command]]:
    return [(event, command_of(entry)) for event, entry in entries({"hooks": hooks_block(python(), folder)})]


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A copy of the hook scripts, to be broken."""
    return Path(shutil.copytree(hooks_dir(), tmp_path / "copy" / "hooks"))


def test_hooks_as_installed_do_what_they_must(home: FakeHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "SLOW", 30.0)  # the machine's load is not what is tested
    checks = firing.fire(commands(hooks_dir()))
    assert odd(checks) == []
    assert "hooks did what they must" in found(checks, "hook").line


def test_nothing_of_the_real_home_is_touched(home: FakeHome) -> None:
    home.agent("alpha")
    before = home.tree()
    firing.fire(commands(hooks_dir()))
    assert home.tree() == before


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("stop.py", "print('noise', flush=True)", "printed with nothing to do: noise"),
        ("stop.py", "import os; os._exit(2)", "ended with code 2"),
        ("post_tool_batch.py", "", "did not bring its message"),
        ("waiter.py", "", "instead of waking"),
        ("waiter.py", "import os; os._exit(2)", "waiter.py) ended with code 2"),
    ],
)
def test_a_broken_hook_fails_and_is_named(
    home: FakeHome, scripts: Path, script: str, code: str, says: str
) -> None:
    (scripts / script).write_text(code)
    checks = firing.fire(commands(scripts))
    assert failing(checks)
    assert any(script in check.line and says in check.line for check in checks if check.status == "fail"), (
        checks
    )


def test_a_hook_that_hangs_is_ended(home: FakeHome, scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "LIMIT", 1.0)
    (scripts / "notification.py").write_text("import time; time.sleep(60)")
    assert "did not end within 1 s" in found(firing.fire(commands(scripts)), "hook").line


@pytest.mark.parametrize(
    "good",
    [
        SILENT,
        SILENT._replace(out=BLOCK, mark=MARK),
        SILENT._replace(out=BROUGHT, mark=MARK),
        SILENT._replace(event="PostToolBatch", out=BROUGHT, mark=MARK),
        Fired("Stop", "waiter.py", 2, "", f"{MARK} to=x>", 0.1, MARK),
        Fired("Stop", "waiter.py", 0, "", "", 0.1),
    ],
)
def test_what_a_hook_must_do_is_fine(good: Fired) -> None:
    assert odd(firing.check_fired([good])) == []


@pytest.mark.parametrize(
    "bad",
    [
        SILENT._replace(code=None),
        SILENT._replace(code=1),
        SILENT._replace(out="{}"),
        SILENT._replace(err="Traceback"),
        SILENT._replace(mark=MARK),
        SILENT._replace(mark=MARK, out="[]"),
        SILENT._replace(mark=MARK, out=UNSEEN),
        SILENT._replace(mark=MARK, out=BLOCK.replace("block", "approve")),
        SILENT._replace(mark=MARK, out=BLOCK, err="x"),
        SILENT._replace(mark=MARK, out=BLOCK, code=2),
        Fired("Stop", "waiter.py", 0, "", "", 0.1, MARK),
        Fired("Stop", "waiter.py", 2, "", "", 0.1),
        Fired("Stop", "waiter.py", None, "", "", 10.0, MARK),
        Fired("Stop", "waiter.py", 2, "noise", f"{MARK} to=x>", 0.1, MARK),
    ],
)
def test_everything_else_fails(bad: Fired) -> None:
    assert failing(firing.check_fired([bad])) == ["hook"]


def test_a_slow_hook_warns() -> None:
    assert found(firing.check_fired([SILENT._replace(seconds=3.0)]), "hook").status == "warn"
