"""Threads and searching: what is found, under which names, and who may look."""

from __future__ import annotations

import shutil

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import agents, conversations, inbox, receipts, searching, sending
from turnpost.actions.searching import Query
from turnpost.core import home as corehome
from turnpost.core import registry
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.core.sender import Speaker


def bodies(home: FakeHome, name: str, speaker: Speaker = PERSON, **query: str | None) -> list[str]:
    found = conversations.thread(home.root, name, Query(**query), speaker=speaker)
    return [message.body for message in found.messages]


def found(home: FakeHome, speaker: Speaker = PERSON, **query: str | None) -> list[str]:
    return [
        message.body for message in conversations.search(home.root, Query(**query), speaker=speaker).messages
    ]


@pytest.fixture
def talk(home: FakeHome) -> FakeHome:
    """alpha and beta talk to each other and to the person; two more are on a mission."""
    alpha, beta = home.agent("alpha", "working"), home.agent("beta", "working")
    home.policy(
        '[[rule]]\nfrom = "alpha"\nto = "beta"\nverdict = "allow"\n[[rule]]\nfrom = "beta"\nverdict = "allow"\n'
    )
    home.team(home.agent("miner", "working"), home.agent("mason", "working"), name="build", coordinator=beta)
    miner = Speaker(registry.find(home.root, "miner"))
    sending.send(home.root, ["beta"], "to beta", refs=["src/dates.py:4"], speaker=home.speaker(alpha))
    sending.send(home.root, ["alpha"], "to alpha", speaker=home.speaker(beta))
    sending.send(home.root, ["person"], "to the person", kind="report", speaker=home.speaker(alpha))
    sending.send(home.root, ["alpha"], "from the person", speaker=PERSON)
    sending.send(home.root, ["mason"], "dig here", kind="contract", speaker=miner)
    sending.send(home.root, ["person"], "dug", speaker=miner)
    return home


def test_there_is_a_thread_a_pair_one_a_mission_and_the_inbox_newest_first(talk: FakeHome) -> None:
    lines = conversations.overview(talk.root, speaker=PERSON).threads
    assert [(line.name, line.kind, line.messages) for line in lines] == [
        ("build", "mission", 2),
        ("inbox", "inbox", 2),
        ("alpha+person", "pair", 2),
        ("alpha+beta", "pair", 2),
    ]
    assert (lines[0].last_from, lines[0].last_body, lines[0].pinned) == ("miner", "dug", 0)


@pytest.mark.parametrize("name", ["alpha+beta", "beta+alpha", "BETA+Alpha"])
def test_a_pair_is_named_in_any_order(talk: FakeHome, name: str) -> None:
    assert bodies(talk, name) == ["to beta", "to alpha"]


def test_one_agents_name_is_the_callers_thread_with_it(talk: FakeHome) -> None:
    assert bodies(talk, "alpha") == ["to the person", "from the person"]
    beta = Speaker(registry.find(talk.root, "beta"))
    assert bodies(talk, "alpha", beta) == ["to beta", "to alpha"]


def test_a_mission_the_inbox_and_a_message_name_a_thread_too(talk: FakeHome) -> None:
    assert bodies(talk, "build") == ["dig here", "dug"]
    assert bodies(talk, "inbox") == ["to the person", "dug"]
    sent = sending.send(talk.root, ["alpha"], "more", speaker=PERSON)
    assert conversations.thread(talk.root, sent.id, speaker=PERSON).name == "alpha+person"


def test_after_a_rename_a_thread_has_its_new_name_and_answers_stay_in_it(talk: FakeHome) -> None:
    asked = sending.send(
        talk.root, ["person"], "may I?", kind="question", speaker=Speaker(registry.find(talk.root, "alpha"))
    )
    agents.rename(talk.root, "alpha", "gamma", speaker=PERSON)
    assert sending.reply(talk.root, asked.id, "yes", speaker=PERSON).thread == "gamma+person"
    expected = ["to the person", "from the person", "may I?", "yes"]
    assert bodies(talk, "gamma+person") == bodies(talk, "gamma") == expected
    assert "alpha+person" not in conversations.names(talk.root)


def test_an_unknown_thread_is_not_found_with_the_nearest(talk: FakeHome) -> None:
    with pytest.raises(NotFound) as caught:
        conversations.thread(talk.root, "biuld", speaker=PERSON)
    assert caught.value.numbers["near"] == ["build"]
    with pytest.raises(NotFound):
        conversations.thread(talk.root, "beta", speaker=PERSON)


