"""Every refusal of routing, missions, plan mode and loops: it writes nothing, and names its rule and its numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import agents, holding, inbox, launching, missions, receipts, sending, stopping, waiting
from turnpost.core import loops, registry
from turnpost.core.errors import Refused
from turnpost.core.loops import Budget
from turnpost.core.sender import Speaker

Call = Callable[[FakeHome, Callable[[str], Speaker]], object]


@pytest.fixture
def who(home: FakeHome) -> Callable[[str], Speaker]:
    """A family in the mission `trip`, an aunt with a child of her own, and one whose mission is over; as speakers."""
    mother = home.agent("mother")
    aunt = home.agent("aunt")
    home.agent("child", parent=mother)
    home.agent("sibling", parent=mother)
    home.agent("cousin", parent=aunt)
    planner = home.agent("planner", parent=mother)
    home.plan_mode(planner)
    home.team(home.agent("mate"), name="trip", coordinator=mother)
    late = home.agent("late", "stopped", parent=mother)
    home.team(late, home.agent("later"), name="gone", coordinator=mother)
    missions.finish(home.root, "gone", speaker=PERSON)

    def speaker(name: str) -> Speaker:
        return Speaker(registry.find(home.root, name))

    return speaker


def send(frm: str, *to: str) -> Call:
    return lambda h, who: sending.send(h.root, to, "x", speaker=who(frm))


NOT_ALLOWED = "not-allowed"
REFUSALS: list[tuple[str, str, dict[str, object], Call]] = [
    ("a sibling", NOT_ALLOWED, {"caller": "child", "recipient": "sibling", "relation": "sibling"}, send("child", "sibling")),
    ("a stranger", NOT_ALLOWED, {"caller": "child", "recipient": "aunt", "relation": "stranger"}, send("child", "aunt")),
    ("another's child", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "relation": "stranger"}, send("mother", "cousin")),
    ("one of two", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "relation": "stranger"}, send("mother", "child", "cousin")),
    ("from outside a mission", NOT_ALLOWED, {"caller": "aunt", "recipient": "mate", "relation": "stranger"}, send("aunt", "mate")),
    ("itself", "self", {"name": "child"}, send("child", "CHILD")),
    ("plan mode", "read-only", {"caller": "planner", "mode": "plan"}, send("planner", "parent")),
    ("plan mode, to the person", "read-only", {"caller": "planner", "mode": "plan"}, send("planner", "person")),
    ("plan mode, a launch", "read-only", {"caller": "planner", "mode": "plan"}, lambda h, w: launching.launch(h.root, "new", speaker=w("planner"))),
    ("plan mode, a mission", "read-only", {"caller": "planner", "mode": "plan"}, lambda h, w: missions.start(h.root, "new", speaker=w("planner"))),
    ("mission over", "mission-over", {"recipient": "late", "mission": "gone", "state": "finished"}, send("mother", "late")),
    ("mission over, by a mate", "mission-over", {"recipient": "late", "mission": "gone", "state": "finished"}, send("later", "late")),
    ("mission over, by the person", "mission-over", {"recipient": "late", "mission": "gone", "state": "finished"},
     lambda h, w: sending.send(h.root, ["late"], "x", speaker=PERSON)),
    ("mission over, a wake", "mission-over", {"recipient": "late", "mission": "gone", "state": "finished"},
     lambda h, w: holding.wake(h.root, "late", speaker=PERSON)),
    ("mission over, a launch", "mission-over", {"mission": "gone", "state": "finished"},
     lambda h, w: launching.launch(h.root, "new", mission="gone", speaker=PERSON)),
    ("foreign", "foreign", {"pid": 4711}, lambda h, w: sending.send(h.root, ["child"], "x", speaker=FOREIGN)),
    ("foreign, a wait", "foreign", {"pid": 4711}, lambda h, w: waiting.wait(h.root, "child", timeout=0, speaker=FOREIGN)),
    ("stop a sibling", NOT_ALLOWED, {"caller": "child", "recipient": "sibling", "relation": "sibling"},
     lambda h, w: stopping.stop(h.root, "sibling", speaker=w("child"))),
    ("stop another's child", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "relation": "stranger"},
     lambda h, w: stopping.stop(h.root, "cousin", speaker=w("mother"))),
    ("stop a mate one coordinates", NOT_ALLOWED, {"caller": "mother", "recipient": "mate", "relation": "led"},
     lambda h, w: stopping.stop(h.root, "mate", speaker=w("mother"))),
    ("stop oneself", NOT_ALLOWED, {"caller": "child", "recipient": "child", "relation": "self"},
     lambda h, w: stopping.stop(h.root, "child", speaker=w("child"))),
    ("hold a parent", NOT_ALLOWED, {"caller": "child", "recipient": "mother", "relation": "parent"},
     lambda h, w: holding.hold(h.root, "mother", speaker=w("child"))),
    ("release another's child", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "relation": "stranger"},
     lambda h, w: holding.release(h.root, "cousin", speaker=w("mother"))),
    ("rename another's child", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "relation": "stranger"},
     lambda h, w: agents.rename(h.root, "cousin", "new", speaker=w("mother"))),
    ("wait for a sibling", NOT_ALLOWED, {"caller": "child", "recipient": "sibling", "relation": "sibling"},
     lambda h, w: waiting.wait(h.root, "sibling", timeout=0, speaker=w("child"))),
    ("wait for a stranger's message", NOT_ALLOWED, {"caller": "child", "recipient": "aunt", "relation": "stranger"},
     lambda h, w: waiting.wait(h.root, "aunt", "message", timeout=0, speaker=w("child"))),
    ("finish as a member", NOT_ALLOWED, {"caller": "mate", "mission": "trip"}, lambda h, w: missions.finish(h.root, "trip", speaker=w("mate"))),
    ("abort as a stranger", NOT_ALLOWED, {"caller": "aunt", "mission": "trip"}, lambda h, w: missions.abort(h.root, "trip", speaker=w("aunt"))),
    ("add another's child", NOT_ALLOWED, {"caller": "mother", "recipient": "cousin", "mission": "trip"},
     lambda h, w: missions.add(h.root, "trip", ["child", "cousin"], speaker=w("mother"))),
    ("launch into another's mission", NOT_ALLOWED, {"caller": "aunt", "mission": "trip"},
     lambda h, w: launching.launch(h.root, "new", mission="trip", speaker=w("aunt"))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "numbers", "call"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_a_refusal_writes_nothing_and_names_its_rule_and_numbers(
    home: FakeHome, who: Callable[[str], Speaker], rule: str, numbers: dict[str, object], call: Call
) -> None:
    before = home.tree()
    with pytest.raises(Refused) as caught:
        call(home, who)
    assert (caught.value.rule, caught.value.numbers) == (rule, numbers)
    assert f"'{rule}'" in caught.value.message
    assert home.tree() == before


def test_a_message_is_waited_for_and_taken_back_by_its_owner_only(
    home: FakeHome, who: Callable[[str], Speaker]
) -> None:
    sent = sending.send(home.root, ["person"], "x", speaker=who("child"))
    before = home.tree()
    for name in ("aunt", "sibling"):
        with pytest.raises(Refused, match="not-allowed"):
            receipts.cancel(home.root, sent.id, speaker=who(name))
        with pytest.raises(Refused, match="not-allowed"):
            waiting.wait(home.root, sent.id, timeout=0, speaker=who(name))
    assert home.tree() == before
    assert waiting.wait(home.root, sent.id, timeout=0, speaker=who("child")).state == "queued"
    assert receipts.cancel(home.root, sent.id, speaker=who("mother")).cancelled == ("person",)


def test_plan_mode_ends_and_the_agent_may_send(home: FakeHome, who: Callable[[str], Speaker]) -> None:
    home.plan_mode(registry.find(home.root, "planner"), "acceptEdits")
    assert sending.send(home.root, ["parent"], "x", speaker=who("planner")).id


def test_an_exchange_of_agents_ends_at_the_eighth_reply_and_the_person_is_told_once(
    home: FakeHome, who: Callable[[str], Speaker]
) -> None:
    last = sending.send(home.root, ["child"], "0", speaker=who("mother"))
    root_id = last.id
    names = ["child", "mother"] * 5
    for number in range(8):
        last = sending.reply(home.root, last.id, str(number + 1), speaker=who(names[number]))
    with pytest.raises(Refused) as caught:
        sending.reply(home.root, last.id, "9", speaker=who("child"))
    assert caught.value.rule == "loop"
    assert caught.value.numbers == {"counted": 9, "limit": 8, "recipient": "mother", "origin": root_id}
    [alert] = inbox.waiting(home.root, speaker=PERSON).messages
    assert (alert.sender, alert.kind) == ("system", "alert")
    assert "child and mother" in alert.body
    before = home.tree()
    with pytest.raises(Refused, match="loop"):
        sending.reply(home.root, last.id, "9", speaker=who("child"))
    assert home.tree() == before


def test_the_person_answers_in_between_and_the_count_begins_anew(
    home: FakeHome, who: Callable[[str], Speaker]
) -> None:
    asked = sending.send(home.root, ["person"], "may I?", kind="question", speaker=who("child"))
    answer = sending.reply(home.root, asked.id, "yes", speaker=PERSON)
    from turnpost.core import mailbox

    message = mailbox.load_message(home.root, answer.id)
    assert message is not None
    assert (message.get("hops"), message.get("origin")) == (0, asked.id)
    thanks = sending.reply(home.root, answer.id, "thank you", speaker=who("child"))
    message = mailbox.load_message(home.root, thanks.id)
    assert message is not None
    assert (message.get("hops"), message.get("origin")) == (1, asked.id)


def test_a_pair_is_stopped_at_its_limit_in_both_directions_until_the_person_writes(
    home: FakeHome, who: Callable[[str], Speaker]
) -> None:
    home.policy("[loops]\nmessages = 4\n")
    for number in range(4):
        one, other = ("mother", "child") if number % 2 else ("child", "mother")
        sending.send(home.root, [other], str(number), speaker=who(one))
    sending.send(home.root, ["sibling"], "another pair", speaker=who("mother"))
    waits = (home.box(who("child").agent).waiting(), home.box(who("sibling").agent).waiting())
    for frm, *to in (("child", "mother"), ("mother", "sibling", "child")):
        with pytest.raises(Refused) as caught:
            sending.send(home.root, to, "one more", speaker=who(frm))
        assert caught.value.numbers == {"counted": 4, "limit": 4, "recipient": to[-1], "seconds": 600.0}
    assert (home.box(who("child").agent).waiting(), home.box(who("sibling").agent).waiting()) == waits
    assert len(inbox.waiting(home.root, speaker=PERSON).messages) == 1
    sending.send(home.root, ["mother"], "go on", speaker=PERSON)
    assert sending.send(home.root, ["child"], "one more", speaker=who("mother")).id


def test_agents_may_write_to_the_person_as_often_as_they_like(
    home: FakeHome, who: Callable[[str], Speaker]
) -> None:
    home.policy("[loops]\nmessages = 2\nhops = 1\n")
    for number in range(5):
        sending.send(home.root, ["person"], str(number), speaker=who("child"))
    assert len(inbox.waiting(home.root, speaker=PERSON).messages) == 5


def test_a_message_of_the_persons_to_either_lets_an_exchange_go_on(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    beta = home.agent("beta", parent=alpha)
    home.policy("[loops]\nhops = 1\n")
    asked = sending.send(home.root, ["beta"], "one", speaker=home.speaker(alpha))
    answered = sending.reply(home.root, asked.id, "two", speaker=home.speaker(beta))
    with pytest.raises(Refused, match="opens the way again"):
        sending.reply(home.root, answered.id, "three", speaker=home.speaker(alpha))
    sending.send(home.root, ["beta"], "go on", speaker=PERSON)
    assert sending.reply(home.root, answered.id, "three", speaker=home.speaker(alpha)).id


def test_a_ring_of_three_agents_that_answer_everything_stops(home: FakeHome) -> None:
    ring = [home.agent(name) for name in ("a1", "a2", "a3")]
    home.team(*ring)

    def answer(number: int) -> None:
        one, other = ring[number % 3], ring[(number + 1) % 3]
        sent = sending.send(home.root, [other["name"]], str(number), speaker=home.speaker(one))
        receipts.cancel(home.root, sent.id, speaker=PERSON)

    for number in range(60):
        answer(number)
    for number in range(60, 63):
        with pytest.raises(Refused, match="loop"):
            answer(number)


def test_a_counter_that_cannot_be_written_costs_no_message(
    home: FakeHome, who: Callable[[str], Speaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(loops, "count", fail)
    assert sending.send(home.root, ["parent"], "x", speaker=who("child")).id
    assert Budget().messages == 20
