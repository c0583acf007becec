"""Where everything lies under `$TURNPOST_HOME`. Paths only, and nothing is imported: every hook starts here, most end here.

`os` alone takes a sixth of a bare interpreter's start, `__future__` a fiftieth; `posix` is a part of the interpreter.

agents/KEY/agent.json     who it is                 agents/KEY/queue/      what waits for it
agents/KEY/state.json     what its session does     agents/KEY/claimed/    what is on its way
agents/KEY/waiter.json    its one active waiter     agents/KEY/lock        guards the above
agents/KEY/woken          its waiter began a turn   agents/KEY/blocked     a permission prompt is open
names/NAME                name to KEY               sessions/ID            session to KEY
messages/DAY/ID/          the message and the receipts that are final
archive/DAY.zip           the same of a day whose messages are over
outbox/ID.json            a send that is under way
threads/DIGEST/ID         which messages a thread has   agents/person/asked/ID  the person's open questions
agents/KEY/subagents/ID/  the same of a subagent    agents/KEY/reports/       last words on their way to the parent
reports/ID.md             a report too long for a message
agents/KEY/given-up/ID    an alert that is to be sent
pending/KEY               a bell: KEY has something waiting or on its way
missions/NAME.json        a mission           loops/                what pairs of agents wrote lately
"""

import posix
import sys

SHARED = (
    "names",
    "sessions",
    "pids",
    "missions",
    "loops",
    "outbox",
    "reports",
    "settings",
    "archive",
    "agents/person/asked",
)
"""Folders of the whole spool in which records are written, and so where a killed writer leaves a temporary file."""


def home() -> str:
    """`$TURNPOST_HOME`, else the platform's folder for a user's state."""
    given = _variable("TURNPOST_HOME")
    if given:
        return _absolute(given)
    user = _user()
    if sys.platform == "darwin":
        return user + "/Library/Application Support/turnpost"
    return (_variable("XDG_STATE_HOME") or user + "/.local/state") + "/turnpost"


def agents(root: str) -> str:
    return root + "/agents"


def agent(root: str, key: str) -> str:
    owner, tilde, sub = key.partition("~")
    return f"{root}/agents/{owner}/subagents/{sub}" if tilde else f"{root}/agents/{owner}"


def subagents(root: str, key: str) -> str:
    return f"{root}/agents/{key}/subagents"


def running(root: str, key: str) -> str:
    return f"{root}/agents/{key}/running-subagents"


def submail(root: str, key: str) -> str:
    return f"{root}/agents/{key}/subagents-mail"


def subcommands(root: str, key: str) -> str:
    return f"{root}/agents/{key}/subagents-commands"


def reporting(root: str, key: str) -> str:
    return f"{root}/agents/{key}/reporting"


def reports(root: str, key: str) -> str:
    return f"{root}/agents/{key}/reports"


def report(root: str, message_id: str) -> str:
    return f"{root}/reports/{message_id}.md"


def hold_final(root: str, key: str) -> str:
    return f"{root}/agents/{key}/hold-final"


def woken(root: str, key: str) -> str:
    """The flag of a turn that a waiter has begun and recorded: its prompt hook has nothing to do."""
    return f"{root}/agents/{key}/woken"


def session(root: str, session_id: str) -> str:
    return f"{root}/sessions/{session_id}"


def name(root: str, agent_name: str) -> str:
    return f"{root}/names/{agent_name}"


def pending(root: str) -> str:
    return root + "/pending"


def archive(root: str) -> str:
    return root + "/archive"


def packed(root: str, day: str) -> str:
    return f"{root}/archive/{day}.zip"


def outbox(root: str) -> str:
    return root + "/outbox"


def threads(root: str) -> str:
    return root + "/threads"


def thread(root: str, digest: str) -> str:
    return f"{root}/threads/{digest}"


def asked(root: str) -> str:
    return root + "/agents/person/asked"


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


def is_private(root: str) -> bool:
    """Whether the home is a folder of ours in which nobody else can write; one that is not there will be.

    Nothing further in is asked about: whoever cannot write here can plant nothing there, no link and no folder.
    """
    try:
        found = posix.stat(root)
    except (OSError, ValueError):
        return True
    is_folder = found.st_mode & 0o170000 == 0o040000
    return is_folder and found.st_uid == posix.geteuid() and not found.st_mode & 0o022


def hooked_key(root: str) -> str | None:
    """The agent of the session this hook runs in, None when hooks are to do nothing.

    `claude -p` (entry point `sdk-cli`) and everything else without a person's or the background's terminal is left alone.
    """
    if _variable("CLAUDE_CODE_ENTRYPOINT") != "cli":
        return None
    session_id = _variable("CLAUDE_CODE_SESSION_ID")
    if not is_session_id(session_id) or not is_private(root):
        return None
    try:
        flags = posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
        fd = posix.open(session(root, session_id), flags)
    except OSError:
        return None
    try:
        key = posix.read(fd, 256).decode("ascii", "replace").strip()
    finally:
        posix.close(fd)
    # Damage leads to no other folder.
    return key if len(key) == 29 and key[:3] == "ag-" and key[3:].isalnum() else None


def _variable(name: str) -> str:
    """An environment variable. Where `os` is loaded, its `environ` counts: that one can be changed."""
    loaded = sys.modules.get("os")
    if loaded is not None:
        return str(loaded.environ.get(name, ""))
    value = posix.environ.get(name.encode(), b"")
    return value.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def _absolute(path: str) -> str:
    first, *parts = path.split("/")
    if first or not parts or any(part in ("", ".", "..") for part in parts):
        import os

        return os.path.abspath(path)
    return path


def _user() -> str:
    given = _variable("HOME").rstrip("/")
    if given:
        return given
    import os

    return os.path.expanduser("~")
