"""Sending: every check before the first byte is written, then the durable record, then whoever must be woken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from turnpost import config, policy, redaction
from turnpost.actions import budget, courier, holds, people, permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Recipient, Sent
from turnpost.core import audit, choosing, ids, mailbox, missions, outbox, registry, rules, text, threads
from turnpost.core import refs as references
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.actions.people import Standing
    from turnpost.config import Config
    from turnpost.core.records import Agent, Message, Party
    from turnpost.redaction import Secrets

QUIET = ("note", "report", "answer")
"""Kinds that resume no stopped agent when an agent sends them."""
KINDS = ("question", "answer", "contract", "report", "alert", "note")
_LINE_LIMIT = 500
_LIST_LIMIT = 32


@refusals("send")
def send(
    root: str,
    to: Sequence[str],
    body: str,
    *,
    kind: str = "note",
    urgent: bool = False,
    thread: str | None = None,
    reply_to: str | None = None,
    refs: Sequence[str] = (),
    options: Sequence[str] = (),
    wake: bool = False,
    speaker: Speaker | None = None,
) -> Sent:
    """Send one message to one or more recipients; it is durable when this returns, and nobody was waited for.

    Between a parent and its own child a message is urgent of itself. What agents tell each other without asking (note,
    report, answer) resumes nobody who has stopped, unless `wake` is set. Only what the caller may see can be replied to.
    Raises Refused, NotFound, UsageError and LockBusy; then nothing was written.
    """
    voice = permits.acting(root, speaker)
    recipients = people.resolve(root, to, voice)
    limits, rules = config.load(root), policy.load(root)
    permits.writing(root, voice, recipients, rules)
    permits.reachable(root, recipients)
    body, replaced = text.clean(body)
    asked = original(root, reply_to) if reply_to is not None else None
    if asked is not None:
        permits.answering(root, voice, asked)
    choice, body = choosing.chosen(asked, body) if asked is not None and kind == "answer" else (None, body)
    _check_body(body, recipients, limits)
    _check_words(kind, thread, refs, options)
    if thread is not None:
        redaction.refuse("thread's name", thread, rules.secrets, "bad-thread")
    body, refs, options, redacted = _redacted(body, refs, options, rules.secrets)
    if redacted and (why := choosing.fault(kind, options)):
        raise UsageError(f"without their secrets the options cannot be told apart: {why}", rule="bad-option")
    _check_body(body, recipients, limits)  # once more: a word for a secret can be longer than it
    place, among = _place(root, thread, asked, voice, recipients)
    message = outbox.compose(
        registry.party(voice.agent), [_addressed(voice.agent, agent) for agent in recipients], body, kind=kind,
        thread=place, among=among, reply_to=reply_to, refs=refs, options=options,
        urgent=urgent or (rules.family_urgent and all(_kin(voice.agent, agent) for agent in recipients)),
        replied=asked, choice=choice, quiet=kind in QUIET and not voice.is_person and not wake,
        redacted=redacted, anew=budget.anew(root, asked, voice.agent, recipients),
    )  # fmt: skip
    budget.check(root, message, recipients, rules.loops)
    sent = _deliver(root, voice, message, recipients, limits, replaced)
    budget.note(root, message, recipients, rules.loops)
    return sent


@refusals("reply")
def reply(
    root: str, message_id: str, body: str, *, wake: bool = False, speaker: Speaker | None = None
) -> Sent:
    """Answer a message: to its sender, in its thread. A question's option may be named by its number."""
    asked = original(root, message_id)
    if asked["sender"]["kind"] == "system":
        raise Refused(f"{message_id} is from turnpost itself, which reads no answers", rule="not-allowed")
    to = people.name_of(root, asked["sender"]["key"]) or asked["sender"]["name"]
    return send(root, [to], body, kind="answer", reply_to=message_id, wake=wake, speaker=speaker)


def original(root: str, message_id: str) -> Message:
    """A message by its id. Raises UsageError for what is no id, NotFound when there is no such message."""
    if not ids.is_id(message_id, "msg"):
        shown = text.visible(message_id)
        raise NotFound(f"'{shown}' is no message id; one looks like msg-01JD3QK8V5T0YF6Z2M9XWB4C7R")
    message = mailbox.load_message(root, message_id)
    if message is None:
        raise NotFound(f"there is no message {message_id} in this home")
    return message


def _deliver(
    root: str, voice: Speaker, message: Message, recipients: Sequence[Agent], limits: Config, replaced: int
) -> Sent:
    registry.prepare(root)
    if any(agent["kind"] == "person" for agent in recipients):
        registry.person(root)
    # How it stands before the send: the waiter may claim, and be gone, before this line's successor runs.
    before = {agent["key"]: people.standing(root, agent["key"]) for agent in recipients}
    stands = outbox.send(
        root, message, recipients, limit=limits.mailbox_size, subagent_limit=limits.subagent_mailbox_size
    )
    # After the durable write: a refused message lifts nothing.
    held = [agent for agent in recipients if voice.is_person and before[agent["key"]].held]
    warnings = _lift(root, voice, held, message["id"])
    shown = [
        _shown(agent, before[agent["key"]], message, voice, *stands[agent["key"]]) for agent in recipients
    ]
    if any(agent["kind"] != "person" for agent in recipients):
        warnings += courier.ensure(root)
    return Sent(
        message["id"],
        message["thread"],
        tuple(shown),
        message["urgent"],
        replaced,
        warnings,
        message.get("quiet", False),
        message.get("redacted", 0),
    )


