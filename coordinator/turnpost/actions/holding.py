"""Keeping an agent from being woken, letting it go again, and waking it."""

from __future__ import annotations

import re

from turnpost.actions import courier, holds, people, permits, sending
from turnpost.actions.audited import refusals
from turnpost.actions.results import Held, Woken
from turnpost.core import audit, registry, text
from turnpost.core.errors import NotFound
from turnpost.core.sender import Speaker

WAKE_NOTE = "The person woke you. Go on with what you were doing, or say that there is nothing left to do."
# A session id, or the eight digits Claude Code shows for it: a mistyped name must not be taken for a foreign session.
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}", re.IGNORECASE)


@refusals("hold")
def hold(root: str, name: str, *, speaker: Speaker | None = None) -> Held:
    """Keep an agent from being woken: what is sent to it waits. The person's release or next message lifts it.

    A parent may hold its own child, until it or the person releases it. Raises Refused.
    """
    agent = people.agent(root, name)
    voice = permits.controlling(root, agent, "hold it", speaker)
    holds.put(root, agent["key"], "hold", by=voice.agent["key"])
    audit.acted(root, "hold", voice.agent, agent)
    return standing(root, agent["key"], agent["name"])


@refusals("release")
def release(root: str, name: str, *, speaker: Speaker | None = None) -> Held:
    """Lift a hold; what waited is delivered. The person lifts any, an agent only one that is no person's. Raises Refused."""
    agent = people.agent(root, name)
    voice = permits.controlling(root, agent, "release it", speaker)
    if not voice.is_person and holds.owner(root, agent["key"]) == registry.PERSON:
        raise people.not_allowed(
            voice,
            f"the person holds {agent['name']}, and only the person lets it go",
            recipient=agent["name"],
        )
    holds.lift(root, agent["key"])
    audit.acted(root, "release", voice.agent, agent)
    shown = standing(root, agent["key"], agent["name"])
    warnings = courier.ensure(root) if shown.waiting else ()
    return Held(shown.name, shown.state, shown.held, shown.waiting, warnings)


@refusals("wake")
def wake(root: str, target: str, body: str | None = None, *, speaker: Speaker | None = None) -> Woken:
    """Send an agent a message that also lifts its hold. A session turnpost does not know is woken by forking it.

    The fork has its own id and carries turnpost's hooks; the session itself stays as it is. The person only.
    """
    voice = people.person(root, "wake an agent", speaker)
    try:
        agent = people.agent(root, target)
    except NotFound:
        if not _SESSION.fullmatch(target):
            raise
        return _wake_foreign(root, target, body)
    sent = sending.send(root, [agent["name"]], WAKE_NOTE if body is None else body, speaker=speaker)
    audit.acted(root, "wake", voice.agent, agent, message=sent.id)
    return Woken(
        agent["name"], False, session_id=agent["sessions"][-1] if agent["sessions"] else None, sent=sent
    )


def standing(root: str, key: str, name: str) -> Held:
    """The answer of whatever changes a hold."""
    stands = people.standing(root, key)
    return Held(name, stands.doing, stands.held, stands.waiting)


def _wake_foreign(root: str, session_id: str, body: str | None) -> Woken:
    from turnpost import config, policy, redaction
    from turnpost.core import outbox
    from turnpost.service import foreign

    words = outbox.check_body(
        text.clean(WAKE_NOTE if body is None else body)[0], config.load(root).body_bytes
    )
    found = redaction.redact(words, policy.load(root).secrets)
    registry.prepare(root)
    woken = foreign.wake(root, session_id, found.text, found.taken)
    note = f"turnpost did not know this session and left it as it is; a copy of it goes on as the agent {woken.name}, session"
    return Woken(woken.name, True, session_id=woken.session_id, message_id=woken.message_id, note=note)