def test_an_agent_sees_its_own_threads_and_its_missions(talk: FakeHome) -> None:
    beta, mason = (Speaker(registry.find(talk.root, name)) for name in ("beta", "mason"))
    assert [line.name for line in conversations.overview(talk.root, speaker=mason).threads] == ["build"]
    assert bodies(talk, "build", mason) == ["dig here", "dug"]
    assert found(talk, beta) == ["to beta", "to alpha", "dig here", "dug"], "it coordinates that mission"
    for name in ("alpha+person", "alpha+beta", "inbox"):
        with pytest.raises(NotFound) as caught:
            conversations.thread(talk.root, name, speaker=mason)
        assert caught.value.numbers["near"] == [], "others' threads are not told"


def test_a_missions_coordinator_writes_in_its_thread(talk: FakeHome) -> None:
    beta = Speaker(registry.find(talk.root, "beta"))
    assert sending.send(talk.root, ["miner", "mason"], "dig deeper", speaker=beta).thread == "build"
    assert sending.send(talk.root, ["alpha"], "they dig", speaker=beta).thread == "alpha+beta"


def test_a_foreign_session_sees_nothing(talk: FakeHome) -> None:
    for look in (
        conversations.overview,
        lambda root, speaker: conversations.search(root, Query(), speaker=speaker),
    ):
        with pytest.raises(Refused, match="foreign"):
            look(talk.root, speaker=FOREIGN)


def test_the_thread_called_inbox_can_only_be_the_persons(talk: FakeHome) -> None:
    with pytest.raises(UsageError, match="inbox"):
        sending.send(talk.root, ["alpha"], "x", thread="Inbox", speaker=PERSON)


def test_a_search_is_by_text_sender_and_kind_together(talk: FakeHome) -> None:
    assert found(talk, text="PERSON") == ["to the person", "from the person"]
    assert found(talk, text="dates.py") == ["to beta"]
    assert found(talk, sender="alpha") == ["to beta", "to the person"]
    assert found(talk, sender="person") == ["from the person"]
    assert found(talk, sender="alpha", kind="report") == ["to the person"]
    assert found(talk, sender="beta", kind="report") == []
    assert bodies(talk, "build", kind="contract") == ["dig here"]
    with pytest.raises(NotFound):
        found(talk, sender="nobody")


def test_a_search_by_state_sees_what_is_so_now(talk: FakeHome) -> None:
    sent = sending.send(talk.root, ["mason"], "never mind", speaker=PERSON)
    receipts.cancel(talk.root, sent.id, speaker=PERSON)
    assert found(talk, state="cancelled") == ["never mind"]
    beta = registry.find(talk.root, "beta")
    talk.enters(beta, talk.claim(beta))
    assert found(talk, state="read") == ["to beta"]
    assert found(talk, state="queued", sender="beta") == ["to alpha"]


def test_a_search_by_time_takes_moments_days_and_ages(talk: FakeHome) -> None:
    everything = found(talk)
    assert found(talk, since="2h") == found(talk, since="2020-01-01", until="2100-01-01") == everything
    assert found(talk, until="1 min") == found(talk, since="2100-01-01T00:00:00Z") == []


