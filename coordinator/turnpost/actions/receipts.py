"""How far a message has come, and taking one back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.actions import permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Cancelled, MessageView, ReceiptView
from turnpost.actions.sending import original
from turnpost.core import bell, clock, outbox, registry, store, threads
from turnpost.core.errors import LockBusy, Refused
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnpost.core.records import Message, Party, Receipt

_FINAL = ("read", "cancelled", "undeliverable")


def show(root: str, message_id: str, *, speaker: Speaker | None = None) -> MessageView:
    """A message and its receipts. Looks into the transcripts first, so it is right without a coordinator.

    Raises NotFound, and Refused: `not-allowed` for an agent that cannot see it in its threads, `foreign`.
    """
    message = original(root, message_id)
    permits.looking(root, message, speaker)
    return full(root, message)


def full(root: str, message: Message) -> MessageView:
    """A message with its receipts and its answers."""
    shown = {party["name"]: _receipt(root, message, party) for party in message["to"]}
    answers = threads.answers(root, message["id"])
    pinned = threads.is_open(root, message)
    return view(message, shown)._replace(answers=tuple(a["id"] for a in answers), pinned=pinned)


@refusals("cancel")
def cancel(root: str, message_id: str, *, speaker: Speaker | None = None) -> Cancelled:
    """Take a message back from every recipient that has not claimed it yet. Twice is once.

    Raises NotFound, and Refused: `not-allowed` when it is neither the caller's nor a child's, `too-late` when every recipient has it.
    """
    message = original(root, message_id)
    permits.taking_back(root, permits.acting(root, speaker), message)
    _finish_send(root, message)
    states = {party["name"]: _end(root, message_id, party) for party in message["to"]}
    taken = tuple(name for name, state in states.items() if state == "cancelled")
    late = {name: state for name, state in states.items() if state != "cancelled"}
    if taken:
        threads.taken_back(root, message)
    if not taken:
        there = ", ".join(f"{name}: {state}" for name, state in late.items())
        raise Refused(f"too late to cancel {message_id}; {there}", rule="too-late", states=late)
    return Cancelled(message_id, taken, late)


def view(message: Message, receipts: dict[str, ReceiptView] | None = None) -> MessageView:
    """A message as it is shown."""
    return MessageView(
        message["id"], message["sender"]["name"], tuple(party["name"] for party in message["to"]), message["kind"],
        message["thread"], message["urgent"], clock.rfc3339(message["sent"]), message["reply_to"], tuple(message["refs"]),
        tuple(message["options"]), message["body"], receipts or {}, message.get("choice"),
        redacted=message.get("redacted", 0),
    )  # fmt: skip


def settle(root: str, keys: Iterable[str]) -> None:
    """Bring the claims of these mailboxes up to what the transcripts show. A busy one is left to whoever is at it."""
    for key in keys:
        box = Mailbox(root, key)
        if not box.in_flight():
            continue
        try:
            with box.lock():
                changed = box.settle(store.load_state(root, key))
        except LockBusy:
            continue
        if any(receipt["state"] == "queued" for receipt in changed):
            bell.announce(root, key)
            bell.ring_waiter(root, key)


def _receipt(root: str, message: Message, party: Party) -> ReceiptView:
    box = Mailbox(root, party["key"])
    found = box.receipt(message["id"])
    if found is not None and found["state"] not in _FINAL and found["state"] != "queued":
        settle(root, [party["key"]])
        found = box.receipt(message["id"])
    if found is None:  # its send is under way, or was killed and is finished by the next coordinator
        return ReceiptView("queued")
    return _shown(found, box.held())


def _shown(receipt: Receipt, held: bool) -> ReceiptView:
    waits = receipt["state"] == "queued"
    return ReceiptView(
        receipt["state"], clock.rfc3339(receipt["queued_at"]), clock.rfc3339(receipt["claimed_at"]),
        clock.rfc3339(receipt["delivered_at"]), clock.rfc3339(receipt["read_at"]),
        "held" if waits and held else receipt["boundary"], receipt["session_id"], receipt["attempts"],
        receipt.get("reason"), clock.rfc3339(receipt.get("ended_at")),
    )  # fmt: skip


def _finish_send(root: str, message: Message) -> None:
    """A send killed half way would put the message into a queue after its cancel; so it is finished first."""
    if any(Mailbox(root, party["key"]).receipt(message["id"]) is None for party in message["to"]):
        outbox.recover(root, 0.0)


def _end(root: str, message_id: str, party: Party) -> str:
    if registry.load_agent(root, party["key"]) is None:
        return "gone"
    box = Mailbox(root, party["key"])
    with box.lock(5.0):
        if box.end(message_id, "cancelled", "its sender took it back"):
            return "cancelled"
        found = box.receipt(message_id)
    return found["state"] if found else "gone"
