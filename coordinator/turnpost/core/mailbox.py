"""One agent's mail: what waits, what is on its way, and the moves between.

A message is one small file per recipient. Its folder is its state: `queue/` waits, `claimed/` is on its way, the
message's own folder holds what is final. It begins as a second name of the message's file; the first claim puts a
receipt in its place. The name carries order and id, so a damaged receipt is rebuilt from its name and its message; the
content only adds times. Every move is one rename, so a process killed at any instant leaves the message in exactly one
place.
"""

from __future__ import annotations

import os

from turnpost.core import audit, clock, files, home, ids, procs, render, rules, store, text, transcript
from turnpost.core.errors import BadFile, Newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from turnpost.core.records import Boundary, Claim, Message, Packed, Progress, Receipt, State

    Want = Literal["all", "urgent"]

ENTRY_NAME = 41  # ten digits, a dash, an id of thirty characters
CLAIM = {"by": str, "pid": int, "token": (str, None), "until": float, "transcript": str, "offset": int}
RECEIPT = {
    "id": str, "state": frozenset({"queued", "claimed", "delivered", "read", "cancelled", "undeliverable"}),
    "queued_at": float, "claimed_at": (float, None), "delivered_at": (float, None), "read_at": (float, None),
    "ended_at?": float, "boundary": (str, None), "session_id": (str, None), "attempts": int,
    "reason?": (str, None), "reminders?": int, "nudges?": int, "claim?": (CLAIM, None),
}  # fmt: skip
PARTY = {
    "kind": frozenset({"person", "agent", "system"}), "name": str, "key": str, "sub?": str,
    "kin?": frozenset({"parent", "child"}),
}  # fmt: skip
MESSAGE = {
    "id": str, "sender": PARTY, "to": [PARTY], "kind": str, "thread": str, "body": str, "urgent": bool, "sent": float,
    "reply_to": (str, None), "refs": [str], "options": [str], "origin?": str, "hops?": int, "quiet?": bool,
    "redacted?": int, "choice?": int, "among?": [PARTY],
}  # fmt: skip


