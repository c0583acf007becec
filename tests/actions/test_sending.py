"""What a send answers, what it refuses, and that a refusal leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import courier, holding, receipts, sending
from turnpost.core import mailbox, outbox
from turnpost.core.errors import NotFound, Refused, TurnpostError, UsageError

if TYPE_CHECKING:
    from turnpost.core.records import Doing


def test_a_message_waits_with_its_recipient_once_send_returns(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(
        home.root, ["alpha"], "hello", kind="question", refs=["a.py:3"], options=["yes"], speaker=PERSON
    )
    assert sent.thread == "alpha+person"
    assert [mailbox.entry_id(name) for name in home.box(alpha).waiting()] == [sent.id]
    message = mailbox.load_message(home.root, sent.id)
    assert message is not None
    assert (message["body"], message["kind"], message["refs"], message["options"]) == (
        "hello",
        "question",
        ["a.py:3"],
        ["yes"],
    )
    assert message["sender"]["name"] == "person"


@pytest.mark.parametrize(
    ("doing", "urgent", "boundary"),
    [
        ("working", False, "stop-block"),
        ("working", True, "next-request"),
        ("blocked", False, "next-request"),
        ("idle", False, "resume"),  # nobody listens, and in the background it can be resumed
        ("stopped", False, "resume"),
        ("starting", False, "prompt"),
    ],
)
def test_the_answer_says_where_the_message_will_enter(
    home: FakeHome, doing: Doing, urgent: bool, boundary: str
) -> None:
    home.agent("alpha", doing)
    sent = sending.send(home.root, ["alpha"], "hello", urgent=urgent, speaker=PERSON)
    assert sent.recipients[0].boundary == boundary


def test_a_killed_session_is_resumed_and_a_deaf_one_is_called_deaf(home: FakeHome) -> None:
    home.kill(home.agent("gone", "working"))
    home.agent("deaf", "idle", background=False, ago=60)
    sent = sending.send(home.root, ["gone", "deaf"], "hello", speaker=PERSON)
    assert [(r.name, r.boundary, r.deaf) for r in sent.recipients] == [
        ("gone", "resume", False),
        ("deaf", "prompt", True),
    ]


Call = Callable[[FakeHome], object]

REFUSALS: list[tuple[str, type[TurnpostError], str, Call]] = [
    ("empty", Refused, "empty", lambda h: sending.send(h.root, ["alpha"], " \n\t", speaker=PERSON)),
    (
        "too long",
        Refused,
        "too-long",
        lambda h: sending.send(h.root, ["alpha"], "é" * 4000 + "x", speaker=PERSON),
    ),
    ("unknown", NotFound, "unknown", lambda h: sending.send(h.root, ["alphb"], "x", speaker=PERSON)),
    (
        "one unknown of two",
        NotFound,
        "unknown",
        lambda h: sending.send(h.root, ["alpha", "no"], "x", speaker=PERSON),
    ),
    ("person to person", Refused, "self", lambda h: sending.send(h.root, ["person"], "x", speaker=PERSON)),
    ("foreign", Refused, "foreign", lambda h: sending.send(h.root, ["alpha"], "x", speaker=FOREIGN)),
    ("nobody", UsageError, "usage", lambda h: sending.send(h.root, [], "x", speaker=PERSON)),
    (
        "kind",
        UsageError,
        "usage",
        lambda h: sending.send(h.root, ["alpha"], "x", kind="gift", speaker=PERSON),
    ),
    (
        "thread",
        UsageError,
        "bad-thread",
        lambda h: sending.send(h.root, ["alpha"], "x", thread="a\nb", speaker=PERSON),
    ),
    (
        "ref",
        UsageError,
        "bad-ref",
        lambda h: sending.send(h.root, ["alpha"], "x", refs=["\x1b[2J"], speaker=PERSON),
    ),
    (
        "answer to nothing",
        NotFound,
        "unknown",
        lambda h: sending.reply(h.root, "msg-" + "0" * 26, "x", speaker=PERSON),
    ),
    ("a reserved word", NotFound, "unknown", lambda h: sending.send(h.root, ["all"], "x", speaker=PERSON)),
    (
        "a path as a name",
        NotFound,
        "unknown",
        lambda h: sending.send(h.root, ["../agents"], "x", speaker=PERSON),
    ),
    ("no parent", NotFound, "unknown", lambda h: sending.send(h.root, ["parent"], "x", speaker=PERSON)),
]


@pytest.mark.parametrize(("error", "rule", "call"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_a_refusal_names_its_rule_and_writes_nothing(
    home: FakeHome, error: type[TurnpostError], rule: str, call: Call
) -> None:
    home.agent("alpha")
    before = home.tree()
    with pytest.raises(error) as caught:
        call(home)
    assert caught.value.rule == rule
    assert home.tree() == before


def test_a_refusal_in_a_fresh_home_does_not_even_make_the_home(home: FakeHome) -> None:
    with pytest.raises(NotFound):
        sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    assert home.tree() == {}


def test_the_sixty_fifth_message_is_refused_with_the_numbers_and_nobody_gets_it(home: FakeHome) -> None:
    home.agent("full", "working")
    other = home.agent("other", "working")
    for number in range(outbox.MAILBOX_LIMIT):
        sending.send(home.root, ["full"], f"message {number}", speaker=PERSON)
    before = home.tree()
    with pytest.raises(Refused) as caught:
        sending.send(home.root, ["other", "full"], "one more", speaker=PERSON)
    assert caught.value.rule == "mailbox-full"
    assert caught.value.numbers == {"waiting": 64, "limit": 64, "recipient": "full"}
    assert home.tree() == before | {home.box(other).folder + "/lock": b""}


def test_the_limit_counts_bytes_of_utf8_and_the_refusal_says_how_many(home: FakeHome) -> None:
    home.agent("alpha")
    assert sending.send(home.root, ["alpha"], "é" * 4000, speaker=PERSON).replaced == 0
    with pytest.raises(Refused) as caught:
        sending.send(home.root, ["alpha"], "é" * 4000 + "x", speaker=PERSON)
    assert caught.value.numbers == {"bytes": 8001, "limit": 8000}


def test_limits_come_from_the_settings_of_the_home(home: FakeHome) -> None:
    home.agent("alpha")
    with open(home.root + "/config.toml", "w") as file:
        file.write("body_bytes = 40000\nmailbox_size = 1\n")
    sending.send(home.root, ["alpha"], "x" * 40_000, speaker=PERSON)
    with pytest.raises(Refused) as caught:
        sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    assert caught.value.numbers["limit"] == 1


def test_the_same_text_again_is_accepted_and_counted(home: FakeHome) -> None:
    home.agent("alpha", "working")
    copies = [
        sending.send(home.root, ["alpha"], "again", speaker=PERSON).recipients[0].copy for _ in range(3)
    ]
    assert copies == [1, 2, 3]
    assert sending.send(home.root, ["alpha"], "other", speaker=PERSON).recipients[0].copy == 1


def test_characters_that_no_text_may_hold_are_replaced_and_counted(home: FakeHome) -> None:
    home.agent("alpha")
    sent = sending.send(home.root, ["alpha"], "a\0b\udce9c\x1b[31m", speaker=PERSON)
    assert sent.replaced == 2
    assert receipts.show(home.root, sent.id).body == "a\ufffdb\ufffdc\x1b[31m"


def test_names_are_found_in_any_case_and_a_recipient_named_twice_gets_one_copy(home: FakeHome) -> None:
    alpha = home.agent("Alpha", "working")
    sent = sending.send(home.root, ["alpha", "ALPHA"], "hello", speaker=PERSON)
    assert [r.name for r in sent.recipients] == ["Alpha"]
    assert len(home.box(alpha).waiting()) == 1


def test_between_a_parent_and_its_own_child_a_message_is_urgent_of_itself(home: FakeHome) -> None:
    mother = home.agent("mother", "working")
    child = home.agent("child", "working", parent=mother)
    home.team(mother, home.agent("mate", "working"))
    down = sending.send(home.root, ["child"], "stop that", speaker=home.speaker(mother))
    up = sending.send(home.root, ["parent"], "I will", speaker=home.speaker(child))
    mixed = sending.send(home.root, ["child", "mate"], "hello", speaker=home.speaker(mother))
    assert (down.urgent, down.recipients[0].boundary) == (True, "next-request")
    assert (up.urgent, up.recipients[0].name) == (True, "mother")
    assert not mixed.urgent


def test_an_agent_is_refused_to_itself_under_any_spelling(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    with pytest.raises(Refused, match="'self'"):
        sending.send(home.root, ["ALPHA"], "x", speaker=home.speaker(alpha))


def test_what_an_agent_sends_to_a_held_one_waits_and_the_persons_message_lifts_the_hold(
    home: FakeHome,
) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.team(alpha, beta)
    holding.hold(home.root, "alpha", speaker=PERSON)
    told = sending.send(home.root, ["alpha"], "from beta", speaker=home.speaker(beta))
    assert told.recipients[0].boundary == "held"
    assert home.box(alpha).held()
    assert receipts.show(home.root, told.id).receipts["alpha"].boundary == "held"
    assert sending.send(home.root, ["alpha"], "from me", speaker=PERSON).recipients[0].boundary != "held"
    assert not home.box(alpha).held()


def test_a_refused_message_of_the_person_lifts_no_hold(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    holding.hold(home.root, "alpha", speaker=PERSON)
    with pytest.raises(Refused):
        sending.send(home.root, ["alpha"], "", speaker=PERSON)
    assert home.box(alpha).held()


def test_an_answer_goes_to_the_asker_in_its_thread_also_after_a_rename(home: FakeHome) -> None:
    from turnpost.actions import agents

    alpha = home.agent("alpha")
    asked = sending.send(
        home.root, ["person"], "may I?", kind="question", thread="plans", speaker=home.speaker(alpha)
    )
    agents.rename(home.root, "alpha", "gamma", speaker=PERSON)
    answer = sending.reply(home.root, asked.id, "yes", speaker=PERSON)
    shown = receipts.show(home.root, answer.id)
    assert (shown.to, shown.thread, shown.kind, shown.reply_to) == (("gamma",), "plans", "answer", asked.id)


def test_a_message_is_safe_although_no_coordinator_can_be_started(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = home.agent("alpha", "stopped")
    monkeypatch.undo()
    from turnpost.service import process

    def fail(_root: str) -> None:
        raise OSError("no processes left")

    monkeypatch.setattr(process, "ensure", fail)
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    assert "no processes left" in sent.warnings[0]
    assert len(home.box(alpha).waiting()) == 1


def test_mail_for_the_person_alone_needs_no_coordinator(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = home.agent("alpha")
    monkeypatch.setattr(courier, "ensure", lambda _root: ("called",))
    assert sending.send(home.root, ["person"], "hello", speaker=home.speaker(alpha)).warnings == ()
