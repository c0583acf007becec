"""What happened, one JSON line each, in `$TURNPOST_HOME/turnpost.log`: the one writer, for commands, hooks and coordinator.

A line says what was done, by whom, to whom and in which direction. It never holds a body. That it cannot be written,
on a full disk say, costs the line and nothing else.
"""

from __future__ import annotations

from turnpost.core import clock, files, home, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Agent, Message, Party

LIMIT = 4 * 1024 * 1024
"""Bytes of one log file; there are at most two."""
ACTIONS = (
    "send", "refusal", "claim", "delivery", "read", "requeue", "cancel", "undeliverable", "hold", "release", "stop",
    "wake", "launch", "rename", "mission", "resume", "resume-failed", "relink", "retire", "deaf", "found-idle", "found-blocked", "fork",
    "coordinator-start", "coordinator-stop", "send-recovered", "alert-failed", "report-dropped", "archive", "archive-drop", "trouble", "hook-failed",
)  # fmt: skip
"""All there are, those of messages first."""
STEPS = {
    "claimed": "claim", "delivered": "delivery", "read": "read", "queued": "requeue", "cancelled": "cancel",
    "undeliverable": "undeliverable",
}  # fmt: skip
"""What a receipt's new state is called here."""


def write(root: str, action: str, **context: object) -> None:
    """Add a line. In a home that is not there nothing is made for it."""
    try:
        line = store.pack({"at": clock.rfc3339(clock.now()), "action": action, **context})
        files.append(home.log(root), line + b"\n", LIMIT)
    except (OSError, TypeError, ValueError):
        pass


def moved(root: str, action: str, message: Message | None, key: str, **context: object) -> None:
    """Add a line about a message and one of its recipients, the mailbox `key`."""
    if message is None:  # it cannot be read, but what became of it is known
        write(root, action, agent=key, **context)
        return
    sender = message["sender"]
    to = next((party["name"] for party in message["to"] if party["key"] == key), key)
    write(
        root, action, **_between(root, sender, key, to), message=message["id"], kind=message["kind"], **context
    )  # fmt: skip


def acted(root: str, action: str, actor: Agent, agent: Agent, **context: object) -> None:
    """Add a line about what the person or an agent did to an agent."""
    party: Party = {
        "kind": "person" if actor["kind"] == "person" else "agent", "name": actor["name"], "key": actor["key"],
    }  # fmt: skip
    write(root, action, **_between(root, party, agent["key"], agent["name"]), **context)


def direction(root: str, sender: Party, key: str) -> str:
    """Which way something goes: `parent → agent`, `agent → parent`, `person → agent`, `agent → person`, `agent → agent`."""
    mine = sender["key"]
    there = "person" if key == "person" else "subagent" if "~" in key else "agent"
    if sender["kind"] != "agent":
        return f"{'person' if sender['kind'] == 'person' else 'turnpost'} → {there}"
    here = "subagent" if "~" in mine else "agent"
    if there != "person" and parent(root, key) == mine:
        return f"parent → {there}"
    if parent(root, mine) == key:
        return f"{here} → parent"
    return f"{here} → {there}"


def parent(root: str, key: str) -> str | None:
    """The key of an agent's parent; a subagent's is its agent."""
    owner, tilde, _ = key.partition("~")
    if tilde:
        return owner
    try:
        record = store.if_known(store.load, home.agent(root, key) + "/agent.json") or {}
    except OSError:  # what is told of has been done: that its direction is unknown must not fail it
        return None
    found = record.get("parent")
    return found if isinstance(found, str) else None


def _between(root: str, sender: Party, key: str, to: str) -> dict[str, object]:
    return {
        "from": sender["name"], "to": to, "direction": direction(root, sender, key), "by": sender["key"], "agent": key,
    }  # fmt: skip
