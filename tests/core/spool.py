"""A spool in a test: agents without sessions, and a person who sends."""

from __future__ import annotations

import os
from pathlib import Path

from turnpost.core import files, home, mailbox, outbox, procs, registry, store
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Message, Receipt, State


def make(folder: Path) -> str:
    """An empty spool, as a path."""
    root = str(folder / "state")
    registry.prepare(root)
    return root


def agent(root: str, name: str) -> Agent:
    """An agent that has a name and no session yet."""
    return registry.create_agent(root, name, kind="registered", cwd="/tmp", project="/tmp")


def state(root: str, key: str, session_id: str, transcript: str, *, pid: int = 0, **changed: object) -> State:
    """Record an idle session of an agent; this test's own process stands in for the harness."""
    pid = pid or os.getpid()
    made: State = {
        "v": 1, "doing": "idle", "since": 0.0, "session_id": session_id, "pid": pid, "token": procs.token(pid),
        "transcript": transcript, "cwd": "", "stops": 0, "source": "startup", "resume": None,
    }  # fmt: skip
    made.update(changed)  # type: ignore[typeddict-item]
    store.save_state(root, key, made)
    return made


def message(body: str, *agents: Agent, urgent: bool = False) -> Message:
    """A message of the person's, not sent yet."""
    return outbox.compose(
        registry.party(registry.unsaved_person()),
        [registry.party(one) for one in agents],
        body,
        urgent=urgent,
    )


def send(root: str, body: str, *agents: Agent, urgent: bool = False) -> str:
    """Send as the person; the message's id."""
    sent = message(body, *agents, urgent=urgent)
    outbox.send(root, sent, agents)
    return sent["id"]


def put(root: str, message: Message, one: Agent) -> None:
    """Add a message to a queue without a bell; the mailbox's lock is the caller's."""
    box = mailbox.Mailbox(root, one["key"])
    folder = mailbox.message_folder(root, message["id"])
    files.mkdir(folder)
    with files.Linked(f"{folder}/message.json", store.pack(message)) as record:
        record.link(box.place(message, box.waiting()))


def receipt(root: str, one: Agent, message_id: str) -> Receipt:
    """How far a message has come. It must be known."""
    found = mailbox.Mailbox(root, one["key"]).receipt(message_id)
    assert found is not None, f"{message_id} is lost"
    return found


def bodies(root: str, one: Agent) -> list[str]:
    """What waits or is on its way, in order."""
    box = mailbox.Mailbox(root, one["key"])
    names = sorted([*box.waiting(), *box.in_flight()])
    found = [mailbox.load_message(root, mailbox.entry_id(name)) for name in names]
    return [one["body"] for one in found if one is not None]


def tree(root: str) -> dict[str, bytes]:
    """Every file of a spool with its bytes, without locks and temporary files, which hold no mail."""
    found: dict[str, bytes] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.isfile(path) and not name.endswith("lock"):
                found[path.removeprefix(root)] = files.read(path)
    return found


def log(root: str) -> str:
    """What failing hooks wrote."""
    try:
        lines = files.read(home.log(root)).decode().splitlines(keepends=True)
    except FileNotFoundError:
        return ""
    return "".join(line for line in lines if '"hook-failed"' in line)
