"""Waiting, for a short while, until something can be seen: a message read or answered, an agent idle, a message here.

Waiting is looking: every fifty milliseconds at the spool and, where a claim is open, at the transcript. Nobody is held
up by it, and nothing that is waited for depends on it but that a coordinator runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

from turnpost.actions import agents, courier, people, permits, receipts
from turnpost.actions.audited import refusals
from turnpost.actions.results import Waited
from turnpost.actions.sending import original
from turnpost.core import clock, files, ids, mailbox, registry, store, text, threads
from turnpost.core.errors import UsageError
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Message

Goal = Literal["read", "reply", "idle", "message"]
GOALS: tuple[str, ...] = get_args(Goal)
LONGEST = 30.0
"""Seconds. A longer wait would hold a whole turn of an agent; it is done in steps."""
POLL = 0.05
_ORDER = ("queued", "claimed", "delivered", "read")
_NEVER = ("cancelled", "undeliverable")

Look = Callable[[], Waited]


@refusals("wait")
def wait(
    root: str,
    target: str,
    goal: str | None = None,
    *,
    timeout: float = 1.0,
    speaker: Speaker | None = None,
    on_look: Callable[[Waited], None] | None = None,
) -> Waited:
    """Wait until `target` has come to `goal`, for at most `timeout` seconds (0 to 30); what was seen last.

    A message's goals are `read` (the default) and `reply`; an agent's are `idle` (the default: no turn runs and
    nothing is on its way) and `message` (one from it, or for `person` one from anybody, waits for the caller).
    `on_look` is told what each look saw. Raises UsageError, NotFound, and Refused for what is none of the caller's.
    """
    if not 0 <= timeout <= LONGEST:
        raise UsageError(
            f"a wait is 0 to {LONGEST:g} seconds, not {timeout:g}; wait again instead", limit=LONGEST
        )
    look = _looker(root, target, goal, speaker)
    start = clock.monotonic()
    ensured = not timeout or not _is_delivered(root, target)
    while True:
        seen = look()
        waited = clock.monotonic() - start
        seen = seen._replace(waited=round(waited, 3))
        if seen.done or seen.over or waited >= timeout:
            return seen
        if not ensured:
            # Killed after the last send, it left what waits for a stopped agent to nobody.
            courier.ensure(root)
            ensured = True
        if on_look:
            on_look(seen)
        clock.sleep(min(POLL, max(0.0, timeout - waited)))


def _is_delivered(root: str, target: str) -> bool:
    """Whether what is waited for is brought to an agent: nobody brings the person anything."""
    if ids.is_id(target, "msg"):
        return any(party["kind"] == "agent" for party in original(root, target)["to"])
    return text.name_key(target) != registry.PERSON


def _looker(root: str, target: str, goal: str | None, speaker: Speaker | None) -> Look:
    of_message = ids.is_id(target, "msg")
    goal = goal or ("read" if of_message else "idle")
    if goal not in GOALS:
        raise UsageError(f"'{text.visible(goal)}' cannot be waited for; it is one of {', '.join(GOALS)}")
    if of_message != (goal in ("read", "reply")):
        wants = "an agent" if of_message else "the id of a message"
        raise UsageError(f"to wait for '{goal}' takes {wants}, not '{text.visible(target)}'")
    voice = people.caller(root, speaker)
    if of_message:
        message = original(root, target)
        permits.following(voice, message)
        return _read(root, target) if goal == "read" else _reply(root, message)
    return _idle(root, target, voice) if goal == "idle" else _message(root, target, voice)


def _read(root: str, message_id: str) -> Look:

    def look() -> Waited:
        shown = receipts.full(root, original(root, message_id))
        states = [receipt.state for receipt in shown.receipts.values()]
        never = next((state for state in states if state in _NEVER), None)
        state = never or min(states, key=_ORDER.index)
        over = f"{message_id} is {never} and will not be read" if never else None
        return Waited(message_id, "read", state == "read", state, message=shown, over=over)

    return look


def _reply(root: str, asked: Message) -> Look:
    message_id = asked["id"]

    def is_it(message: Message) -> bool:
        return message["reply_to"] == message_id and threads.reaches(root, message, asked)

    find = _Newer(root, message_id, is_it)

    def look() -> Waited:
        answer = find()
        if answer is None:
            return Waited(message_id, "reply", False, "unanswered")
        return Waited(message_id, "reply", True, "answered", message=receipts.view(answer))

    return look


def _idle(root: str, name: str, voice: Speaker) -> Look:
    agent = people.agent(root, name)
    permits.watching(root, voice, agent)

    def look() -> Waited:
        receipts.settle(root, [agent["key"]])
        shown = agents.view(root, registry.load_agent(root, agent["key"]) or agent)
        coming = mailbox.Mailbox(root, agent["key"]).in_flight() or (shown.waiting and not shown.held)
        done = shown.state in ("idle", "stopped") and not coming
        return Waited(name, "idle", done, shown.state, agent=shown)

    return look


def _message(root: str, name: str, voice: Speaker) -> Look:
    mine = voice.agent["key"]
    other = registry.unsaved_person() if text.name_key(name) == registry.PERSON else people.agent(root, name)
    permits.watching(root, voice, other)
    wanted = other["key"]
    anybody = wanted == mine

    def is_it(message: Message) -> bool:
        for_me = any(party["key"] == mine for party in message["to"])
        return for_me and (anybody or message["sender"]["key"] == wanted)

    # From the clock, not from the newest message: what was sent in this very millisecond counts as new.
    find = _Newer(root, ids.new("msg", clock.now() - 0.001), is_it)
    box = mailbox.Mailbox(root, mine)

    def look() -> Waited:
        here = [
            store.if_known(mailbox.load_message, root, mailbox.entry_id(entry)) for entry in box.waiting()
        ]
        found = next((message for message in here if message and is_it(message)), None) or find()
        if found is None:
            return Waited(name, "message", False, "none")
        return Waited(name, "message", True, "arrived", message=receipts.view(found))

    return look


class _Newer:
    """Finds the first message after `since` that fits; each look reads only the messages that no look has read."""

    def __init__(self, root: str, since: str, fits: Callable[[Message], bool]) -> None:
        self._root = root
        self._since = since
        self._fits = fits
        self._seen: set[str] = set()

    def __call__(self) -> Message | None:
        for message_id in self._fresh():
            message = store.if_known(mailbox.load_message, self._root, message_id)
            if message is None:
                continue  # its send is under way: another look
            self._seen.add(message_id)
            if self._fits(message):
                return message
        return None

    def _fresh(self) -> list[str]:
        folder = self._root + "/messages"
        first = ids.day(self._since)
        days = [day for day in files.names(folder) if day >= first]
        return [
            name
            for day in days
            for name in files.names(f"{folder}/{day}")
            if name > self._since and name not in self._seen and ids.is_id(name, "msg")
        ]
