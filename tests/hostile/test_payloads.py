"""Whatever a hook is told, by its input and its environment, it lets Claude go on, and costs no message."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core import spool
from tests.hooks.driver import FakeSession
from tests.hostile import kit
from tests.hostile.kit import HOOKS, Rich
from tests.long import scale
from turnpost.core import deliver, files, home, registry

ODD_TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "\0", "\ud800", "../../..", "/dev/zero", "/dev/stdin", "~", "a" * 5000, "-", "msg-", "\u0000/x", "permission_prompt", "plan",
         "mcp__turnpost__send", "fork", "resume", "compact", "/proc/self/mem", "a1b2c3d4e5", "<message", "²"]
    ),
)  # fmt: skip
ODD = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), ODD_TEXT,
        st.sampled_from([10**400, -(10**30), 1e308, float("inf"), float("nan"), 2**63]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ODD_TEXT, inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
FIELDS = (
    "session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "agent_id", "agent_type", "tool_name",
    "tool_input", "prompt", "source", "session_title", "reason", "notification_type", "last_assistant_message",
    "background_tasks", "stop_hook_active", "agent_transcript_path",
)  # fmt: skip
FIELD_VALUES = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=5)
RAW = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"{", b"[]", b"null", b'"\\ud800"', b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b"NaN", b"-", b"1" * 6000,
                     b"[" * 100_000, b'{"a":' * 50_000, b'{"session_id":1e999}', b"{}{}", b"\0" * 10]),
)  # fmt: skip
NUMBERS = st.sampled_from(
    ["", "0", "-1", "²", "٣", "9" * 30, "1e3", " 7", "0x10", "1", "99999999", "\udcff", "9" * 5000]
)
VARIABLES = st.fixed_dictionaries(
    {},
    optional={
        "CLAUDE_PID": NUMBERS, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": NUMBERS,
        "CLAUDE_CODE_SESSION_ID": st.sampled_from(["", "..", "../../x", "x" * 65, "a/b", "\udcff" * 9, "--------", "12345678"]),
        "CLAUDE_PROJECT_DIR": st.sampled_from(["", "/", "relative", "/dev/null", "\udcff", "/" + "x" * 4000]),
        "TURNPOST_AGENT": st.sampled_from(["", "person", "../x", "ag-", "ag-" + "0" * 26, "ag-" + "Z" * 26]),
        "CLAUDE_CODE_ENTRYPOINT": st.sampled_from(["", "cli", "sdk-cli", "CLI"]),
    },
)  # fmt: skip
QUICK = settings(
    deadline=None, max_examples=scale(120, 3000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # fmt: skip


def held(rich: Rich, name: str) -> set[str]:
    return set(kit.waiting(rich, name))


def goes_on(rich: Rich, name: str, event: str, data: bytes, **variables: str) -> None:
    """The hook ends as it may, in time, and every message is still waiting or is in what it printed."""
    before, fresh = held(rich, name), kit.queued(rich, name)
    started = kit.moment()
    ran = kit.run_hook(event, data, rich.environment(name, **variables))
    assert kit.moment() - started < 10
    kit.fine(event, ran)
    assert held(rich, name) == before
    said = ran.out.decode() + ran.err.decode()
    left = kit.queued(rich, name)
    assert all(one in left or one in said for one in fresh)


@QUICK
@given(
    name=st.sampled_from(["alpha", "beta"]), event=st.sampled_from(sorted(HOOKS)), values=FIELD_VALUES, variables=VARIABLES
)  # fmt: skip
def test_any_value_in_any_field(
    rich: Rich, name: str, event: str, values: dict[str, Any], variables: dict[str, str]
) -> None:
    data = json.dumps({**rich.payload(name, event), **values}).encode()
    if event == "Waiter":
        variables = {"CLAUDE_PID": "99999999", **variables}  # a live session's waiter would wait
    goes_on(rich, name, event, data, **variables)


@QUICK
@given(event=st.sampled_from(sorted(HOOKS)), data=RAW, cut=st.integers(0, 400))
def test_any_bytes_and_any_document_cut_off(rich: Rich, event: str, data: bytes, cut: int) -> None:
    dead = {"CLAUDE_PID": "99999999"}
    goes_on(rich, "alpha", event, data, **dead)
    whole = json.dumps(rich.payload("alpha", event)).encode()
    goes_on(rich, "alpha", event, whole[: min(cut, len(whole) - 1)], **dead)


@pytest.mark.parametrize("event", sorted(HOOKS))
def test_an_input_over_the_limit_is_never_read_to_its_end(
    rich: Rich, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "INPUT_LIMIT", 100_000)
    data = json.dumps({**rich.payload("alpha", event), "prompt": "x" * 200_000}).encode()
    goes_on(rich, "alpha", event, data, CLAUDE_PID="99999999")


def test_after_all_that_the_mail_still_comes(rich: Rich) -> None:
    """What hooks were told is not believed for longer than the next thing they are told."""
    odd: list[dict[str, Any]] = [
        {"transcript_path": "\ud800"},
        {"transcript_path": "/dev/zero"},
        {"cwd": "\0"},
        {"permission_mode": []},
    ]
    for values in odd:
        for event in ("UserPromptSubmit", "PermissionRequest", "PostToolBatch", "StopFailure"):
            data = json.dumps({**rich.payload("gamma", event), **values}).encode()
            kit.fine(event, kit.run_hook(event, data, rich.environment("gamma")))
    os.unlink(home.agent(rich.root, rich.key("gamma")) + "/hold")
    (waits,) = kit.waiting(rich, "gamma")
    said = rich.hook("gamma", "SessionStart", source="resume"), rich.hook("gamma", "Stop")
    assert waits in said[1].out.decode()
    kit.no_bug(rich)


@pytest.mark.parametrize(
    "path", ["/dev/null", "/proc/self", "relative/../x", "/", "x" * 5000, "\udcff", "/dev/full/x", "-"]
)
def test_a_home_that_can_be_none(
    rich: Rich, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.chdir(tmp_path)
    for event in HOOKS:
        if event == "SessionStart" and path in ("/", "\udcff", "-", "relative/../x"):
            continue  # root may make a home anywhere
        data = json.dumps(rich.payload("alpha", event)).encode()
        ran = kit.run_hook(
            event, data, {**rich.environment("alpha"), "TURNPOST_HOME": path, "CLAUDE_PID": "99999999"}
        )
        assert ran == (0, b"", b"")


@pytest.mark.process
def test_as_installed_in_processes_of_their_own(tmp_path: Path) -> None:
    """A sample of the above, by the very line that an install writes into the settings."""
    root = str(tmp_path / "state")
    registry.prepare(root)
    with FakeSession(root, tmp_path / "claude") as session:
        session.start()
        session.prompt()
        session.end_waiters()
        sent = [spool.send(root, body, session.agent) for body in ("one", "two")]
        whole = {"session_id": session.session_id, "hook_event_name": "Stop"}
        inputs = [
            b"\xff\xfe",
            b"[" * 50_000,
            b'{"session_id": {}}',
            json.dumps({**whole, "transcript_path": "\ud800", "agent_id": "\0"}).encode(),
        ]
        for variables in (
            {},
            {"CLAUDE_PID": "²"},
            {"CLAUDE_PID": "9" * 5000},
            {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "²"},
        ):
            session.env = variables
            for data in inputs[: 4 if not variables else 1]:
                for event in ("Stop", "UserPromptSubmit", "PostToolBatch", "SubagentStop"):
                    ran = session.hook(event, stdin=data, waiter=False)
                    assert ran.silent, (event, ran)
        session.env = {}
        over = subprocess.Popen(["head", "-c", str(70 << 20), "/dev/zero"], stdout=subprocess.PIPE)
        (entry,) = [one for one in session.entries("Stop") if not one.get("asyncRewake")]
        done = subprocess.run(
            [entry["command"], *entry["args"]], stdin=over.stdout, capture_output=True, env=session.environment(), timeout=60
        )  # fmt: skip
        assert over.stdout is not None
        over.stdout.close()
        over.terminate()
        over.wait()
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        session.stop()
        assert session.read == sent
        assert files.names(root + "/agents") == [session.key]
