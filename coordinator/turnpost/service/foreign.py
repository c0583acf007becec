"""Waking a session that turnpost does not know: a copy of it, with our hooks, becomes an agent and gets the message.

Nothing can be delivered into a session without our hooks, and flags on a resume make a copy: so the original stays as
it is, and the conversation goes on in the fork. Only a person may ask for that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from turnpost.core import audit, clock, files, outbox, procs, registry, render, store, text
from turnpost.core.errors import HarnessError, NotFound
from turnpost.harness import Claude, Session
from turnpost.service.resume import wait_until

if TYPE_CHECKING:
    from turnpost.core.records import Agent

CONFIRM_SECONDS = 30.0
"""How long the copy may take until its SessionStart hook has run."""


class Forked(NamedTuple):
    """The agent that a foreign session's copy became, and the message that waits for it."""

    name: str
    session_id: str
    message_id: str


def wake(root: str, session_id: str, body: str, redacted: int = 0) -> Forked:
    """Fork the foreign session and send the fork `body` as the person; `redacted` secrets were taken out of it.

    Raises NotFound for a session that Claude Code does not list, and HarnessError when the copy does not come up; then
    its name is free again and nothing waits.
    """
    from turnpost.install import settings_for_launch, tools_for_launch

    claude = Claude.find()
    session = _listed(claude, session_id)
    full, folder = session.session_id or session_id, session.cwd or os.path.expanduser("~")
    registry.prepare(root)
    person = registry.person(root)
    agent = _reserve(root, session, folder)
    settings = {"env": {"TURNPOST_AGENT": agent["key"], "TURNPOST_HOME": root}, **settings_for_launch()}
    message = outbox.compose(registry.party(person), [registry.party(agent)], body, redacted=redacted)
    outbox.send(root, message, [agent])
    started = None
    try:
        started = claude.fork(full, render.NUDGE, cwd=folder, settings=settings, options=tools_for_launch())
        if not wait_until(lambda: _lives(root, agent["key"]), clock.monotonic() + CONFIRM_SECONDS):
            raise HarnessError(
                f"the copy of {full} showed no sign of life within {CONFIRM_SECONDS:g} s: {text.one_line(started.output)}"
            )
    except BaseException:
        if started is not None:
            claude.stop(started.short_id)
        _take_back(root, agent, message["id"])
        raise
    state = store.load_state(root, agent["key"])
    audit.write(root, "fork", agent=agent["key"], session=full, copy=state["session_id"] if state else None)
    return Forked(agent["name"], state["session_id"] if state else "", message["id"])


def _listed(claude: Claude, session_id: str) -> Session:
    for session in claude.listing():
        if session.session_id and session_id in (session.session_id, session.session_id[:8]):
            return session
    raise NotFound(
        f"no agent and no session of Claude Code is called '{text.visible(session_id)}'; see `turnpost agents` and `claude agents`"
    )


def _reserve(root: str, session: Session, folder: str) -> Agent:
    short = (session.session_id or "")[:8]
    base = text.to_name(session.name or os.path.basename(folder))
    with files.Lock(root + "/registry.lock", 5.0):
        name = next(
            n
            for n in (f"{base}-{short}", *(f"{base}-{short}-{i}" for i in range(2, 1000)))
            if registry.key_of_name(root, n) is None
        )
        return registry.create_agent(
            root, name, kind="managed", cwd=folder, project=registry.main_checkout(folder), background=True
        )


def _lives(root: str, key: str) -> bool:
    state = store.load_state(root, key)
    return state is not None and procs.alive(state["pid"], state["token"])


def _take_back(root: str, agent: Agent, message_id: str) -> None:
    from turnpost.core.mailbox import Mailbox

    with Mailbox(root, agent["key"]).lock(5.0):
        Mailbox(root, agent["key"]).end(message_id, "cancelled", "the session could not be forked")
    registry.forget(root, agent)