class Mailbox:
    """The mail of the agent `key`. Whatever changes it runs inside `with mailbox.lock():`."""

    def __init__(self, root: str, key: str) -> None:
        self.root = root
        self.key = key
        self.folder = home.agent(root, key)
        self.queue = self.folder + "/queue"
        self.claimed = self.folder + "/claimed"

    def lock(self, timeout: float = 0.5) -> files.Lock:
        """Guards queue, claims and state of this agent. Raises LockBusy after `timeout` seconds."""
        return files.Lock(self.folder + "/lock", timeout)

    def waiting(self) -> list[str]:
        """Names of the entries that wait, in the order received."""
        return [name for name in files.names(self.queue) if _is_entry(name)]

    def in_flight(self) -> list[str]:
        """Names of the entries that are claimed or delivered but not yet read."""
        return [name for name in files.names(self.claimed) if _is_entry(name)]

    def held(self) -> bool:
        """Whether a person keeps this agent from being woken."""
        return files.exists(self.folder + "/hold")

    def place(self, message: Message, waiting: list[str]) -> str:
        """The path of the entry that puts a message at the end of the queue, after all that is `waiting`."""
        last = [name for names in (waiting, self.in_flight()) for name in names[-1:]]
        # Behind the last number there is, which only a planted name has, the ids keep the order.
        sequence = min(1 + max((int(name[:10]) for name in last), default=0), 10**10 - 1)
        flags = ("u" if message["urgent"] or "~" in self.key else "") + ("q" if message.get("quiet") else "")
        return f"{self.queue}/{sequence:010d}-{message['id']}" + (f"-{flags}" if flags else "")

    def claim(
        self,
        boundary: Boundary,
        room: int,
        claim: Claim,
        *,
        recipient: str,
        session_id: str,
        want: Want = "all",
        whole_first: bool = False,
    ) -> list[str]:
        """Take what waits, in order, as far as `room` UTF-16 units go, and return the rendered blocks.

        A message is never cut: the first that does not fit ends the batch, except that with `whole_first` the very
        first goes alone at any size. Ordinary messages wait behind an earlier one whose arrival is not proven yet,
        or that one could come back and be second.
        """
        now = clock.now()
        blocks: list[str] = []
        for name in self._claimable(want):
            try:
                message, receipt = load_message(self.root, entry_id(name)), self._receipt(self.queue, name)
            except (Newer, OSError):
                continue  # it waits for a newer turnpost, or a better moment, and the others do not wait for it
            if message is None:
                if not self._is_shut(name):
                    self._set_aside(name)
                continue
            if receipt["attempts"] >= rules.DELIVERIES:
                continue  # given up: the coordinator ends it and tells its sender
            shown = render.block(message, recipient, now, self.key)
            cost = text.units(shown) + 1
            if cost > room and not (whole_first and not blocks):
                break
            room -= cost
            receipt.update(
                {
                    "state": "claimed",
                    "claimed_at": now,
                    "boundary": boundary,
                    "session_id": session_id,
                    "claim": claim,
                    "attempts": receipt["attempts"] + 1,
                }
            )
            try:
                self._carry(name, receipt)
            except (BadFile, IsADirectoryError):  # planted under the entry's name
                self._set_aside(name)
                continue
            except OSError:
                if not blocks:
                    raise
                break  # what was claimed before must enter all the same
            audit.moved(
                self.root,
                "claim",
                message,
                self.key,
                boundary=boundary,
                session=session_id,
                attempt=receipt["attempts"],
            )
            blocks.append(shown)
        return blocks

    def garbled(self) -> list[str]:
        """Entries that may be claimed, and whose text a waiter cannot bring letter for letter."""
        found = []
        for name in self._claimable("all"):
            try:
                message = load_message(self.root, entry_id(name))
                nudges = self._receipt(self.queue, name).get("nudges", 0)
            except (Newer, OSError):
                continue
            if message is not None and nudges < rules.NUDGES and text.tagged(message["body"]):
                found.append(name)
        return found

    def nudge(self, names: list[str]) -> None:
        """Count a wake without the messages themselves."""
        for name in names:
            receipt = self._receipt(self.queue, name)
            receipt["nudges"] = receipt.get("nudges", 0) + 1
            files.write(f"{self.queue}/{name}", store.pack(receipt), durable=False)

    def settle(self, state: State | None) -> list[Receipt]:
        """Bring every claim up to what the transcripts show; the receipts that changed.

        Two are looked at, the claim's and the present session's. So whoever puts another session, or another transcript,
        into the state settles first: an answer that stands only in the one that is left would be lost, and its message
        delivered again.

        Reading order matters: whether the session lives is looked at before the transcript, so that what a session
        wrote just before it died is still seen.
        """
        changed: list[Receipt] = []
        now = clock.now()
        for name in self.in_flight():
            try:
                receipt = self._receipt(self.claimed, name)
            except (Newer, OSError):
                continue  # what is not known now proves nothing
            if receipt["state"] == "read":
                # Killed between the two steps of `_finish`: what proved it is no longer in the receipt.
                self._finish(self.claimed, name, receipt)
                self._log(receipt)
                changed.append(receipt)
                continue
            claim = receipt.get("claim")
            if claim is not None and claim["until"] > now + rules.LEASE:
                claim["until"] = now + rules.LEASE  # the clock was set back: it runs anew, and not until then
                files.write(f"{self.claimed}/{name}", store.pack(receipt), durable=False)
            alive = claim is not None and procs.alive(claim["pid"], claim["token"])
            try:
                seen, current = self._proof(receipt, state)
            except OSError:
                continue
            verdict = rules.settle(receipt, seen, alive=alive, current=current, state=state, now=now)
            if verdict == "read":
                receipt.update({"state": "read", "delivered_at": seen.delivered_at, "read_at": seen.read_at})
                self._finish(self.claimed, name, receipt)
            elif verdict == "delivered" and receipt["state"] != "delivered":
                receipt.update({"state": "delivered", "delivered_at": seen.delivered_at})
                files.write(f"{self.claimed}/{name}", store.pack(receipt), durable=False)
            elif verdict == "requeue":
                receipt.update({"state": "queued", "claim": None})
                files.write(f"{self.claimed}/{name}", store.pack(receipt), durable=False)
                files.move(f"{self.claimed}/{name}", f"{self.queue}/{name}")
            else:
                continue
            self._log(receipt)
            changed.append(receipt)
        return changed

    def exhausted(self) -> list[str]:
        """Ids of waiting messages that were handed over too often without proof."""
        receipts = self._receipts(self.queue)
        return [receipt["id"] for receipt in receipts if receipt["attempts"] >= rules.DELIVERIES]

    def unanswered(self, state: State) -> list[str]:
        """Entries that entered the conversation of an idle or ended session, were not answered for a while, and may be recalled."""
        if state["doing"] not in ("idle", "stopped") and procs.alive(state["pid"], state["token"]):
            return []
        overdue = self._overdue(state)
        return [name for name in overdue if self._receipt(self.claimed, name)["state"] == "delivered"]

    def pressing(self, state: State) -> bool:
        """Whether somebody must act: something waits that is not quiet, or something entered and nobody answers it.

        Long unanswered in a turn counts as well: Esc ends one without a word, and the agent only seems to work.
        """
        if any(not is_quiet(name) and self._is_known(self.queue, name) for name in self.waiting()):
            return True
        seems_busy = state["doing"] in ("working", "blocked")
        return bool(self._overdue(state) if seems_busy else self.unanswered(state))

    def remind(self, names: list[str]) -> None:
        """Count a reminder of entries that nobody answered."""
        for name in names:
            receipt = self._receipt(self.claimed, name)
            receipt["reminders"] = receipt.get("reminders", 0) + 1
            receipt["claimed_at"] = clock.now()
            files.write(f"{self.claimed}/{name}", store.pack(receipt), durable=False)

    def end(
        self, message_id: str, state: Progress, reason: str | None = None, *, on_its_way: bool = False
    ) -> bool:
        """Take a message that still waits out of the queue for good; with `on_its_way` also one that was claimed.

        `cancelled`, `undeliverable`, or `read`: the person has looked at it, which no transcript shows. False when
        there is none, or only a newer turnpost knows what it is.
        """
        flying = [(self.claimed, name) for name in self.in_flight()] if on_its_way else []
        for folder, name in [*((self.queue, name) for name in self.waiting()), *flying]:
            if entry_id(name) == message_id and self._is_known(folder, name):
                receipt = self._receipt(folder, name)
                receipt.update({"state": state, "reason": reason})
                now = clock.now()
                if state == "read":
                    receipt.update({"claimed_at": now, "delivered_at": now, "read_at": now})
                else:
                    receipt["ended_at"] = now
                self._finish(folder, name, receipt)
                self._log(receipt)
                return True
        return False

    def receipt(self, message_id: str) -> Receipt | None:
        """How far a message has come here; None when this mailbox never had it. Needs no lock. Raises Newer."""
        for _ in range(3):  # a rename between two looks can hide it once
            for folder in (self.queue, self.claimed):
                for name in filter(_is_entry, files.names(folder)):
                    if entry_id(name) == message_id:
                        receipt = self._receipt(folder, name)
                        if folder == self.queue:
                            receipt["state"] = "queued"
                        return receipt
            final = store.load(self._final(message_id), RECEIPT)
            if final is not None and final["id"] == message_id:
                return final  # type: ignore[return-value]
            if (packed := archived(self.root, message_id)) is not None:
                return packed["receipts"].get(self.key)
        return None

    def waiting_receipts(self) -> list[Receipt]:
        """The receipts of all that waits or is on its way."""
        return [*self._receipts(self.queue), *self._receipts(self.claimed)]

    def _receipts(self, folder: str) -> list[Receipt]:
        """The receipts in a folder, without those of a newer turnpost."""
        found = [
            store.if_known(self._receipt, folder, name) for name in files.names(folder) if _is_entry(name)
        ]
        return [receipt for receipt in found if receipt is not None]

    def _is_known(self, folder: str, name: str) -> bool:
        """Whether an entry and its message can be read now, and neither is of a newer turnpost."""
        try:
            load_message(self.root, entry_id(name))
            self._receipt(folder, name)
        except (Newer, OSError):
            return False
        return True

    def _log(self, receipt: Receipt) -> None:
        """Tell the audit log what became of a message here. Whoever finds it out tells it, and only once."""
        message = store.if_known(load_message, self.root, receipt["id"])
        audit.moved(
            self.root, audit.STEPS[receipt["state"]], message, self.key, boundary=receipt["boundary"],
            session=receipt["session_id"], reason=receipt.get("reason"),
        )  # fmt: skip

    def _carry(self, name: str, receipt: Receipt) -> None:
        # Content first, place second: killed in between, it still waits.
        before = files.read(f"{self.queue}/{name}")
        files.write(f"{self.queue}/{name}", store.pack(receipt), durable=False)
        try:
            files.move(f"{self.queue}/{name}", f"{self.claimed}/{name}")
        except OSError:
            # A folder that takes nothing is no delivery that failed: it must not use up the attempts.
            files.write(f"{self.queue}/{name}", before, durable=False)
            raise

    def _overdue(self, state: State) -> list[str]:
        """Entries on their way for long, of which the agent may be reminded again."""
        now = clock.now()
        found = []
        for name in self.in_flight():
            receipt = store.if_known(self._receipt, self.claimed, name)
            if receipt is None:
                continue
            quiet_for = min(rules.age(state["since"], now), rules.age(receipt["claimed_at"] or 0, now))
            if receipt.get("reminders", 0) < rules.REMINDERS and quiet_for > rules.REMIND:
                found.append(name)
        return found

    def _claimable(self, want: Want) -> list[str]:
        names = [name for name in self.waiting() if want == "all" or is_urgent(name)]
        if want == "all" and names and self._unproven_before(names[-1]):
            return [name for name in names if is_urgent(name)]
        return names

    def _unproven_before(self, name: str) -> bool:
        earlier = [flying for flying in self.in_flight() if int(flying[:10]) < int(name[:10])]
        receipts = [store.if_known(self._receipt, self.claimed, flying) for flying in earlier]
        return any(receipt is not None and receipt["state"] != "delivered" for receipt in receipts)

    def _proof(self, receipt: Receipt, state: State | None) -> tuple[transcript.Seen, bool]:
        claim, message_id = receipt.get("claim"), receipt["id"]
        seen = transcript.Seen()
        if claim is not None and claim["transcript"]:
            seen = transcript.look(claim["transcript"], [message_id], claim["offset"])[message_id]
        current = state is None or state["session_id"] == receipt["session_id"]
        elsewhere = (
            state is not None
            and state["transcript"]
            and (claim is None or state["transcript"] != claim["transcript"])
        )
        if elsewhere and state is not None and seen.read_at is None:
            there = transcript.look(state["transcript"], [message_id], 0)[message_id]
            if there.at >= 0:
                return there, True
        return seen, current

    def _finish(self, folder: str, name: str, receipt: Receipt) -> None:
        receipt["claim"] = None
        files.mkdir(message_folder(self.root, receipt["id"]))
        files.write(f"{folder}/{name}", store.pack(receipt), durable=False)
        files.move(f"{folder}/{name}", self._final(receipt["id"]))

    def _final(self, message_id: str) -> str:
        return f"{message_folder(self.root, message_id)}/{self.key}.json"

    def _receipt(self, folder: str, name: str) -> Receipt:
        """An entry's receipt. Before the first claim an entry is the message itself, by another name.

        A damaged one is made anew from its name, so damage never costs the message. Raises Newer.
        """
        loaded = store.load(f"{folder}/{name}")
        fresh = _fresh(entry_id(name), clock.now())
        if loaded is None or loaded.get("id") != fresh["id"]:
            return fresh
        if store.fits(loaded, RECEIPT):
            fresh.update(loaded)  # type: ignore[typeddict-item]
        elif store.fits(loaded, MESSAGE):
            fresh["queued_at"] = loaded["sent"]
        return fresh

    def _is_shut(self, name: str) -> bool:
        """Whether an entry's message cannot be read only because somebody took the permission away, which they may give back."""
        try:
            files.read(f"{message_folder(self.root, entry_id(name))}/message.json")
        except PermissionError:
            return True
        except (OSError, BadFile):
            pass
        return False

    def _set_aside(self, name: str) -> None:
        """Keep an entry whose message cannot be read where `doctor` finds it, out of the way of the others."""
        files.mkdir(self.folder + "/damaged")
        files.move(f"{self.queue}/{name}", f"{self.folder}/damaged/{name}")


