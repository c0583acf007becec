"""What each tool does and refuses, as the agent that calls it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import sending, stopping
from turnpost.core import mailbox
from turnpost.core.sender import Speaker
from turnpost.tools import arguments, calls, shapes

Use = Callable[..., calls.Answer]


def nothing() -> None:
    """Nobody cancels the call."""


@pytest.fixture
def use(home: FakeHome) -> Use:
    """A call of a tool by `speaker`; a result is checked against the schema the tool promises."""

    def call(name: str, speaker: Speaker, pulse: Callable[[], None] = nothing, **given: Any) -> calls.Answer:
        answer = calls.answer(home.root, name, given, pulse, speaker)
        if not answer.failed:
            gives = next(tool.gives for tool in calls.TOOLS if tool.name == name)
            Draft202012Validator(shapes.schema(gives)).validate(answer.document)
        return answer

    return call


def test_a_parent_and_its_child_write_to_each_other_under_their_own_names(home: FakeHome, use: Use) -> None:
    alpha = home.agent("alpha")
    beta = home.agent("beta", parent=alpha)
    sent = use("send", home.speaker(alpha), to="beta", body="count them", kind="question", refs=["a.py:3"])
    message = mailbox.load_message(home.root, sent.document["id"])
    assert message is not None
    assert (message["sender"]["name"], message["kind"], message["refs"]) == ("alpha", "question", ["a.py:3"])
    assert sent.document["recipients"][0]["name"] == "beta"

    answered = use("reply", home.speaker(beta), id=sent.document["id"], body="seven")
    assert [one["name"] for one in answered.document["recipients"]] == ["alpha"]
    up = use("send", home.speaker(beta), to="parent, person", body="and done")
    assert [one["name"] for one in up.document["recipients"]] == ["alpha", "person"]


def test_list_says_who_one_is_and_who_the_others_are(home: FakeHome, use: Use) -> None:
    alpha = home.agent("alpha")
    beta = home.agent("beta", "working", parent=alpha)
    home.agent("gamma")
    document = use("list", home.speaker(beta)).document
    assert (document["you"], document["parent"]) == ("beta", "alpha")
    assert [(one["name"], one["relation"]) for one in document["agents"]] == [
        ("alpha", "parent"),
        ("gamma", "stranger"),
    ]
    assert use("list", home.speaker(alpha)).document["agents"][0] == {
        "name": "beta", "state": "working", "waiting": 0, "held": False, "relation": "child", "writable": True,
        "mission": None,
    }  # fmt: skip
    assert [one["writable"] for one in document["agents"]] == [True, False]


def test_wait_answers_with_the_result_or_with_how_things_stand(home: FakeHome, use: Use) -> None:
    alpha = home.agent("alpha")
    beta = home.agent("beta", "working", parent=alpha)
    sent = use("send", home.speaker(alpha), to="beta", body="hello").document["id"]
    begin = time.monotonic()
    seen = use("wait", home.speaker(alpha), target=sent, timeout=0.2).document
    assert time.monotonic() - begin < 5
    assert (seen["done"], seen["state"], seen["for"]) == (False, "queued", "read")
    home.enters(beta, home.claim(beta))
    seen = use("wait", home.speaker(alpha), target=sent).document
    assert (seen["done"], seen["state"]) == (True, "read")
    use("reply", home.speaker(beta), id=sent, body="hi")
    seen = use("wait", home.speaker(alpha), target=sent, **{"for": "reply"}).document
    assert (seen["done"], seen["message"]["body"]) == (True, "hi")


def test_a_wait_that_nobody_wants_any_more_ends_at_its_next_look(home: FakeHome, use: Use) -> None:
    class Gone(BaseException):
        pass

    def gone() -> None:
        raise Gone

    alpha = home.agent("alpha")
    beta = home.agent("beta", "working", parent=alpha)
    sent = use("send", home.speaker(alpha), to="beta", body="hello").document["id"]
    with pytest.raises(Gone):
        use("wait", home.speaker(alpha), gone, target=sent, timeout=30)
    assert beta


def test_cancel_takes_a_message_back(home: FakeHome, use: Use) -> None:
    alpha = home.agent("alpha")
    home.agent("beta", "working", parent=alpha)
    sent = use("send", home.speaker(alpha), to="beta", body="hello").document["id"]
    assert use("cancel", home.speaker(alpha), target=sent).document == {
        "cancelled": {"id": sent, "cancelled": ["beta"], "too_late": {}},
        "stopped": None,
    }


def test_cancel_with_the_name_of_an_own_child_stops_it(
    home: FakeHome, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Claude:
        def stop(self, _session_id: str) -> None:
            home.kill(beta)

    alpha = home.agent("alpha")
    beta = home.agent("beta", parent=alpha)
    monkeypatch.setattr(stopping, "_claude", lambda _root, _agent: Claude())
    document = use("cancel", home.speaker(alpha), target="beta").document
    assert document["cancelled"] is None
    assert (document["stopped"]["name"], document["stopped"]["held"]) == ("beta", False)
    assert document["stopped"]["state"] in ("stopped", "lost")


@pytest.mark.parametrize(
    ("name", "given", "rule", "numbers"),
    [
        ("send", {"to": "beta", "body": " \n"}, "empty", {"bytes": 0}),
        ("send", {"to": "beta", "body": "x" * 8001}, "too-long", {"bytes": 8001, "limit": 8000}),
        ("send", {"to": "alpha", "body": "x"}, "self", {"name": "alpha"}),
        ("send", {"to": "betta", "body": "x"}, "unknown", {"near": ["beta"]}),
        ("send", {"to": "gamma", "body": "x"}, "not-allowed", {"caller": "alpha", "relation": "stranger"}),
        ("send", {"to": "beta", "body": "x", "kind": "shout"}, "usage", {}),
        ("send", {"to": "beta"}, "usage", {}),
        ("send", {"to": "beta", "body": "x", "sender": "person"}, "usage", {}),
        ("wait", {"target": "beta", "timeout": 30.5}, "usage", {"limit": 30.0}),
        ("wait", {"target": "msg-nothing"}, "unknown", {}),
        ("reply", {"id": "msg-01JD3QK8V5T0YF6Z2M9XWB4C7R", "body": "x"}, "unknown", {}),
        ("cancel", {"target": "gamma"}, "not-allowed", {"caller": "alpha"}),
        ("shout", {}, "usage", {}),
    ],
)
def test_a_refusal_names_its_rule_and_its_numbers_and_writes_nothing(
    home: FakeHome, use: Use, name: str, given: dict[str, Any], rule: str, numbers: dict[str, Any]
) -> None:
    alpha = home.agent("alpha")
    home.agent("beta", parent=alpha)
    home.agent("gamma")
    before = home.tree()
    answer = use(name, home.speaker(alpha), **given)
    assert answer.failed
    assert set(answer.document) == {"error"}
    error = answer.document["error"]
    assert error["rule"] == rule
    assert error["message"]
    assert {key: error.get(key) for key in numbers} == numbers
    assert home.tree() == before


@pytest.mark.parametrize("speaker", [PERSON, FOREIGN])
@pytest.mark.parametrize("tool", calls.TOOLS, ids=lambda tool: tool.name)
def test_only_an_agent_uses_the_tools(home: FakeHome, use: Use, speaker: Speaker, tool: calls.Tool) -> None:
    """A program that nobody knows must not speak as the person."""
    home.agent("alpha")
    given = dict.fromkeys(arguments.schema(tool.takes).get("required", []), "alpha")
    assert use(tool.name, speaker, **given).document["error"]["rule"] == "foreign"


def test_a_bug_is_an_answer_and_not_the_end_of_the_server(
    home: FakeHome, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise ZeroDivisionError("once")

    alpha = home.agent("alpha")
    monkeypatch.setattr(sending, "send", broken)
    error = use("send", home.speaker(alpha), to="person", body="x").document["error"]
    assert error["rule"] == "bug"
    assert "ZeroDivisionError" in error["message"]


def test_what_a_tool_takes_is_described_and_nothing_else_is_taken() -> None:
    for tool in calls.TOOLS:
        schema = arguments.schema(tool.takes)
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert all(about.get("description") for about in schema["properties"].values()), tool.name
        assert "title" not in str(schema)
    send = arguments.schema(arguments.Send)
    assert send["required"] == ["to", "body"]
    assert send["properties"]["kind"]["enum"] == list(sending.KINDS)
    wait = arguments.schema(arguments.Wait)["properties"]
    assert (wait["timeout"]["default"], wait["timeout"]["maximum"]) == (1.0, 30.0)
