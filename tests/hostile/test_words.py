"""Any words on any command line and any arguments of a tool: an answer, or a refusal in one line. Never a bug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.actions.fakes import PERSON
from tests.commands import leaves
from tests.hostile import kit
from tests.hostile.kit import Rich
from tests.hostile.test_payloads import ODD, ODD_TEXT
from tests.long import scale
from turnpost.actions import courier
from turnpost.cli import main
from turnpost.core import sender
from turnpost.core.sender import Speaker
from turnpost.tools import calls

LEFT_OUT = {"demo", "mcp", "coordinator run", "coordinator start", "log", "doctor", "summary"}
"""What runs until it is ended, or runs programs for a while; their words are parsed by the same pieces."""
QUICK = settings(
    deadline=None, max_examples=scale(250, 10_000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # fmt: skip
OPTIONS = sorted(
    {
        name
        for command in leaves().values()
        for param in command.params
        for name in param.opts
        if name.startswith("-")
    }
    - {"--watch", "--deep"}
)
KNOWN = ["alpha", "beta", "gamma", "person", "team", "plans", "alpha/a1b2", "-", "", "--", "question", "nan", "1e999", "-1", "999999999999999999999", "0",
         "alpha,alpha", ",", "msg-" + "0" * 26, "msg-" + "Z" * 26, "2026-01-01", "2026-99-99", "00000000", "\udcff", "a\nb", "#1", "all", "read"]  # fmt: skip
WORDS = st.lists(
    st.one_of(
        st.sampled_from(OPTIONS), st.sampled_from(KNOWN), ODD_TEXT.filter(lambda word: "\0" not in word)
    ),
    max_size=6,
)


@pytest.fixture
def ready(rich: Rich, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rich:
    monkeypatch.setenv("TURNPOST_HOME", rich.root)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("TURNPOST_CLAUDE", str(tmp_path / "no-claude"))
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    monkeypatch.setattr(sender, "who", lambda _root, _pid=None: PERSON)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return rich


@QUICK
@given(
    name=st.sampled_from(sorted(set(leaves()) - LEFT_OUT)), words=WORDS, as_json=st.booleans(), stdin=st.binary(max_size=30)
)  # fmt: skip
def test_any_words_behind_any_command(
    ready: Rich, name: str, words: list[str], as_json: bool, stdin: bytes
) -> None:
    before = set(kit.waiting(ready, "gamma")) if name not in ("cancel", "send", "reply") else set()
    line = [*name.split(), *(["--json"] if as_json else []), *words]
    done = CliRunner().invoke(main, line, input=stdin, prog_name="turnpost")
    assert done.exception is None or isinstance(done.exception, SystemExit), line
    assert done.exit_code in (0, 2, 3, 4, 5, 6), (line, done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    if as_json and "--help" not in words and "-h" not in words and name != "completion":
        json.loads(done.stdout)
    elif done.exit_code and not as_json and "--json" not in words:
        assert done.stdout == "" or done.exit_code in (3, 5)
        assert len(done.stderr.splitlines()) <= 3, done.stderr
    assert before <= set(kit.waiting(ready, "gamma"))


@QUICK
@given(words=WORDS)
def test_any_words_for_a_command(ready: Rich, words: list[str]) -> None:
    done = CliRunner().invoke(main, ["no-such", *words], prog_name="turnpost")
    assert done.exit_code == 2


TOOLS = sorted(tool.name for tool in calls.TOOLS)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["to", "body", "kind", "urgent", "thread", "reply_to", "refs", "options", "wake", "target", "for", "for_", "id", "subagent", "x"]),
    st.one_of(ODD, st.sampled_from(KNOWN), st.lists(st.sampled_from(KNOWN), max_size=3)),
    max_size=6,
)  # fmt: skip


@QUICK
@given(
    tool=st.one_of(st.sampled_from(TOOLS), st.text(max_size=5)),
    given_=ARGUMENTS,
    whose=st.sampled_from(["alpha", "beta"]),
)
def test_any_arguments_of_any_tool(ready: Rich, tool: str, given_: dict[str, Any], whose: str) -> None:
    if tool == "wait":
        given_ = {**given_, "timeout": 0}
    answer = calls.answer(ready.root, tool, given_, lambda: None, Speaker(ready.agents[whose]))
    json.dumps(answer.document)
    if answer.failed:
        assert answer.document["error"]["rule"] not in ("bug", "io"), answer
        assert not answer.document["error"]["message"].startswith("bug"), answer