def _is_entry(name: str) -> bool:
    """Whether a name in a queue is one of ours: a stranger's file there stops nobody's mail."""
    return (
        name[10:15] == "-msg-"
        and not name[:10].strip("0123456789")
        and ids.is_tail(name[15:ENTRY_NAME])
        and name[ENTRY_NAME:] in ("", "-u", "-q", "-uq")
    )


def entry_id(name: str) -> str:
    """The message id in an entry's name."""
    return name[11:ENTRY_NAME]


def is_urgent(name: str) -> bool:
    """Whether an entry's message may enter in the middle of a turn."""
    return "u" in name[ENTRY_NAME:]


def is_quiet(name: str) -> bool:
    """Whether an entry's message wakes nobody who has stopped."""
    return "q" in name[ENTRY_NAME:]


def message_folder(root: str, message_id: str) -> str:
    """Where a message and its final receipts are kept."""
    return f"{root}/messages/{ids.day(message_id)}/{message_id}"


def load_message(root: str, message_id: str) -> Message | None:
    """A message by its id; None when there is none or it cannot be read.

    A send killed halfway leaves it in the outbox, whose recovery moves it on. Raises Newer.
    """
    if not ids.is_id(message_id, "msg"):
        return None
    found = store.load(f"{message_folder(root, message_id)}/message.json", MESSAGE) or store.load(
        f"{home.outbox(root)}/{message_id}.json", MESSAGE
    )
    if found is None and (packed := archived(root, message_id)) is not None:
        return packed["message"]
    return found if found is not None and found.get("id") == message_id else None  # type: ignore[return-value]


def archived(root: str, message_id: str) -> Packed | None:
    """A message that is over, from the archive; None when it is not there. What reads archives is loaded for it only."""
    if not ids.is_id(message_id, "msg") or not files.exists(home.packed(root, ids.day(message_id))):
        return None
    from turnpost.core import archive

    return archive.load(root, message_id)


def make_claim(pid: int, transcript_path: str) -> Claim:
    """A claim by the session whose harness process is `pid` (0 when unknown), proven by what its transcript gets from now on."""
    return {
        "by": str(os.getpid()),
        "pid": pid,
        "token": procs.token(pid) if pid else None,
        "until": clock.now() + rules.LEASE,
        "transcript": transcript_path,
        "offset": transcript.size(transcript_path) if transcript_path else 0,
    }


def _fresh(message_id: str, now: float) -> Receipt:
    return {
        "v": 1, "id": message_id, "state": "queued", "queued_at": now, "claimed_at": None, "delivered_at": None,
        "read_at": None, "boundary": None, "session_id": None, "attempts": 0, "claim": None,
    }  # fmt: skip
