"""Which mail of an agent somebody must act for, when it has entered a conversation that does not go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import clock, files, rules, store
from turnpost.core.mailbox import Mailbox, make_claim


@pytest.mark.parametrize(
    ("doing", "alive", "expected"),
    [
        ("idle", True, True),
        ("working", True, True),  # for so long that Claude Code must be asked whether it does
        ("blocked", True, True),
        ("stopped", False, True),
        ("working", False, True),
        ("blocked", False, True),
    ],
)
def test_a_message_that_entered_but_was_not_answered_presses(
    tmp_path: Path, doing: str, alive: bool, expected: bool
) -> None:
    root = spool.make(tmp_path)
    one = spool.agent(root, "alpha")
    box = Mailbox(root, one["key"])
    spool.send(root, "hello", one)
    with box.lock():
        claim = make_claim(os.getpid(), "")
        assert box.claim("rewake", 9000, claim, recipient="alpha", session_id="session-1")
        (name,) = box.in_flight()
        receipt = store.load(f"{box.claimed}/{name}")
        assert receipt is not None
        then = clock.now() - rules.REMIND - 1
        receipt.update({"state": "delivered", "claimed_at": then, "delivered_at": then})
        files.write(f"{box.claimed}/{name}", store.pack(receipt))
        state = spool.state(root, one["key"], "session-1", "", doing=doing, since=then)
        if not alive:
            state["token"] = "another process"
        assert box.pressing(state) == expected
        for _ in range(rules.REMINDERS):
            box.remind([name])
        assert not box.pressing(state)


def test_giving_up_ends_also_what_entered_a_conversation_that_is_gone(tmp_path: Path) -> None:
    root = spool.make(tmp_path)
    one = spool.agent(root, "alpha")
    box = Mailbox(root, one["key"])
    flying = spool.send(root, "entered", one)
    with box.lock():
        claim = make_claim(os.getpid(), "")
        assert box.claim("rewake", 9000, claim, recipient="alpha", session_id="session-1")
    waiting = spool.send(root, "waits", one)
    with box.lock():
        assert not box.end(flying, "cancelled")
        assert box.end(flying, "undeliverable", "gone", on_its_way=True)
        assert box.end(waiting, "undeliverable", "gone", on_its_way=True)
    assert (box.waiting(), box.in_flight()) == ([], [])
    assert [spool.receipt(root, one, sent)["state"] for sent in (flying, waiting)] == ["undeliverable"] * 2
