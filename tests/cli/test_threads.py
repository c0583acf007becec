"""`threads`, `thread`, `search`: JSON, plain text in a pipe, Markdown on a terminal."""

from __future__ import annotations

import os
import sys

import pexpect
import pytest

from tests.actions.fakes import PERSON, FakeHome
from tests.cli.conftest import Run, modules_of
from turnpost.actions import sending
from turnpost.cli import columns, markdown
from turnpost.core import sender

BODY = """# Dates

Use **ISO 8601** in `format()`, see [the page](https://example.org/iso).

<b>not lost</b>

| old | new |
| --- | --- |
| 1/2 | 02-01 |
"""


@pytest.fixture
def talk(home: FakeHome) -> FakeHome:
    alpha = home.agent("alpha", "working")
    sending.send(home.root, ["alpha"], BODY, speaker=PERSON)
    sending.send(
        home.root, ["person"], "yes or no?\x1b[2J", kind="question", options=["yes", "no"], refs=["#12"],
        speaker=home.speaker(alpha),
    )  # fmt: skip
    return home


def test_threads_is_a_list_of_the_documented_fields(talk: FakeHome, run: Run) -> None:
    pair, inbox = run("threads", "--json").json
    assert set(pair) == {
        "name", "kind", "messages", "pinned", "last", "last_id", "last_from", "last_body",
    }  # fmt: skip
    assert (inbox["name"], pair["name"], pair["pinned"]) == ("inbox", "alpha+person", 1)
    text = run("threads").out
    assert "alpha+person  2         1" in text
    assert "yes or no?\\x1b[2J" in text
    assert max(columns.width(line) for line in text.splitlines()) <= 80


def test_threads_with_long_names_have_room_for_the_text(home: FakeHome, run: Run) -> None:
    long = home.agent("a-name-that-is-longer-than-any-column", "working")
    sending.send(home.root, ["person"], "yes or no?", thread="計画" * 40, speaker=home.speaker(long))
    lines = run("threads").out.splitlines()
    assert max(columns.width(line) for line in lines) <= 80
    assert all("yes or" in line for line in lines[1:])


def test_a_thread_in_a_pipe_is_what_was_written(talk: FakeHome, run: Run) -> None:
    shown = run("thread", "alpha").out
    assert shown.startswith("thread alpha+person: 2 messages\n\nperson → alpha: note, ")
    assert "".join(f"  {line}\n" if line else "\n" for line in BODY.splitlines()) in shown
    assert "alpha → person: question, pinned, " in shown
    assert "  about pull request #12\n  1: yes\n  2: no\n  answer with: turnpost reply msg-" in shown
    assert "\x1b" not in shown


def test_a_thread_as_json_has_whole_messages_with_their_receipts(talk: FakeHome, run: Run) -> None:
    found = run("thread", "alpha", "--json").json
    assert (found["name"], found["older"], len(found["messages"])) == ("alpha+person", 0, 2)
    assert found["messages"][0]["body"] == BODY
    assert found["messages"][0]["receipts"]["alpha"]["state"] == "queued"
    assert found["messages"][1]["pinned"] is True


def test_the_filters_are_options_of_thread_and_search(talk: FakeHome, run: Run) -> None:
    filters = [
        "--from",
        "alpha",
        "--kind",
        "question",
        "--state",
        "queued",
        "--since",
        "1h",
        "--until",
        "2100-01-01",
    ]
    for words in (["thread", "inbox", "--text", "YES OR"], ["search", "yes or"], ["search"]):
        [message] = run(*words, *filters, "--last", "5", "--json").json["messages"]
        assert message["kind"] == "question"
    plain = run("search", "--last", "1").out
    assert plain.startswith("found: 1 message; 1 older fit too, --last shows more\n")
    assert "thread alpha+person" in plain


@pytest.mark.parametrize(
    ("words", "code", "rule"),
    [
        (["thread", "nobody"], 4, "unknown"),
        (["search", "--from", "nobody"], 4, "unknown"),
        (["search", "--since", "soon"], 2, "bad-time"),
        (["search", "--kind", "gift"], 2, "usage"),
        (["search", "--last", "0"], 2, "usage"),
        (["thread"], 2, "usage"),
    ],
)
def test_what_cannot_be_found_is_told_with_its_rule(
    talk: FakeHome, run: Run, words: list[str], code: int, rule: str
) -> None:
    done = run(*words, "--json")
    assert (done.code, done.json["error"]["rule"]) == (code, rule)


def test_the_inbox_tells_how_to_answer_and_reply_takes_a_number(talk: FakeHome, run: Run) -> None:
    [question] = run("inbox", "--json").json["messages"]
    assert question["pinned"]
    answer = run("reply", question["id"], "2", "--json").json
    shown = run("show", answer["id"])
    assert f"answers {question['id']} with option 2" in shown.out
    assert f"answered by {answer['id']}" in run("show", question["id"]).out
    assert run("inbox", "--json").json == {"messages": []}


def test_markdown_is_formatted_and_loses_nothing_that_was_written() -> None:
    shown = markdown.body(BODY + "\x1b[31m\u202e")
    for words in ("Dates", "ISO 8601", "format()", "https://example.org/iso", "<b>not lost</b>", "02-01"):
        assert words in shown
    assert "**" not in shown
    assert "\x1b[1m" in shown
    assert "\x1b[31m" not in shown.replace("\\x1b[31m", "")
    assert "\\x1b[31m\\u202e" in shown
    assert "\x1b]8" not in shown, "a link must show where it leads"
    assert all(line.startswith("  ") for line in shown.splitlines() if line)


def test_thread_names_complete(talk: FakeHome, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TURNPOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "turnpost thread al")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run().out.splitlines() == ["plain,alpha+person"]


@pytest.mark.process
def test_on_a_terminal_a_thread_is_formatted(talk: FakeHome) -> None:
    if not sender.who(talk.root).is_person:
        pytest.skip("runs inside a Claude session: the command would be refused as foreign")
    environment = {**os.environ, "TERM": "xterm-256color", "TURNPOST_HOME": talk.root}
    environment.pop("NO_COLOR", None)
    shown, code = pexpect.run(
        f"{sys.executable} -m turnpost thread alpha",
        env=environment,
        withexitstatus=True,
        encoding="utf-8",
        timeout=60,
    )
    assert code == 0
    assert "\x1b[1m" in shown
    assert "**ISO" not in shown
    assert "<b>not lost</b>" in shown
    assert "yes or no?\\x1b[2J" in shown


@pytest.mark.process
@pytest.mark.parametrize("words", [["thread", "alpha"], ["inbox", "--keep"], ["send", "alpha", "x"]])
def test_a_pipe_and_a_send_load_no_markdown(talk: FakeHome, words: list[str]) -> None:
    loaded = modules_of(talk, *words)
    assert loaded & {"rich", "markdown_it", "turnpost.cli.markdown", "pydantic"} == set()
    if words[0] == "send":
        assert (
            loaded & {"turnpost.actions.conversations", "turnpost.actions.searching", "turnpost.cli.threads"}
            == set()
        )
