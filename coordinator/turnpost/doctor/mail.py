"""What waits and does not move, and what was given up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from turnpost.actions import people
from turnpost.core import bell, clock, files, mailbox, registry, store
from turnpost.core.mailbox import Mailbox
from turnpost.core.records import TYPE_CHECKING
from turnpost.doctor.results import Check, fail, ok, warn

if TYPE_CHECKING:
    from turnpost.core.records import Doing, Receipt

STUCK = 60.0
"""Seconds a message may wait for an agent that could have it now. A resume and its retry are done by then."""
LONG = 3600.0
"""Seconds a message may wait for an agent that works or is blocked before it is worth a word."""
_DAYS = 2


class Mail(NamedTuple):
    """How one agent stands, with the receipts of what waits or is on its way."""

    name: str
    doing: Doing
    background: bool
    listening: bool
    deaf: bool
    held: bool
    receipts: tuple[Receipt, ...]
    last_error: str = ""

    def older_than(self, age: float, now: float) -> list[Receipt]:
        """What waits or is on its way for longer than `age` seconds."""
        return [one for one in self.receipts if now - one["queued_at"] > age]


def look(root: str) -> list[Mail]:
    """Every agent's mail."""
    found: list[Mail] = []
    for agent in registry.everyone(root):
        stands = store.if_known(people.standing, root, agent["key"])
        if stands is None:
            continue
        resume = stands.state.get("resume") if stands.state else None
        found.append(
            Mail(
                agent["name"],
                stands.doing,
                agent["background"],
                bell.listening(root, agent["key"]),
                stands.deaf,
                stands.held,
                tuple(Mailbox(root, agent["key"]).waiting_receipts()),
                (resume and resume["error"]) or "",
            )
        )
    return found


def check_all(root: str) -> list[Check]:
    """Everything about agents and their mail."""
    mails, now = look(root), clock.now()
    checks = [
        *(check for mail in mails for check in (*check_agent(mail), *check_stuck(mail, now))),
        *check_given_up(given_up(root)),
    ]
    waiting = sum(len(mail.receipts) for mail in mails)
    if not any(check.status != "ok" for check in checks):
        checks.append(ok("mail", f"{len(mails)} agents, {waiting} messages on their way, none stuck"))
    return checks


def check_agent(mail: Mail) -> list[Check]:
    """What is odd about an agent itself."""
    if mail.held and mail.receipts:
        line = f"{mail.name} is held, and {len(mail.receipts)} messages wait"
        return [warn("held", line, f"`turnpost release {mail.name}`, or send it a message yourself")]
    if mail.held:
        return [ok("held", f"{mail.name} is held")]
    count = len(mail.receipts)
    if mail.deaf and mail.background:
        line = f"{mail.name} is idle and nothing wakes it; the coordinator restarts it "
        line += f"for the {count} messages that wait" if count else "when a message comes"
        return [warn("deaf", line, f"nothing, or at once: `turnpost wake {mail.name}`")]
    if mail.deaf:
        line = f"{mail.name} is idle in a terminal and nothing wakes it; its mail comes with its next prompt"
        return [warn("deaf", line, "type anything in its terminal; that arms a new waiter")]
    if mail.doing == "lost":
        line = f"the process of {mail.name} is gone without a word; "
        line += (
            f"the coordinator resumes it for the {count} messages that wait"
            if count
            else "its next message resumes it"
        )
        return [warn("lost", line, f"nothing, or at once: `turnpost wake {mail.name}`")]
    return []


def check_stuck(mail: Mail, now: float) -> list[Check]:
    """Messages that should be read by now."""
    if mail.held:
        return []
    busy = mail.doing in ("working", "blocked")
    old = mail.older_than(LONG if busy else STUCK, now)
    if not old:
        return []
    first = min(old, key=lambda receipt: receipt["queued_at"])
    age = clock.span(now - first["queued_at"])
    line = f"{len(old)} for {mail.name} ({mail.doing}), the oldest {first['id']} for {age}, {first['state']}"
    line += f", attempt {first['attempts']}" if first["attempts"] else ""
    line += f"; its resume failed: {mail.last_error}" if mail.last_error else ""
    if mail.doing == "blocked":
        return [warn("stuck", line, f"answer the permission prompt of {mail.name}: `claude attach`")]
    if busy:
        return [warn("stuck", line, "nothing while it works; its turn has to end first")]
    if not mail.background and not mail.listening and mail.doing == "idle":
        return [warn("stuck", line, f"type anything in the terminal of {mail.name}")]
    return [fail("stuck", line, f"`turnpost wake {mail.name}`; the coordinator's log says what it tried")]


def check_given_up(given: Sequence[Receipt]) -> list[Check]:
    """Messages that were given up of late."""
    if not given:
        return []
    last = given[-1]
    line = f"{len(given)} given up in the last {_DAYS} days, last {last['id']}: {last.get('reason') or 'no reason kept'}"
    return [
        warn("undeliverable", line, f"`turnpost show {last['id']}`; send it again when its reason is gone")
    ]


def given_up(root: str) -> list[Receipt]:
    """The receipts of messages that were given up in the last days: their folders only, never all of history."""
    found: list[Receipt] = []
    now = clock.now()
    days = {time.strftime("%Y-%m-%d", time.gmtime(now - n * 86400)) for n in range(_DAYS)}
    for day in sorted(days):
        for message_id in files.names(f"{root}/messages/{day}"):
            for name in files.names(f"{root}/messages/{day}/{message_id}"):
                record = (
                    store.if_known(store.load, f"{root}/messages/{day}/{message_id}/{name}", mailbox.RECEIPT)
                    if name != "message.json"
                    else None
                )
                if record is not None and record.get("state") == "undeliverable":
                    found.append(record)  # type: ignore[arg-type]
    return found


def needs_coordinator(mails: Sequence[Mail]) -> list[str]:
    """Agents whose mail nobody but the coordinator can bring."""
    asleep = ("stopped", "lost")
    return [
        mail.name
        for mail in mails
        if mail.receipts
        and not mail.held
        and (mail.doing in asleep or (mail.doing == "idle" and mail.background and not mail.listening))
    ]
