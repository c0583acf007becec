"""Sending: all recipients or none, refusals that leave no trace, and sends that were cut off."""

from __future__ import annotations

import errno
import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.core import spool
from tests.core.test_files import noted
from turnpost.core import clock, files, home, mailbox, outbox, rules, store
from turnpost.core.errors import LockBusy, Refused
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent


def test_a_send_reaches_all_and_rings_for_each(root: str, pair: tuple[Agent, Agent]) -> None:
    sent = spool.send(root, "hello", *pair)
    for one in pair:
        receipt = spool.receipt(root, one, sent)
        assert (receipt["state"], receipt["attempts"]) == ("queued", 0)
        assert files.exists(f"{home.pending(root)}/{one['key']}")
    assert files.names(home.outbox(root)) == []
    stored = mailbox.load_message(root, sent)
    assert stored is not None
    assert stored["body"] == "hello"


def test_one_full_mailbox_refuses_all_and_writes_nothing(root: str, pair: tuple[Agent, Agent]) -> None:
    one, two = pair
    for number in range(3):
        outbox.send(root, spool.message(f"{number}", one), [one], limit=3)
    before = spool.tree(root)
    with pytest.raises(Refused) as refused:
        outbox.send(root, spool.message("x", one, two), [one, two], limit=3)
    assert refused.value.rule == "mailbox-full"
    assert refused.value.numbers == {"waiting": 3, "limit": 3, "recipient": "alpha"}
    assert spool.tree(root) == before


