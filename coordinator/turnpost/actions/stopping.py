"""Ending an agent's session. Its mail stays, and so does its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.actions import holding, holds, people, permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Held
from turnpost.core import audit, clock, store
from turnpost.core.errors import HarnessError
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent
    from turnpost.harness import Claude

STOP_SECONDS = 20.0
"""How long a session may take to end: `claude stop` takes up to 3 s, a resume under way may come up first."""
POLL = 0.05


@refusals("stop")
def stop(root: str, name: str, *, speaker: Speaker | None = None) -> Held:
    """End an agent's session. By the person it is a hold too: only the person's next message starts it again.

    A parent may stop its own child, without a hold: its next message starts the child again. Raises Refused, and
    HarnessError when the session does not end; a hold that was put stays, so that nothing is delivered to what should
    have stopped.
    """
    agent = people.agent(root, name)
    voice = permits.controlling(root, agent, "stop it", speaker)
    claude = _claude(root, agent)
    if voice.is_person:
        holds.put(root, agent["key"], "stop")  # first, or the coordinator resumes what has just ended
        audit.acted(root, "hold", voice.agent, agent)
    if claude is not None:
        _end(root, agent, claude)
    audit.acted(root, "stop", voice.agent, agent)
    return holding.standing(root, agent["key"], agent["name"])


def _claude(root: str, agent: Agent) -> Claude | None:
    """Claude Code, if there may be a session to end. Before anything is written: without it a stop is refused."""
    if people.standing(root, agent["key"]).doing == "stopped":
        return None
    from turnpost.harness import Claude

    return Claude.find()


def _end(root: str, agent: Agent, claude: Claude) -> None:
    end = clock.monotonic() + STOP_SECONDS
    asked: tuple[str, int] | None = None
    while clock.monotonic() < end:
        stands = people.standing(root, agent["key"])
        if stands.state is None:
            return
        session = (stands.state["session_id"], stands.state["pid"])
        if stands.doing != "stopped" and asked != session:
            # Also one that was killed: Claude Code's background service would bring it back after some seconds.
            claude.stop(stands.state["session_id"])
            asked = session
        elif stands.doing in ("stopped", "lost"):
            _record_end(root, agent["key"])
            return
        clock.sleep(POLL)
    raise HarnessError(
        f"the session of {agent['name']} did not end within {STOP_SECONDS:g} s; one that runs in a terminal is ended "
        "there, and until then no message reaches it while it is held",
        seconds=STOP_SECONDS, agent=agent["name"],
    )  # fmt: skip


def _record_end(root: str, key: str) -> None:
    """A session that was killed before could not say that it ended."""
    with Mailbox(root, key).lock(5.0):
        state = store.load_state(root, key)
        if state is not None and people.standing(root, key).doing == "lost":
            store.save_state(root, key, store.change_state(state, "stopped"))
