"""The person's inbox: questions stay until they are answered, and only the person's questions are in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import conversations, inbox, missions, receipts, sending, waiting
from turnpost.core import registry
from turnpost.core.errors import UsageError

if TYPE_CHECKING:
    from turnpost.actions.results import Sent
    from turnpost.core.records import Agent

OPEN = "".join(f'[[rule]]\nfrom = "{name}"\nverdict = "allow"\n' for name in ("alpha", "beta"))


def ask(home: FakeHome, asker: Agent, body: str, *options: str) -> Sent:
    return sending.send(
        home.root, ["person"], body, kind="question", options=options, speaker=home.speaker(asker)
    )


def look(home: FakeHome) -> list[tuple[str, bool]]:
    """What the person sees, and has seen from then on."""
    shown = inbox.waiting(home.root, speaker=PERSON).messages
    inbox.mark_read(home.root, [message.id for message in shown], speaker=PERSON)
    return [(message.body, message.pinned) for message in shown]


def test_a_question_is_pinned_first_and_stays_until_it_is_answered(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    sending.send(home.root, ["person"], "by the way", speaker=home.speaker(alpha))
    asked = ask(home, alpha, "may I?")
    assert look(home) == [("may I?", True), ("by the way", False)]
    assert look(home) == [("may I?", True)]
    assert receipts.show(home.root, asked.id).receipts["person"].state == "read"
    sending.reply(home.root, asked.id, "you may", speaker=PERSON)
    assert look(home) == []


@pytest.mark.parametrize(
    ("word", "choice", "answer"), [("2", 2, "no"), ("NO", 2, "no"), ("later", None, "later")]
)
def test_an_answer_by_number_or_text_is_linked_to_its_question(
    home: FakeHome, word: str, choice: int | None, answer: str
) -> None:
    alpha = home.agent("alpha", "stopped")
    asked = ask(home, alpha, "may I?", "yes", "no")
    sent = sending.reply(home.root, asked.id, word, speaker=PERSON)
    shown = receipts.show(home.root, sent.id)
    assert (shown.body, shown.choice, shown.kind, shown.reply_to) == (answer, choice, "answer", asked.id)
    assert (shown.thread, sent.recipients[0].boundary) == (asked.thread, "resume")
    assert receipts.show(home.root, asked.id).answers == (sent.id,)
    assert not receipts.show(home.root, asked.id).pinned
    [block] = home.claim(alpha, "resume")
    assert f'reply-to="{asked.id}"' in block
    assert ('choice="2"' in block) is (choice == 2)


def test_a_number_that_is_not_offered_answers_nothing(home: FakeHome) -> None:
    asked = ask(home, home.agent("alpha"), "may I?", "yes", "no")
    before = home.tree()
    with pytest.raises(UsageError, match="no option 3"):
        sending.reply(home.root, asked.id, "3", speaker=PERSON)
    assert home.tree() == before
    assert look(home) == [("may I?", True)]


def test_a_question_between_agents_never_shows_as_the_persons(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.policy(OPEN)
    asked = sending.send(
        home.root,
        ["beta"],
        "do you know?",
        kind="question",
        options=["yes", "no"],
        speaker=home.speaker(alpha),
    )
    assert look(home) == []
    assert not receipts.show(home.root, asked.id).pinned
    lines = conversations.overview(home.root, speaker=PERSON).threads
    assert [(line.name, line.pinned) for line in lines] == [("alpha+beta", 0)]
    [block] = home.claim(beta)
    assert "turnpost: answer your teammate alpha as permitted" in block
    assert 'from="alpha" to="beta"' in block


def test_an_answer_by_somebody_else_leaves_the_question_open(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.policy(OPEN)
    asked = sending.send(home.root, ["person", "beta"], "who?", kind="question", speaker=home.speaker(alpha))
    sending.reply(home.root, asked.id, "I", speaker=home.speaker(beta))
    sending.send(home.root, ["alpha"], "why?", kind="question", reply_to=asked.id, speaker=PERSON)
    assert look(home) == [("who?", True)]
    sending.reply(home.root, asked.id, "beta", speaker=PERSON)
    assert look(home) == []


def test_a_question_taken_back_before_it_was_seen_is_gone(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    asked = ask(home, alpha, "may I?")
    receipts.cancel(home.root, asked.id, speaker=home.speaker(alpha))
    assert look(home) == []


def test_the_threads_say_how_many_questions_are_open(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    ask(home, alpha, "one?")
    ask(home, alpha, "two?")
    assert {line.name: line.pinned for line in conversations.overview(home.root, speaker=PERSON).threads} == {
        "inbox": 2,
        "alpha+person": 2,
    }


def test_options_without_a_question_are_refused(home: FakeHome) -> None:
    home.agent("alpha")
    with pytest.raises(UsageError) as caught:
        sending.send(home.root, ["alpha"], "x", options=["yes"], speaker=PERSON)
    assert caught.value.rule == "bad-option"


def test_a_recipient_is_told_what_its_sender_is_to_it(home: FakeHome) -> None:
    mother = home.agent("mother")
    child = home.agent("child", parent=mother)
    sending.send(home.root, ["child"], "not so", speaker=home.speaker(mother))
    sending.send(home.root, ["parent"], "done", kind="report", speaker=home.speaker(child))
    sending.send(home.root, ["child"], "well?", speaker=PERSON)
    below, from_person = home.claim(child)
    [above] = home.claim(mother)
    assert below.startswith("turnpost: follow your parent mother as permitted")
    assert from_person.startswith("turnpost: follow the person as permitted")
    assert above.startswith("turnpost: use the report of your child child as permitted")
    assert registry.find(home.root, "child")["parent"] == mother["key"]


def test_an_answer_that_is_taken_back_leaves_the_question_open(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    asked = ask(home, alpha, "may I?")
    look(home)
    answer = sending.reply(home.root, asked.id, "yes", speaker=PERSON)
    assert look(home) == []
    receipts.cancel(home.root, answer.id, speaker=PERSON)
    assert look(home) == [("may I?", True)]
    assert receipts.show(home.root, asked.id).answers == ()
    waited = waiting.wait(home.root, asked.id, "reply", timeout=0, speaker=home.speaker(alpha))
    assert not waited.done


def test_an_answer_to_somebody_else_is_none(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    home.agent("beta")
    asked = ask(home, alpha, "may I?")
    sending.send(home.root, ["beta"], "no", kind="answer", reply_to=asked.id, speaker=PERSON)
    assert look(home) == [("may I?", True)]
    assert not waiting.wait(home.root, asked.id, "reply", timeout=0, speaker=home.speaker(alpha)).done


def test_nobody_is_asked_any_more_by_an_agent_whose_mission_is_over(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    home.team(alpha, name="trip")
    ask(home, alpha, "may I?")
    assert look(home) == [("may I?", True)]
    missions.abort(home.root, "trip", "the road is closed", speaker=PERSON)
    assert look(home) == []