def test_a_busy_recipient_is_a_time_out_and_nothing_is_written(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spool.tree(root)
    real = files.Lock
    with mailbox.Mailbox(root, pair[1]["key"]).lock():
        monkeypatch.setattr(files, "Lock", lambda path, timeout: real(path, 0.05))
        with pytest.raises(LockBusy):
            spool.send(root, "x", *pair)
    assert spool.tree(root) == before


def test_a_second_identical_body_is_counted(root: str, pair: tuple[Agent, Agent]) -> None:
    one, two = pair
    counts = [outbox.send(root, spool.message("same", one), [one])[one["key"]][1] for _ in range(3)]
    assert counts == [1, 2, 3]
    assert outbox.send(root, spool.message("other", one), [one]) == {one["key"]: (4, 1)}
    assert outbox.send(root, spool.message("same", two), [two]) == {two["key"]: (1, 1)}


def test_a_damaged_memory_of_bodies_costs_no_send(root: str, pair: tuple[Agent, Agent]) -> None:
    one, _ = pair
    for damage in (b"{", b'{"digests": 5}', b"[]"):
        Path(home.agent(root, one["key"]) + "/recent").write_bytes(damage)
        spool.send(root, "x", one)
    assert len(spool.bodies(root, one)) == 3


def test_a_send_that_was_cut_off_is_finished_once_it_is_old_enough(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    message = spool.message("late", *pair)
    files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
    assert outbox.recover(root) == []
    assert outbox.recover(root, older_than=0.0) == [message["id"]]
    assert outbox.recover(root, older_than=0.0) == []
    assert spool.bodies(root, pair[0]) == spool.bodies(root, pair[1]) == ["late"]


def test_a_recovery_does_not_bring_back_what_was_taken_back(root: str, pair: tuple[Agent, Agent]) -> None:
    one, two = pair
    sent = spool.send(root, "hello", one, two)
    message = mailbox.load_message(root, sent)
    assert message is not None
    box = mailbox.Mailbox(root, one["key"])
    with box.lock():
        assert box.end(sent, "cancelled")
    files.write(f"{home.outbox(root)}/{sent}.json", store.pack(message))
    outbox.recover(root, older_than=0.0)
    assert spool.receipt(root, one, sent)["state"] == "cancelled"
    assert spool.bodies(root, one) == []
    assert spool.bodies(root, two) == ["hello"]


def test_a_damaged_record_in_the_outbox_stops_no_other(root: str, pair: tuple[Agent, Agent]) -> None:
    message = spool.message("late", *pair)
    Path(f"{home.outbox(root)}/junk.json").write_bytes(b"{")
    Path(f"{home.outbox(root)}/msg-00000000000000000000000000.json").write_bytes(b"{")
    files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
    assert outbox.recover(root, older_than=0.0) == [message["id"]]


def test_a_recipient_that_is_gone_stops_no_other_recovery(root: str, pair: tuple[Agent, Agent]) -> None:
    gone = spool.message("to nobody", {**pair[0], "key": "ag-00000000000000000000000000"})
    late = spool.message("late", *pair)
    for message in (gone, late):
        files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
    assert late["id"] in outbox.recover(root, older_than=0.0)
    assert spool.bodies(root, pair[1]) == ["late"]


def test_a_stray_file_in_a_queue_stops_nothing(root: str, pair: tuple[Agent, Agent]) -> None:
    one, _ = pair
    for folder in ("queue", "claimed"):
        for name in ("notes.txt", "0000000001-junk", "x"):
            Path(f"{home.agent(root, one['key'])}/{folder}/{name}").write_bytes(b"?")
    sent = spool.send(root, "hello", one)
    box = mailbox.Mailbox(root, one["key"])
    state = spool.state(root, one["key"], "11111111", "")
    with box.lock():
        box.settle(state)
        blocks = box.claim(
            "prompt", rules.CONTEXT_UNITS, mailbox.make_claim(0, ""), recipient="alpha", session_id="11111111"
        )
    assert [sent in block for block in blocks] == [True]


def test_a_message_of_many_failed_handovers_is_given_up_and_stops_no_other(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    one, _ = pair
    first, second = spool.send(root, "first", one), spool.send(root, "second", one)
    box = mailbox.Mailbox(root, one["key"])
    entry = f"{box.queue}/{box.waiting()[0]}"
    files.write(entry, store.pack({**spool.receipt(root, one, first), "attempts": rules.DELIVERIES}))
    assert box.exhausted() == [first]
    blocks = box.claim(
        "prompt", rules.CONTEXT_UNITS, mailbox.make_claim(0, ""), recipient="alpha", session_id="11111111"
    )
    assert [second in block for block in blocks] == [True]


def test_a_claim_is_exclusive_in_order_and_cuts_nothing(root: str, pair: tuple[Agent, Agent]) -> None:
    one, _ = pair
    sent = [spool.send(root, f"{number} " + "x" * 3_000, one) for number in range(4)]
    box = mailbox.Mailbox(root, one["key"])
    claim = mailbox.make_claim(0, "")
    blocks = box.claim("prompt", rules.CONTEXT_UNITS, claim, recipient="alpha", session_id="11111111")
    assert [block.partition('about="')[2][:30] for block in blocks] == sent[:2]
    assert all(block.count("x" * 3_000) == 1 for block in blocks)
    # What follows waits until the first ones are proven.
    assert box.claim("prompt", rules.CONTEXT_UNITS, claim, recipient="alpha", session_id="11111111") == []
    assert [spool.receipt(root, one, message)["state"] for message in sent] == ["claimed"] * 2 + [
        "queued"
    ] * 2


def test_what_is_on_its_way_cannot_be_taken_back(root: str, pair: tuple[Agent, Agent]) -> None:
    one, _ = pair
    sent = spool.send(root, "hello", one)
    box = mailbox.Mailbox(root, one["key"])
    box.claim("prompt", 9_000, mailbox.make_claim(0, ""), recipient="alpha", session_id="11111111")
    assert not box.end(sent, "cancelled")
    assert clock.now() - (spool.receipt(root, one, sent)["claimed_at"] or 0) < 60


def test_a_send_that_fails_at_any_step_leaves_nothing_to_be_delivered_later(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0
    for step in range(1, 100):
        left = step
        with monkeypatch.context() as patch:

            def fail(kind: str, patch: pytest.MonkeyPatch = patch) -> None:
                real = getattr(files, kind)

                def once(*args: object, **named: object) -> object:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        raise OSError(28, "No space left on device")
                    return real(*args, **named)

                patch.setattr(files, kind, once)

            for kind in ("write", "move", "mkdir", "touch", "sync_folder"):
                fail(kind)
            try:
                spool.send(root, "x", *pair)
            except OSError:
                steps += 1
            else:
                break
        assert files.names(home.outbox(root)) == [], f"step {step}"
        assert [mailbox.Mailbox(root, one["key"]).waiting() for one in pair] == [[], []], f"step {step}"
        assert outbox.recover(root, older_than=-1.0) == []
    assert steps >= 6
    assert [len(mailbox.Mailbox(root, one["key"]).waiting()) for one in pair] == [1, 1]


def test_a_send_waits_for_the_disk_once_however_many_get_it(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(files, "_NAMES_GO_ALONG", True)
    spool.send(root, "to both", *pair)
    assert len(synced) == 1
    synced.clear()
    monkeypatch.setattr(files, "_NAMES_GO_ALONG", False)
    spool.send(root, "to both, where a file's names do not go along with it", *pair)
    assert len(synced) == 1 + 3  # the file, two queues, its own folder


def test_a_send_whose_fsync_fails_has_sent_nothing(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.send(root, "before", *pair)
    before = spool.tree(root)

    def broken(_fd: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="broken"):
        spool.send(root, "not sent", *pair)
    monkeypatch.undo()
    assert spool.tree(root) == before
    assert [spool.bodies(root, one) for one in pair] == [["before"], ["before"]]


def test_a_damaged_record_in_the_outbox_leads_to_no_other_folder(
    root: str, pair: tuple[Agent, Agent], tmp_path: Path
) -> None:
    one, _ = pair
    (tmp_path / "elsewhere" / "queue").mkdir(parents=True)
    message = spool.message("left behind", one)
    message["to"].append({"kind": "agent", "name": "x", "key": "../../elsewhere"})
    files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
    outbox.recover(root, older_than=0.0)
    assert spool.bodies(root, one) == ["left behind"]
    assert list((tmp_path / "elsewhere" / "queue").iterdir()) == []


def test_a_claim_that_came_to_nothing_is_read_before_what_was_sent_after_it(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = pair
    box = mailbox.Mailbox(root, one["key"])
    state = spool.state(root, one["key"], "11111111", "")
    first = spool.send(root, "first", one)

    def claim() -> list[str]:
        with box.lock():
            box.settle(state)
            return box.claim(
                "prompt",
                rules.CONTEXT_UNITS,
                mailbox.make_claim(0, ""),
                recipient="alpha",
                session_id="11111111",
            )

    assert len(claim()) == 1
    second = spool.send(root, "second", one)
    assert claim() == []  # it waits behind one that may come back
    later = clock.now() + 3 * rules.LEASE
    monkeypatch.setattr(clock, "now", lambda: later)
    assert [sent in block for sent, block in zip((first, second), claim(), strict=True)] == [True, True]


def test_a_send_is_synced_after_it_has_all_its_names(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for name in ("link", "rename", "fsync"):
        monkeypatch.setattr(os, name, noted(steps, name, getattr(os, name)))
    spool.send(root, "to both", *pair)
    names = [step for step in steps if step != "fsync"]
    assert names == ["rename", "link", "link", "rename"]
    assert steps[: len(names) + 1] == [*names, "fsync"]


def test_behind_a_planted_last_number_messages_wait_in_their_order(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    one, _ = pair
    box = mailbox.Mailbox(root, one["key"])
    sent = [spool.send(root, "first", one)]
    (name,) = box.waiting()
    files.move(f"{box.queue}/{name}", f"{box.queue}/{'9' * 10}{name[10:]}")
    for number in range(3):
        sent.append(spool.send(root, str(number), one))
        time.sleep(0.002)
    assert [mailbox.entry_id(name) for name in box.waiting()] == sent


@pytest.mark.parametrize("damage", ["no queue", "a link for a lock", "a lock that is held"])
def test_a_recipient_whose_mailbox_cannot_be_used_stops_no_other_recovery(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    one, two = pair
    first, second = spool.message("to one", one), spool.message("to two", two)
    for message in (first, second):
        files.write(f"{home.outbox(root)}/{message['id']}.json", store.pack(message))
    box = mailbox.Mailbox(root, one["key"])
    real = files.Lock
    with ExitStack() as stack:
        if damage == "no queue":
            Path(box.queue).rmdir()
            Path(box.queue).touch()
        elif damage == "a link for a lock":
            Path(box.folder + "/lock").symlink_to("/nonexistent")
        else:
            stack.enter_context(box.lock())
            monkeypatch.setattr(files, "Lock", lambda path, _timeout=0.5: real(path, 0.05))
        assert outbox.recover(root, older_than=0.0) == [second["id"]]
    assert spool.bodies(root, two) == ["to two"]
    log = Path(home.log(root)).read_text()
    assert f'"action":"trouble","about":"{first["id"]}"' in log
