"""Whether the caller may: the same check for sending, waiting, stopping, holding and taking back.

Each function answers with nothing or raises Refused, which names the rule, the relation and the policy's rule if one
decided. Nothing is written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnpost import policy
from turnpost.actions import people, seeing
from turnpost.core import ids, missions, registry, routing, store, subagents, text, threads
from turnpost.core.errors import Refused, UsageError
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Message
    from turnpost.core.routing import Power, Verdict
    from turnpost.policy import Policy

_ADVICE = "write to your parent, your own children, your mission's members and coordinator, or the person"


def acting(root: str, speaker: Speaker | None = None) -> Speaker:
    """The caller, who is about to change something. Raises Refused: `foreign`, or `read-only` for one in plan mode."""
    voice = people.caller(root, speaker)
    # A subagent is in the mode of the session it runs in.
    state = None if voice.is_person else store.load_state(root, subagents.owner_of(voice.agent["key"]))
    if state is not None and state.get("mode") == "plan":
        raise Refused(
            f"refused by rule 'read-only': you are {voice.agent['name']} and in plan mode, in which you may look but "
            "neither send nor change anything; finish the plan first",
            rule="read-only", caller=voice.agent["name"], mode="plan",
        )  # fmt: skip
    return voice


def verdict(root: str, one: Agent, other: Agent, rules: Policy, power: Power) -> Verdict:
    """What routing says about two agents as they are recorded now."""
    return routing.decide(one, other, missions.of(root, one, other), rules.rules, power)


def writing(root: str, voice: Speaker, recipients: Sequence[Agent], rules: Policy) -> None:
    """The caller may write to all of them. Raises Refused (`not-allowed`)."""
    for other in recipients:
        if voice.agent["kind"] == "subagent" and other["key"] != voice.agent["parent"]:
            raise people.not_allowed(
                voice,
                f"a subagent writes to its agent only ('parent'), not to {other['name']}",
                recipient=other["name"],
            )
        found = verdict(root, voice.agent, other, rules, "write")
        if not found.allowed:
            advice = _ADVICE if not found.rule else "`turnpost policy check` explains it"
            raise _refused(
                voice, other, found, f"you may not write to {other['name']}: {found.reason}; {advice}"
            )


def reachable(root: str, recipients: Sequence[Agent]) -> None:
    """Nobody's mission is over. Raises Refused (`mission-over`), for the person too: no message could ever resume them."""
    for other in recipients:
        mission = missions.over(root, other)
        if mission is not None:
            raise Refused(
                f"refused by rule 'mission-over': the mission {mission['name']} of {other['name']} is {mission['state']}, "
                "which nothing lifts; launch an agent for what is still to do",
                rule="mission-over", recipient=other["name"], mission=mission["name"], state=mission["state"],
            )  # fmt: skip


def naming(root: str, voice: Speaker, thread: str, recipients: Sequence[Agent]) -> str | None:
    """The thread that a name given for one stands for; None for that of those concerned.

    A name that is the way to another thread is nobody's to give, or a thread could hide another one. Raises UsageError
    (`bad-thread`).
    """
    thread = text.name_form(" ".join(thread.split()))
    look = unicodedata.normalize("NFKC", thread)  # what looks like a name is taken for it
    concerned = {text.name_key(agent["name"]) for agent in (voice.agent, *recipients)}
    if {text.name_key(word.strip()) for word in look.split("+")} == concerned:
        return None
    if why := _not_to_give(root, voice, thread, look):
        raise UsageError(f"'{text.visible(thread)}' cannot name this thread: {why}", rule="bad-thread")
    return thread


def answering(root: str, voice: Speaker, asked: Message) -> None:
    """The caller may answer a message, and so write in its thread: whoever may see it. Raises Refused (`not-allowed`)."""
    _seen(root, voice, asked, "answer")


def looking(root: str, message: Message, speaker: Speaker | None = None) -> None:
    """The caller may look at a message. Raises Refused (`not-allowed`, `foreign`)."""
    _seen(root, people.caller(root, speaker), message, "look at")


def controlling(root: str, agent: Agent, what: str, speaker: Speaker | None = None) -> Speaker:
    """The caller, who may stop, hold or rename this agent: the person, its parent, or whom the policy lets.

    Raises Refused (`not-allowed`, `read-only`, `foreign`).
    """
    voice = acting(root, speaker)
    found = verdict(root, voice.agent, agent, policy.load(root), "control")
    if not found.allowed:
        raise _refused(
            voice,
            agent,
            found,
            f"{found.reason}, and only its parent, the person or whom the policy lets may {what}",
        )
    return voice


def watching(root: str, voice: Speaker, agent: Agent) -> None:
    """The caller may wait for this agent: for itself, or for whom it may write to. Raises Refused (`not-allowed`)."""
    found = verdict(root, voice.agent, agent, policy.load(root), "write")
    if not found.allowed and found.relation != "self":
        raise _refused(
            voice, agent, found, f"{found.reason}, and who may not write to somebody may not wait for them"
        )


def following(voice: Speaker, message: Message) -> None:
    """The caller may wait for what becomes of a message: its sender, who got it, the person. Raises Refused."""
    mine = voice.agent["key"]
    if not voice.is_person and mine not in {
        message["sender"]["key"],
        *(party["key"] for party in message["to"]),
    }:
        raise people.not_allowed(
            voice, "only its sender, its recipients or the person may wait for a message"
        )


def taking_back(root: str, voice: Speaker, message: Message) -> None:
    """The caller may cancel a message: its sender, who may stop its sender, the person. Raises Refused."""
    owner = message["sender"]["key"]
    if voice.is_person or owner == voice.agent["key"]:
        return
    sender = registry.load_agent(root, owner)
    if sender is None or not verdict(root, voice.agent, sender, policy.load(root), "control").allowed:
        raise people.not_allowed(
            voice, "only its sender, the sender's parent or the person may cancel a message"
        )


def _seen(root: str, voice: Speaker, message: Message, what: str) -> None:
    if not seeing.Eyes(root, voice).see(message):
        raise people.not_allowed(
            voice,
            f"you neither sent nor got {message['id']}, and it is in no thread of your mission, so you may not {what} it",
        )


def _not_to_give(root: str, voice: Speaker, thread: str, look: str) -> str:
    """Why a caller may give no thread this name; empty when it may."""
    if text.name_key(look) == threads.INBOX:
        return "the inbox is the thread of what was sent to the person; send to 'person' instead"
    if ids.is_id(look, "msg"):
        return "it is the id of a message; to write in the thread of one, reply to it"
    if threads.spells_those_concerned(look):
        return "names joined by '+' are the thread of those alone; send to them, or reply to a message in it"
    mission = missions.load(root, thread) or missions.load(root, look)
    if mission is not None:
        mine = mission["name"] == voice.agent["mission"] or mission["coordinator"] == voice.agent["key"]
        return (
            "" if mine or voice.is_person else
            "it is the thread of a mission, in which only its members, its coordinator and the person write"
        )  # fmt: skip
    if text.name_key(look) == registry.PERSON or registry.key_of_name(root, look) is not None:
        return "by that name one's thread with somebody is called; send to them without naming a thread"
    return ""


def _refused(voice: Speaker, other: Agent, found: Verdict, why: str) -> Refused:
    numbers = {"recipient": other["name"], "relation": found.relation}
    return people.not_allowed(voice, why, **numbers, **({"policy_rule": found.rule} if found.rule else {}))