@pytest.mark.parametrize("word", ["soon", "", "5 weeks", "2026-13-01", "12", "-2h", "nan"])
def test_what_is_no_time_is_a_usage_error(home: FakeHome, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(home, since=word)
    assert caught.value.rule == "bad-time"


def test_a_moment_is_read_as_it_is_meant() -> None:
    assert searching.moment("1970-01-02", 0.0) == searching.moment("1970-01-02T00:00:00Z", 0.0) == 86400.0
    assert [searching.moment(age, 1e6) for age in ("90s", "1.5min", "2 h", "1d")] == [
        1e6 - 90, 1e6 - 90, 1e6 - 7200, 1e6 - 86400,
    ]  # fmt: skip


@pytest.mark.parametrize("query", [Query(kind="gift"), Query(state="lost")])
def test_what_no_message_can_be_is_a_usage_error(home: FakeHome, query: Query) -> None:
    with pytest.raises(UsageError, match="it is one of"):
        conversations.search(home.root, query, speaker=PERSON)


def test_only_the_newest_are_shown_and_the_rest_is_counted(talk: FakeHome) -> None:
    shown = conversations.thread(talk.root, "alpha+beta", newest=1, speaker=PERSON)
    assert ([message.body for message in shown.messages], shown.older) == (["to alpha"], 1)
    shown_too = conversations.search(talk.root, Query(state="queued"), newest=2, speaker=PERSON)
    assert ([message.body for message in shown_too.messages], shown_too.older) == (["dig here", "dug"], 4)


def test_looking_marks_nothing_as_read(talk: FakeHome) -> None:
    before = talk.tree()
    conversations.thread(talk.root, "inbox", speaker=PERSON)
    conversations.overview(talk.root, speaker=PERSON)
    assert talk.tree() == before
    assert len(inbox.waiting(talk.root, speaker=PERSON).messages) == 2


def test_in_an_empty_home_there_is_nothing_to_see_and_nothing_is_made(home: FakeHome) -> None:
    assert conversations.overview(home.root, speaker=PERSON).threads == ()
    assert found(home) == []
    assert home.tree() == {}


@pytest.fixture
def family(home: FakeHome) -> FakeHome:
    """mum has the child kid, who has sent her a question; both are outside the mission `build` of miner and mason."""
    mum = home.agent("mum", "working")
    kid = home.agent("kid", "working", parent=mum)
    home.team(home.agent("miner", "working"), home.agent("mason", "working"), name="build")
    sending.send(
        home.root, ["mum"], "a or b?", kind="question", options=["a", "b"], speaker=home.speaker(kid)
    )
    return home


def named(home: FakeHome, name: str) -> Speaker:
    return Speaker(registry.find(home.root, name))


def ask(home: FakeHome, sender: str, *to: str, body: str = "q") -> str:
    return sending.send(home.root, to, body, kind="question", speaker=named(home, sender)).id


def listed(home: FakeHome, speaker: Speaker = PERSON) -> list[tuple[str, str, int]]:
    lines = conversations.overview(home.root, speaker=speaker).threads
    return sorted((line.name, line.kind, line.messages) for line in lines)


def test_an_answer_by_somebody_else_is_in_the_thread_of_its_question(family: FakeHome) -> None:
    [asked] = conversations.thread(family.root, "kid+mum", speaker=PERSON).messages
    told = sending.reply(family.root, asked.id, "b", speaker=PERSON)
    sending.send(family.root, ["kid"], "take it", speaker=named(family, "mum"))
    again = sending.reply(family.root, told.id, "thanks", speaker=named(family, "kid"))
    assert told.thread == again.thread == "kid+mum"
    assert listed(family) == [("inbox", "inbox", 1), ("kid+mum", "pair", 4)]
    every = ["a or b?", "b", "take it", "thanks"]
    assert bodies(family, "kid+mum") == bodies(family, "mum+kid", named(family, "kid")) == every
    assert bodies(family, told.id) == bodies(family, again.id) == every
    assert bodies(family, "kid", named(family, "mum")) == ["a or b?", "take it"], "she got no other"


def test_an_answer_to_some_of_those_concerned_is_in_their_thread(family: FakeHome) -> None:
    asked = ask(family, "kid", "mum", "person")
    sending.reply(family.root, asked, "yes", speaker=named(family, "mum"))
    sending.reply(family.root, asked, "no", speaker=PERSON)
    assert bodies(family, "kid+mum+person") == ["q", "yes", "no"]
    assert ("kid+mum+person", "pair", 3) in listed(family)


def test_a_rename_splits_no_thread_in_which_somebody_else_answered(family: FakeHome) -> None:
    asked = ask(family, "kid", "mum")
    sending.reply(family.root, asked, "yes", speaker=PERSON)
    agents.rename(family.root, "mum", "mother", speaker=PERSON)
    assert sending.reply(family.root, asked, "really", speaker=PERSON).thread == "kid+mother"
    assert bodies(family, "kid+mother") == ["a or b?", "q", "yes", "really"]
    assert listed(family) == [("kid+mother", "pair", 4)]


def test_an_answer_of_somebody_else_is_found_again_without_the_index(family: FakeHome) -> None:
    sending.reply(family.root, ask(family, "kid", "mum"), "yes", speaker=PERSON)
    before = listed(family)
    shutil.rmtree(corehome.threads(family.root))
    assert listed(family) == before == [("kid+mum", "pair", 3)]


@pytest.mark.parametrize(
    ("thread", "why"),
    [
        ("kid+person", "joined by"),
        ("person+KID", "joined by"),
        ("kid + person ", "joined by"),
        ("kid\uff0bperson", "joined by"),
        ("kid+who-comes-later", "joined by"),
        ("mum+mum/a1b2", "joined by"),
        ("Kid", "by that name"),
        ("person", "by that name"),
        ("in\uff42ox", "inbox"),
        ("build", "of a mission"),
        (" BUILD", "of a mission"),
        ("msg-01JD3QK8V5T0YF6Z2M9XWB4C7R", "the id of"),
    ],
)
def test_no_thread_that_is_named_can_hide_another(family: FakeHome, thread: str, why: str) -> None:
    before = family.tree()
    with pytest.raises(UsageError, match=why) as caught:
        sending.send(family.root, ["person"], "mine", thread=thread, speaker=named(family, "mum"))
    assert caught.value.rule == "bad-thread"
    assert family.tree() == before


@pytest.mark.parametrize("thread", ["kid+mum", "mum+Kid", " mum + kid"])
def test_the_thread_of_those_concerned_may_be_named(family: FakeHome, thread: str) -> None:
    sent = sending.send(family.root, ["kid"], "go on", thread=thread, speaker=named(family, "mum"))
    assert sent.thread == "kid+mum"
    assert listed(family) == [("kid+mum", "pair", 2)]


@pytest.mark.parametrize("thread", ["plans", "c++", "a + ", "docs & tests"])
def test_other_names_are_free(family: FakeHome, thread: str) -> None:
    sent = sending.send(family.root, ["kid"], "go on", thread=thread, speaker=named(family, "mum"))
    assert sent.thread == thread.strip()
    assert bodies(family, thread.strip(), named(family, "kid")) == ["go on"]


def test_a_thread_named_before_an_agent_came_does_not_hide_the_agents(family: FakeHome) -> None:
    sending.send(family.root, ["person"], "first", thread="late", speaker=named(family, "kid"))
    sending.send(family.root, ["person"], "here", speaker=family.speaker(family.agent("late", "working")))
    assert bodies(family, "late") == ["here"]


def test_only_those_with_a_part_in_a_mission_write_in_its_thread(family: FakeHome) -> None:
    family.team(name="led", coordinator=registry.find(family.root, "kid"))
    for name, thread in (("kid", "led"), ("miner", "build")):
        sent = sending.send(family.root, ["person"], "x", thread=thread, speaker=named(family, name))
        assert sent.thread == thread
    assert sending.send(family.root, ["kid"], "look", thread="build", speaker=PERSON).thread == "build"
    assert bodies(family, "build", named(family, "mason")) == ["x", "look"]


def test_nobody_replies_to_or_looks_at_what_it_cannot_see(family: FakeHome) -> None:
    hidden = [ask(family, "miner", "mason"), ask(family, "miner", "person"), ask(family, "mum", "person")]
    kid = named(family, "kid")
    before = family.tree()
    for asked in hidden:
        for call in (
            lambda asked=asked: sending.send(family.root, ["person"], "x", reply_to=asked, speaker=kid),
            lambda asked=asked: sending.send(
                family.root, ["mum"], "x", reply_to=asked, thread="plans", speaker=kid
            ),
            lambda asked=asked: receipts.show(family.root, asked, speaker=kid),
        ):
            with pytest.raises(Refused, match="neither sent nor got") as caught:
                call()
            assert caught.value.rule == "not-allowed"
    assert family.tree() == before
    with pytest.raises(Refused, match="foreign"):
        receipts.show(family.root, hidden[0], speaker=FOREIGN)


def test_who_sees_a_message_replies_to_it_and_looks_at_it(family: FakeHome) -> None:
    asked = ask(family, "miner", "person")
    answer = sending.reply(family.root, asked, "dig", speaker=named(family, "mason"))
    assert answer.thread == "build"
    assert receipts.show(family.root, asked, speaker=named(family, "mason")).answers == (answer.id,)
    own = sending.send(family.root, ["person"], "and c?", reply_to=asked, speaker=named(family, "miner"))
    assert bodies(family, "build", named(family, "mason")) == ["q", "dig", "and c?"]
    assert sending.reply(family.root, own.id, "c", speaker=PERSON).thread == "build"


def test_a_mission_does_not_show_what_was_said_under_its_name_before(family: FakeHome) -> None:
    sending.send(family.root, ["person"], "secret", thread="plans", speaker=named(family, "miner"))
    family.team(name="plans", coordinator=registry.find(family.root, "kid"))
    sending.send(family.root, ["person"], "begun", thread="plans", speaker=named(family, "kid"))
    assert bodies(family, "plans", named(family, "kid")) == ["begun"]
    assert bodies(family, "plans") == ["secret", "begun"]
