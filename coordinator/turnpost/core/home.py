"""Where everything lies under `$TURNPOST_HOME`. Paths only: nothing here opens a file.

agents/KEY/agent.json     who it is                 agents/KEY/queue/      what waits for it
agents/KEY/state.json     what its session does     agents/KEY/claimed/    what is on its way
agents/KEY/waiter.json    its one active waiter     agents/KEY/lock        guards the above
names/NAME                name to KEY               sessions/ID            session to KEY
messages/DAY/ID/          the message and the receipts that are final
outbox/ID.json            a send that is under way
pending/KEY               a bell: KEY has something waiting or on its way
missions/NAME.json        a mission           loops/                what pairs of agents wrote lately
"""

from __future__ import annotations

import os
import sys


def home() -> str:
    """`$TURNPOST_HOME`, else the platform's folder for a user's state."""
    given = os.environ.get("TURNPOST_HOME")
    if given:
        return os.path.abspath(given)
    user = os.path.expanduser("~")
    if sys.platform == "darwin":
        return user + "/Library/Application Support/turnpost"
    return (os.environ.get("XDG_STATE_HOME") or user + "/.local/state") + "/turnpost"


def agents(root: str) -> str:
    return root + "/agents"


def agent(root: str, key: str) -> str:
    owner, tilde, sub = key.partition("~")
    return f"{root}/agents/{owner}/subagents/{sub}" if tilde else f"{root}/agents/{owner}"


def session(root: str, session_id: str) -> str:
    return f"{root}/sessions/{session_id}"


def name(root: str, agent_name: str) -> str:
    return f"{root}/names/{agent_name}"


def pending(root: str) -> str:
    return root + "/pending"


def outbox(root: str) -> str:
    return root + "/outbox"


def missions(root: str) -> str:
    return root + "/missions"


def mission(root: str, name_key: str) -> str:
    return f"{root}/missions/{name_key}.json"


def loops(root: str) -> str:
    return root + "/loops"


def pair(root: str, one: str, other: str) -> str:
    return f"{root}/loops/{'+'.join(sorted((one, other)))}"


def heard(root: str, key: str) -> str:
    return f"{root}/loops/{key}.person"


def log(root: str) -> str:
    return root + "/turnpost.log"


def is_session_id(text: str) -> bool:
    """Whether a text can be a session id, and so a file name of ours."""
    return 8 <= len(text) <= 64 and text.isascii() and text.replace("-", "").isalnum() and text[0] != "-"


def hooked_key(root: str) -> str | None:
    """The agent of the session this hook runs in, None when hooks are to do nothing.

    `claude -p` (entry point `sdk-cli`) and everything else without a person's or the background's terminal is left alone.
    """
    if os.environ.get("CLAUDE_CODE_ENTRYPOINT") != "cli":
        return None
    session_id = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
    if not is_session_id(session_id):
        return None
    try:
        fd = os.open(session(root, session_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, 256).decode("ascii", "replace").strip() or None
    finally:
        os.close(fd)