def _lift(root: str, voice: Speaker, agents: Sequence[Agent], message_id: str) -> tuple[str, ...]:
    """Lift the holds on agents; what to tell where that failed: the message is sent all the same."""
    warnings = []
    for agent in agents:
        try:
            holds.lift(root, agent["key"])
        except OSError as error:
            warnings.append(
                f"the hold on {agent['name']} cannot be lifted ({error.strerror}: {holds.path(root, agent['key'])}); it keeps the message waiting"
            )
            continue
        audit.acted(root, "release", voice.agent, agent, message=message_id)
    return tuple(warnings)


def _shown(
    agent: Agent, stood: Standing, message: Message, voice: Speaker, waiting: int, copy: int
) -> Recipient:
    if agent["kind"] == "person":
        return Recipient(agent["name"], waiting, "inbox", False, copy)
    if agent["kind"] == "subagent":
        return Recipient(agent["name"], waiting, "next-request", False, copy)
    boundary = rules.predict(
        stood.doing, urgent=message["urgent"], held=stood.held and not voice.is_person, listening=stood.listening,
        background=agent["background"], quiet=message.get("quiet", False),
    )  # fmt: skip
    return Recipient(agent["name"], waiting, boundary, stood.deaf, copy)


def _redacted(
    body: str, refs: Sequence[str], options: Sequence[str], secrets: Secrets
) -> tuple[str, list[str], list[str], int]:
    """All that a message says, without its secrets, and how many those were."""
    found = [redaction.redact(part, secrets) for part in (body, *refs, *options)]
    words = [one.text for one in found]
    return words[0], words[1 : 1 + len(refs)], words[1 + len(refs) :], sum(one.taken for one in found)


def _place(
    root: str, given: str | None, asked: Message | None, voice: Speaker, recipients: Sequence[Agent]
) -> tuple[str | None, list[Party]]:
    """The thread, by its name or by those whose it is; neither for that of those concerned.

    The one that was named, else the one of what is answered, else the mission's.
    """
    if given is not None:
        return permits.naming(root, voice, given, recipients), []
    if asked is not None:
        return threads.answering(root, asked, voice.agent, recipients)
    concerned = [voice.agent, *recipients]
    return threads.mission_of(concerned, missions.of(root, *concerned)), []


def _addressed(sender: Agent, agent: Agent) -> Party:
    """A recipient, with what the sender is to it."""
    party = registry.party(agent)
    kin = _kin(sender, agent)
    if kin is not None:
        party["kin"] = kin
    return party


def _kin(sender: Agent, agent: Agent) -> Literal["parent", "child"] | None:
    """What the sender is to an agent: its parent, its child, or nothing of the kind."""
    if agent["parent"] == sender["key"]:
        return "parent"
    return "child" if sender["parent"] == agent["key"] else None


def _check_body(body: str, recipients: Sequence[Agent], limits: Config) -> None:
    if all(agent["kind"] != "subagent" for agent in recipients):
        outbox.check_body(body, limits.body_bytes)
        return
    room = min(limits.body_bytes, limits.subagent_body_bytes)
    outbox.check_body(body, room, f" for a subagent, for which {limits.subagent_mailbox_size} such may wait,")


def _check_words(kind: str, thread: str | None, refs: Sequence[str], options: Sequence[str]) -> None:
    if kind not in KINDS:
        raise UsageError(f"'{text.visible(kind)}' is no kind of message; the kinds are {', '.join(KINDS)}")
    for what, words in (("ref", refs), ("option", options)):
        if len(words) > _LIST_LIMIT:
            raise UsageError(
                f"{len(words)} {what}s are more than {_LIST_LIMIT}", count=len(words), limit=_LIST_LIMIT
            )
    if thread is not None:
        _check_line("thread", thread)
    for ref in refs:
        if why := references.fault(ref):
            raise UsageError(
                f"'{text.visible(ref)}' is no reference: {why}; known are {references.FORMS}", rule="bad-ref"
            )
    for option in options:
        _check_line("option", option)
    if why := choosing.fault(kind, options):
        raise UsageError(why, rule="bad-option")


def _check_line(what: str, word: str) -> None:
    if not word.strip() or len(word) > _LINE_LIMIT or not word.isprintable():
        raise UsageError(
            f"a {what} is one printable line of 1 to {_LINE_LIMIT} characters", rule=f"bad-{what}"
        )
