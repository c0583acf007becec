"""Missions: who may lead and join one, what its end means, and what of it reaches whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost import config
from turnpost.actions import agents, holding, inbox, missions, receipts, sending
from turnpost.core import mailbox, registry, rules, store
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.service.loop import Coordinator
from turnpost.service.resume import Resumer

if TYPE_CHECKING:
    from turnpost.core.rules import Step

Call = Callable[[], object]


def test_the_person_starts_a_mission_with_its_agents_and_they_write_to_each_other(home: FakeHome) -> None:
    home.agent("alpha", "working")
    home.agent("beta")
    made = missions.start(
        home.root, "release", "out by\nMonday", coordinator="beta", members=["alpha"], speaker=PERSON
    )
    assert (made.name, made.state, made.coordinator, made.ended) == ("release", "running", "beta", None)
    assert [(seat.name, seat.state) for seat in made.members] == [("alpha", "working")]
    assert made.goal == "out by\nMonday"
    alpha, beta = registry.find(home.root, "alpha"), registry.find(home.root, "beta")
    assert sending.send(home.root, ["beta"], "x", speaker=home.speaker(alpha)).id
    assert sending.send(home.root, ["alpha"], "x", speaker=home.speaker(beta)).id
    assert alpha["mission"] == "release"
    assert missions.add(home.root, "release", ["beta"], speaker=PERSON).members[1].name == "beta"


def test_an_agent_coordinates_what_it_starts_and_takes_in_itself_and_its_children(home: FakeHome) -> None:
    mother = home.agent("mother")
    home.agent("child", parent=mother)
    home.agent("other")
    before = home.tree()
    for members, coordinator in ((["other"], None), ([], "other")):
        with pytest.raises(Refused, match="not-allowed"):
            missions.start(
                home.root, "trip", members=members, coordinator=coordinator, speaker=home.speaker(mother)
            )
    assert home.tree() == before
    made = missions.start(home.root, "trip", members=["child"], speaker=home.speaker(mother))
    assert (made.coordinator, [seat.name for seat in made.members]) == ("mother", ["child"])
    assert (
        missions.add(home.root, "trip", ["mother"], speaker=home.speaker(mother)).members[1].name == "mother"
    )
    assert missions.finish(home.root, "trip", speaker=home.speaker(mother)).state == "finished"


def test_names_are_used_once_and_an_agent_is_in_one_running_mission_at_a_time(home: FakeHome) -> None:
    home.agent("alpha")
    home.agent("beta")
    missions.start(home.root, "one", members=["alpha"], speaker=PERSON)
    missions.start(home.root, "two", speaker=PERSON)
    assert missions.add(home.root, "ONE", ["alpha"], speaker=PERSON).name == "one"
    before = home.tree()
    calls: list[Call] = [
        lambda: missions.start(home.root, "One", speaker=PERSON),
        lambda: missions.add(home.root, "two", ["beta", "alpha"], speaker=PERSON),
    ]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.rule == "taken"
    for wrong in ("a/b", "person", ""):
        with pytest.raises(UsageError):
            missions.start(home.root, wrong, speaker=PERSON)
    for unknown in ("thre", "../names/alpha"):
        with pytest.raises(NotFound):
            missions.show(home.root, unknown)
    with pytest.raises(NotFound, match="nearest: two"):
        missions.add(home.root, "tow", ["alpha"], speaker=PERSON)
    with pytest.raises(NotFound):
        missions.add(home.root, "two", ["nobody"], speaker=PERSON)
    with pytest.raises(UsageError):
        missions.start(home.root, "three", "x" * 2001, speaker=PERSON)
    assert {k: v for k, v in home.tree().items() if "lock" not in k} == {
        k: v for k, v in before.items() if "lock" not in k
    }
    assert [mission.name for mission in missions.everyone(home.root).missions] == ["one", "two"]


def test_what_is_over_stays_over_and_takes_nobody_in(home: FakeHome) -> None:
    home.agent("alpha")
    home.agent("beta")
    missions.start(home.root, "one", members=["alpha"], speaker=PERSON)
    ended = missions.finish(home.root, "one", "all is done", speaker=PERSON)
    assert (ended.state, ended.reason, ended.told) == ("finished", "all is done", ())
    assert ended.ended is not None
    missions.start(home.root, "two", speaker=PERSON)
    before = home.tree()
    calls: list[Call] = [
        lambda: missions.finish(home.root, "one", speaker=PERSON),
        lambda: missions.abort(home.root, "one", speaker=PERSON),
        lambda: missions.add(home.root, "one", ["beta"], speaker=PERSON),
        lambda: missions.add(home.root, "two", ["alpha"], speaker=PERSON),
    ]
    for call in calls:
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.rule == "mission-over"
    assert {k for k in home.tree() if "lock" not in k} == {k for k in before if "lock" not in k}
    [alpha, _] = agents.agents(home.root).agents
    assert alpha.mission_over


def test_the_notice_of_an_abort_goes_only_to_the_live_agents(home: FakeHome) -> None:
    busy, idle = home.agent("busy", "working"), home.agent("idle")
    stopped, killed = home.agent("stopped", "stopped"), home.agent("killed", "working")
    home.kill(killed)
    outside = home.agent("outside")
    missions.start(home.root, "trip", members=["busy", "idle", "stopped", "killed"], speaker=PERSON)
    ended = missions.abort(home.root, "trip", "the car broke", speaker=PERSON)
    assert ended.told == ("busy", "idle")
    for agent in (stopped, killed, outside):
        assert home.box(agent).waiting() == []
    for agent in (busy, idle):
        [entry] = home.box(agent).waiting()
        message = mailbox.load_message(home.root, mailbox.entry_id(entry))
        assert message is not None
        assert mailbox.is_urgent(entry)
        assert (message["sender"]["kind"], message["kind"]) == ("system", "alert")
        assert "aborted by the person: the car broke" in message["body"]


def test_an_abort_by_its_coordinator_does_not_tell_the_coordinator(home: FakeHome) -> None:
    mother = home.agent("mother", "working")
    home.agent("child", parent=mother)
    missions.start(home.root, "trip", members=["mother", "child"], speaker=home.speaker(mother))
    assert missions.abort(home.root, "trip", speaker=home.speaker(mother)).told == ("child",)


def test_a_hold_and_a_missions_end_stand_side_by_side(home: FakeHome) -> None:
    alpha = home.agent("alpha", "stopped")
    missions.start(home.root, "trip", members=["alpha"], speaker=PERSON)
    holding.hold(home.root, "alpha", speaker=PERSON)
    missions.finish(home.root, "trip", speaker=PERSON)
    assert not holding.release(home.root, "alpha", speaker=PERSON).held
    with pytest.raises(Refused) as caught:
        sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    assert caught.value.rule == "mission-over"
    assert not home.box(alpha).held()


def test_nobody_of_a_mission_that_is_over_is_resumed(home: FakeHome) -> None:
    alpha = home.agent("alpha", "stopped")
    missions.start(home.root, "trip", members=["alpha"], speaker=PERSON)
    sending.send(home.root, ["alpha"], "x", speaker=PERSON)
    missions.finish(home.root, "trip", speaker=PERSON)
    before = store.load_state(home.root, alpha["key"])
    assert not Resumer(home.root, config.load(home.root)).resume(alpha["key"])
    assert store.load_state(home.root, alpha["key"]) == before


@pytest.mark.parametrize("held", [False, True])
def test_mail_that_waits_behind_a_missions_end_is_given_up_and_its_sender_told(
    home: FakeHome, held: bool
) -> None:
    home.agent("gone", "stopped")
    live = home.agent("live", "working")
    missions.start(home.root, "trip", members=["gone", "live"], speaker=PERSON)
    sent = sending.send(home.root, ["gone", "live"], "x", speaker=PERSON)
    if held:
        holding.hold(home.root, "gone", speaker=PERSON)
    missions.finish(home.root, "trip", speaker=PERSON)
    Coordinator(home.root).round()
    shown = receipts.show(home.root, sent.id).receipts
    assert (shown["gone"].state, shown["gone"].reason) == ("undeliverable", "the mission trip is over")
    assert shown["live"].state == "queued"
    assert len(home.box(live).waiting()) == 1
    [alert] = inbox.waiting(home.root, speaker=PERSON).messages
    assert "the mission trip is over" in alert.body


def test_only_what_would_start_a_session_is_taken_from_the_steps() -> None:
    steps: tuple[Step, ...] = ("none", "ring", "check", "resume", "restart", "retire", "give-up")
    assert [rules.without_resume(step) for step in steps] == [
        "none", "ring", "check", "give-up", "none", "retire", "give-up",
    ]  # fmt: skip


def test_a_parent_holds_its_child_and_releases_it_but_never_the_persons_hold(home: FakeHome) -> None:
    mother = home.agent("mother")
    child = home.agent("child", parent=mother)
    voice = home.speaker(mother)
    assert holding.hold(home.root, "child", speaker=voice).held
    sending.send(home.root, ["child"], "for later", speaker=voice)
    assert home.box(child).held()
    assert not holding.release(home.root, "child", speaker=voice).held
    holding.hold(home.root, "child", speaker=voice)
    holding.hold(home.root, "child", speaker=PERSON)
    with pytest.raises(Refused, match="only the person lets it go"):
        holding.release(home.root, "child", speaker=voice)
    assert sending.send(home.root, ["child"], "go on", speaker=PERSON).recipients[0].boundary != "held"
    assert not home.box(child).held()


@pytest.mark.parametrize(
    ("kind", "wake", "boundary", "quiet"),
    [
        ("note", False, "prompt", True),
        ("report", False, "prompt", True),
        ("answer", False, "prompt", True),
        ("note", True, "resume", False),
        ("question", False, "resume", False),
        ("contract", False, "resume", False),
        ("alert", False, "resume", False),
    ],
)
def test_between_agents_what_asks_nothing_resumes_nobody_unless_asked_to(
    home: FakeHome, kind: str, wake: bool, boundary: str, quiet: bool
) -> None:
    mother = home.agent("mother")
    child = home.agent("child", "stopped", parent=mother)
    sent = sending.send(home.root, ["child"], "x", kind=kind, wake=wake, speaker=home.speaker(mother))
    assert (sent.recipients[0].boundary, sent.quiet) == (boundary, quiet)
    state = store.load_state(home.root, child["key"])
    assert state is not None
    assert home.box(child).pressing(state) is not quiet
    assert sending.send(home.root, ["child"], "x", kind=kind, speaker=PERSON).quiet is False
    assert home.box(child).pressing(state)
