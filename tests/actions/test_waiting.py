"""Waiting: what ends it, what it answers when nothing does, and how long it may take."""

from __future__ import annotations

import threading

import pytest

from tests.actions.fakes import FOREIGN, PERSON, FakeHome
from turnpost.actions import courier, holding, receipts, sending, waiting
from turnpost.actions.results import Waited
from turnpost.core import clock, store
from turnpost.core.errors import NotFound, Refused, UsageError


def test_a_wait_ends_when_the_message_is_read(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    blocks = home.claim(alpha)
    reader = threading.Timer(0.2, home.enters, (alpha, blocks))
    reader.start()
    seen = waiting.wait(home.root, sent.id, timeout=10, speaker=PERSON)
    reader.join()
    assert (seen.done, seen.for_, seen.state) == (True, "read", "read")
    assert seen.message is not None
    assert seen.message.receipts["alpha"].state == "read"
    assert seen.waited < 10


def test_a_wait_that_ends_in_vain_answers_how_things_stand(home: FakeHome) -> None:
    home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    looks: list[Waited] = []
    seen = waiting.wait(home.root, sent.id, timeout=0.2, on_look=looks.append, speaker=PERSON)
    assert (seen.done, seen.state, seen.over) == (False, "queued", None)
    assert seen.waited >= 0.2
    assert len(looks) >= 2


def test_a_message_that_will_never_be_read_is_not_waited_for(home: FakeHome) -> None:
    home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    receipts.cancel(home.root, sent.id, speaker=PERSON)
    seen = waiting.wait(home.root, sent.id, timeout=30, speaker=PERSON)
    assert (seen.done, seen.state) == (False, "cancelled")
    assert "cancelled" in str(seen.over)
    assert seen.waited < 5


def test_a_wait_for_a_reply_ends_with_the_reply(home: FakeHome) -> None:
    alpha = home.agent("alpha")
    sent = sending.send(home.root, ["alpha"], "well?", kind="question", speaker=PERSON)
    assert waiting.wait(home.root, sent.id, "reply", timeout=0, speaker=PERSON).state == "unanswered"
    answer = threading.Timer(
        0.2, lambda: sending.reply(home.root, sent.id, "well.", speaker=home.speaker(alpha))
    )
    answer.start()
    seen = waiting.wait(home.root, sent.id, "reply", timeout=10, speaker=PERSON)
    answer.join()
    assert seen.done
    assert seen.message is not None
    assert (seen.message.body, seen.message.sender) == ("well.", "alpha")


def test_an_agent_is_idle_when_no_turn_runs_and_nothing_is_on_its_way(home: FakeHome) -> None:
    alpha = home.agent("alpha", "idle")
    assert waiting.wait(home.root, "alpha", timeout=0, speaker=PERSON).done
    sending.send(home.root, ["alpha"], "work", speaker=PERSON)
    assert not waiting.wait(home.root, "alpha", timeout=0, speaker=PERSON).done
    blocks = home.claim(alpha)
    assert not waiting.wait(home.root, "alpha", timeout=0, speaker=PERSON).done
    home.enters(alpha, blocks)
    assert waiting.wait(home.root, "alpha", timeout=0, speaker=PERSON).done


@pytest.mark.parametrize(("doing", "done"), [("working", False), ("blocked", False), ("stopped", True)])
def test_an_agent_in_a_turn_is_not_idle_and_a_stopped_one_has_nothing_to_do(
    home: FakeHome, doing: str, done: bool
) -> None:
    home.agent("alpha", doing)  # type: ignore[arg-type]
    assert waiting.wait(home.root, "alpha", "idle", timeout=0, speaker=PERSON).done is done


def test_what_waits_behind_a_hold_keeps_nobody_from_being_idle(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.team(alpha, beta)
    holding.hold(home.root, "alpha", speaker=PERSON)
    sending.send(home.root, ["alpha"], "later", speaker=home.speaker(beta))
    assert waiting.wait(home.root, "alpha", timeout=0, speaker=PERSON).done
    assert home.box(alpha).waiting()


def test_a_wait_for_a_message_sees_what_is_there_and_what_comes(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    assert not waiting.wait(home.root, "alpha", "message", timeout=0, speaker=PERSON).done
    sending.send(home.root, ["person"], "from beta", speaker=home.speaker(beta))
    assert not waiting.wait(home.root, "alpha", "message", timeout=0, speaker=PERSON).done
    assert waiting.wait(home.root, "person", "message", timeout=0, speaker=PERSON).done
    sender = threading.Timer(
        0.2, lambda: sending.send(home.root, ["person"], "from alpha", speaker=home.speaker(alpha))
    )
    sender.start()
    seen = waiting.wait(home.root, "alpha", "message", timeout=10, speaker=PERSON)
    sender.join()
    assert seen.message is not None
    assert seen.message.body == "from alpha"


def test_a_message_claimed_while_an_agent_waits_for_it_ends_the_wait(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha", "working"), home.agent("beta")
    home.team(alpha, beta)

    def send_and_take() -> None:
        sending.send(home.root, ["alpha"], "quick", speaker=home.speaker(beta))
        home.claim(alpha)

    sender = threading.Timer(0.2, send_and_take)
    sender.start()
    seen = waiting.wait(home.root, "beta", "message", timeout=10, speaker=home.speaker(alpha))
    sender.join()
    assert seen.done


@pytest.mark.parametrize("timeout", [-1, 30.01, float("nan"), float("inf")])
def test_a_wait_is_at_most_thirty_seconds(home: FakeHome, timeout: float) -> None:
    home.agent("alpha")
    with pytest.raises(UsageError):
        waiting.wait(home.root, "alpha", timeout=timeout, speaker=PERSON)


@pytest.mark.parametrize(
    ("target", "goal"),
    [("alpha", "read"), ("alpha", "reply"), ("msg-" + "0" * 26, "idle"), ("alpha", "rain")],
)
def test_goals_that_do_not_fit_the_target_are_usage_errors(home: FakeHome, target: str, goal: str) -> None:
    home.agent("alpha")
    with pytest.raises(UsageError):
        waiting.wait(home.root, target, goal, speaker=PERSON)


def test_unknown_targets_are_not_found_and_a_foreign_session_has_no_mailbox(home: FakeHome) -> None:
    home.agent("alpha")
    with pytest.raises(NotFound):
        waiting.wait(home.root, "nobody", speaker=PERSON)
    with pytest.raises(NotFound):
        waiting.wait(home.root, "msg-" + "0" * 26, speaker=PERSON)
    with pytest.raises(Refused, match="foreign"):
        waiting.wait(home.root, "alpha", "message", speaker=FOREIGN)


def test_a_wait_sees_a_turn_end(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    state = store.load_state(home.root, alpha["key"])
    assert state is not None
    state["doing"], state["since"] = "idle", clock.now()
    end = threading.Timer(0.2, store.save_state, (home.root, alpha["key"], state))
    end.start()
    assert waiting.wait(home.root, "alpha", timeout=10, speaker=PERSON).done
    end.join()


def test_a_wait_sees_to_it_that_a_coordinator_runs_and_a_look_does_not(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("alpha", "stopped")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    called: list[str] = []
    monkeypatch.setattr(courier, "ensure", called.append)
    waiting.wait(home.root, sent.id, timeout=0, speaker=PERSON)
    assert called == []
    waiting.wait(home.root, sent.id, timeout=0.2, speaker=PERSON)
    assert called == [home.root]
