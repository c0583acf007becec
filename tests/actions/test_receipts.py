"""Receipts without a coordinator, and taking messages back."""

from __future__ import annotations

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import receipts, sending
from turnpost.core import files, mailbox, store
from turnpost.core import home as paths
from turnpost.core.errors import NotFound, Refused


def test_show_reads_the_proof_from_the_transcript(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    assert receipts.show(home.root, sent.id).receipts["alpha"].state == "queued"
    blocks = home.claim(alpha, "stop-block")
    claimed = receipts.show(home.root, sent.id).receipts["alpha"]
    assert (claimed.state, claimed.boundary, claimed.attempts) == ("claimed", "stop-block", 1)
    home.enters(alpha, blocks, answered=False)
    assert receipts.show(home.root, sent.id).receipts["alpha"].state == "delivered"
    home.enters(alpha, [])
    read = receipts.show(home.root, sent.id).receipts["alpha"]
    assert read.state == "read"
    assert None not in (read.queued_at, read.claimed_at, read.delivered_at, read.read_at)
    assert str(read.read_at).endswith("Z")
    assert home.box(alpha).in_flight() == []


def test_a_claim_of_a_killed_session_waits_again(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    home.claim(alpha)
    home.kill(alpha)
    assert receipts.show(home.root, sent.id).receipts["alpha"].state == "queued"


def test_each_recipient_has_its_own_receipt(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    home.agent("beta", "working")
    sent = sending.send(home.root, ["alpha", "beta"], "hello", speaker=PERSON)
    home.enters(alpha, home.claim(alpha))
    shown = receipts.show(home.root, sent.id)
    assert {name: receipt.state for name, receipt in shown.receipts.items()} == {
        "alpha": "read",
        "beta": "queued",
    }


@pytest.mark.parametrize(
    "wrong", ["", "msg-", "alpha", "../../etc/passwd", "msg-" + "0" * 26, "msg-" + "U" * 26]
)
def test_what_is_no_message_is_not_found(home: FakeHome, wrong: str) -> None:
    with pytest.raises(NotFound):
        receipts.show(home.root, wrong)


def test_cancel_takes_back_what_waits_and_twice_is_once(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    assert receipts.cancel(home.root, sent.id, speaker=PERSON).cancelled == ("alpha",)
    assert receipts.cancel(home.root, sent.id, speaker=PERSON).cancelled == ("alpha",)
    assert home.box(alpha).waiting() == []
    receipt = receipts.show(home.root, sent.id).receipts["alpha"]
    assert receipt.state == "cancelled"
    assert receipt.queued_at is not None
    assert receipt.ended_at is not None
    assert receipt.ended_at >= receipt.queued_at


def test_cancel_says_for_whom_it_came_too_late(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    home.agent("beta", "working")
    sent = sending.send(home.root, ["alpha", "beta"], "hello", speaker=PERSON)
    home.claim(alpha)
    done = receipts.cancel(home.root, sent.id, speaker=PERSON)
    assert (done.cancelled, done.too_late) == (("beta",), {"alpha": "claimed"})


def test_a_message_that_every_recipient_has_claimed_cannot_be_taken_back(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    home.claim(alpha)
    with pytest.raises(Refused) as caught:
        receipts.cancel(home.root, sent.id, speaker=PERSON)
    assert (caught.value.rule, caught.value.numbers) == ("too-late", {"states": {"alpha": "claimed"}})


def test_only_the_sender_and_the_person_may_cancel(home: FakeHome) -> None:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    home.team(alpha, beta)
    sent = sending.send(home.root, ["beta"], "hello", speaker=home.speaker(alpha))
    before = home.tree()
    with pytest.raises(Refused, match="not-allowed"):
        receipts.cancel(home.root, sent.id, speaker=home.speaker(beta))
    assert home.tree() == before
    assert receipts.cancel(home.root, sent.id, speaker=PERSON).cancelled == ("beta",)


def test_a_send_killed_half_way_is_finished_before_it_is_cancelled(home: FakeHome) -> None:
    alpha = home.agent("alpha", "working")
    sent = sending.send(home.root, ["alpha"], "hello", speaker=PERSON)
    message = mailbox.load_message(home.root, sent.id)
    entry = home.box(alpha).waiting()[0]
    files.unlink(f"{home.box(alpha).queue}/{entry}")
    files.write(f"{paths.outbox(home.root)}/{sent.id}.json", store.pack(message))
    assert receipts.show(home.root, sent.id).receipts["alpha"].state == "queued"
    assert receipts.cancel(home.root, sent.id, speaker=PERSON).cancelled == ("alpha",)
    assert home.box(alpha).waiting() == []
