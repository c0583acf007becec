"""What a hook with nothing to do loads, as exact sets: a start-up budget that no slow machine can break."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession, python
from turnpost.core import home, mailbox, registry, render, rules
from turnpost.data import import_root

pytestmark = pytest.mark.process

OURS_ALWAYS = {"turnpost", "turnpost.core", "turnpost.core.home"}
GUARDED = OURS_ALWAYS | {
    "turnpost.core.clock", "turnpost.core.deliver", "turnpost.core.errors", "turnpost.core.fastjson", "turnpost.core.files",
    "turnpost.core.guard", "turnpost.core.procs", "turnpost.core.rules", "turnpost.core.store",
}  # fmt: skip
WAITING = GUARDED - {"turnpost.core.guard"} | {
    "turnpost.core.audit", "turnpost.core.bell", "turnpost.core.ids", "turnpost.core.mailbox", "turnpost.core.registry",
    "turnpost.core.render", "turnpost.core.text", "turnpost.core.transcript", "turnpost.core.waiter", "turnpost.core.wording",
}  # fmt: skip
STANDARD = "import __future__, _json, errno, fcntl, os, stat, time"
"""What the light core may import of the standard library; each version of Python says what else that brings along."""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[FakeSession]:
    """A session in the middle of a turn."""
    root = str(tmp_path / "state")
    registry.prepare(root)
    with FakeSession(root, tmp_path / "claude") as made:
        made.hook("SessionStart", source="startup", waiter=False)
        made.hook("UserPromptSubmit", prompt="x")
        yield made


def loaded(session: FakeSession, event: str, **payload: str) -> set[str]:
    """What the hook of an event loads beyond the bare interpreter, the hook run as installed."""
    (entry,) = [one for one in session.entries(event) if not one.get("asyncRewake")]
    words = entry["args"][entry["args"].index(str(python())) :]
    place = words.index("-c") + 1
    given = {"session_id": session.session_id, "transcript_path": str(session.transcript), **payload}
    return _modules(session, words, place, json.dumps(given)) - _modules(
        session, [*words[:place], "pass"], place, ""
    )


def _modules(session: FakeSession, words: list[str], place: int, given: str) -> set[str]:
    code = words[place].removesuffix("posix._exit(0)")
    found, err = _run(session, [*words[:place], code, *words[place + 1 :]], place, given)
    assert err == b""
    return found


def _run(session: FakeSession, words: list[str], place: int, given: str) -> tuple[set[str], bytes]:
    """What is loaded at the end of some code, and what it said on stderr."""
    report = session.folder / f"modules-{uuid.uuid4()}"
    tell = f"\nimport sys, os\nwith open({str(report)!r}, 'w') as file: file.write(' '.join(sys.modules))"
    done = subprocess.run(
        [*words[:place], words[place] + tell, *words[place + 1 :]],
        input=given.encode(),
        env=session.environment(),
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    return set(report.read_text().split()), done.stderr


def standard(session: FakeSession, imports: str = STANDARD) -> set[str]:
    words = [str(python()), "-I", "-S", "-c"]
    return _modules(session, [*words, imports], 4, "") - _modules(session, [*words, "pass"], 4, "")


def ours(modules: set[str]) -> set[str]:
    return {module for module in modules if module.startswith("turnpost")}


@pytest.mark.parametrize("event", ["PostToolBatch", "PreToolUse", "SubagentStop"])
def test_a_hook_of_every_call_without_work_loads_nothing_but_its_paths(
    session: FakeSession, event: str
) -> None:
    assert loaded(session, event) == OURS_ALWAYS


def test_a_record_of_a_command_is_work_for_the_end_of_a_batch(session: FakeSession) -> None:
    Path(home.subcommands(session.root, session.key)).touch()
    assert ours(loaded(session, "PostToolBatch")) > OURS_ALWAYS


def test_the_prompt_hook_of_a_wake_loads_nothing_but_its_paths(session: FakeSession) -> None:
    """It stands between a message and its model request."""
    Path(home.woken(session.root, session.key)).touch()
    assert loaded(session, "UserPromptSubmit") == OURS_ALWAYS


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "StopFailure", "Notification", "SessionEnd"])
def test_a_hook_of_an_unknown_session_loads_the_light_core_at_most(session: FakeSession, event: str) -> None:
    session.session_id = str(uuid.uuid4())
    assert ours(loaded(session, event)) <= GUARDED


def test_claude_p_loads_nothing_but_its_paths(session: FakeSession) -> None:
    session.entrypoint = "sdk-cli"
    for event in ("SessionStart", "PostToolBatch"):
        assert loaded(session, event) == OURS_ALWAYS


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "StopFailure", "PermissionRequest"])
def test_a_hook_that_only_records_loads_the_light_core_and_the_standard_library_for_it(
    session: FakeSession, event: str
) -> None:
    found = loaded(session, event)
    assert ours(found) == GUARDED
    assert found - GUARDED == standard(session)


def test_a_waiter_holds_what_a_claim_needs_and_a_claim_loads_nothing_more(session: FakeSession) -> None:
    """Memory while it waits, and time between the bell and the wake."""
    session.hook("Stop", waiter=False)
    bare = [str(python()), "-I", "-S", "-c"]
    path = f"import sys; sys.path.append({str(import_root())!r}); "
    load = "from turnpost.core import waiter"
    waiting, _ = _run(session, [*bare, path + load], 4, "")
    nothing, _ = _run(session, [*bare, path], 4, "")
    assert waiting - nothing == WAITING | standard(session, STANDARD + ", select")

    sent = spool.send(session.root, "with a <tag>, a\ttab and an <message>", session.agent, urgent=True)
    box = mailbox.Mailbox(session.root, session.key)
    with box.lock():
        for _ in range(rules.NUDGES):
            box.nudge(box.garbled())
    claim = f"{load}; import os; os._exit = lambda code: None; waiter.main({session.root!r})"
    given = {
        "session_id": session.session_id,
        "transcript_path": str(session.transcript),
        "hook_event_name": "Stop",
    }
    claimed, err = _run(session, [*bare, path + claim], 4, json.dumps(given))
    assert render.mark(sent).encode() in err
    assert claimed == waiting
