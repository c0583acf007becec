"""What the actions answer: frozen, and the same whether a person, a script or another program reads it.

Named tuples on purpose: making these classes takes 3 ms, as dataclasses 26, and pydantic would add 90 to every
`turnpost send`. They are built from records that were checked already; pydantic validates what comes from outside
(see `turnpost.config`, `turnpost.harness`). A field
whose name ends in `_` is called without it in JSON. Moments are RFC 3339 texts in UTC, or None for "not yet".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Recipient(NamedTuple):
    """What one recipient's part in a send looks like: how many wait for it with this one, and where it will enter."""

    name: str
    waiting: int
    boundary: str
    deaf: bool = False
    copy: int = 1


class Sent(NamedTuple):
    """A message that is durable. `replaced` counts the characters that no text may hold and that became U+FFFD.

    A `quiet` one resumes nobody who has stopped. `redacted` counts the secrets that were taken out.
    """

    id: str
    thread: str
    recipients: tuple[Recipient, ...]
    urgent: bool = False
    replaced: int = 0
    warnings: tuple[str, ...] = ()
    quiet: bool = False
    redacted: int = 0


class ReceiptView(NamedTuple):
    """How far a message has come with one recipient. `ended_at`: when it was cancelled or given up."""

    state: str
    queued_at: str | None = None
    claimed_at: str | None = None
    delivered_at: str | None = None
    read_at: str | None = None
    boundary: str | None = None
    session_id: str | None = None
    attempts: int = 0
    reason: str | None = None
    ended_at: str | None = None


class MessageView(NamedTuple):
    """A message, with its receipts under the names it was sent to.

    `choice` is the option an answer takes, `answers` the ids of the answers to it, and `pinned` says that it is a question
    to the person which the person has not answered. `redacted` counts the secrets that were taken out.
    """

    id: str
    sender: str
    to: tuple[str, ...]
    kind: str
    thread: str
    urgent: bool
    sent: str | None
    reply_to: str | None
    refs: tuple[str, ...]
    options: tuple[str, ...]
    body: str
    receipts: Mapping[str, ReceiptView]
    choice: int | None = None
    answers: tuple[str, ...] = ()
    pinned: bool = False
    redacted: int = 0


class Cancelled(NamedTuple):
    """What a cancel took back, and for whom it came too late, with the state there."""

    id: str
    cancelled: tuple[str, ...]
    too_late: Mapping[str, str]


class SubagentView(NamedTuple):
    """A subagent that runs inside an agent's session. `about` is what Claude Code calls its type."""

    name: str
    about: str
    waiting: int
    since: str | None


class AgentView(NamedTuple):
    """One agent as it is now. `deaf`: idle, and without a live waiter for longer than a change of waiters takes."""

    name: str
    kind: str
    state: str
    deaf: bool
    held: bool
    waiting: int
    session_id: str | None
    sessions: tuple[str, ...]
    parent: str | None
    mission: str | None
    pid: int | None
    cwd: str
    since: str | None
    mission_over: bool = False
    subagents: tuple[SubagentView, ...] = ()


class Agents(NamedTuple):
    """All agents, by name."""

    agents: tuple[AgentView, ...]


class Peer(NamedTuple):
    """One agent as another one sees it: `relation` is what it is to that one, `writable` whether that one may write."""

    name: str
    state: str
    waiting: int
    held: bool
    relation: str
    writable: bool
    mission: str | None = None


class Roster(NamedTuple):
    """Who `you` are, and the other agents."""

    you: str
    parent: str | None
    mission: str | None
    agents: tuple[Peer, ...]
    warnings: tuple[str, ...] = ()


class Waited(NamedTuple):
    """What a wait has seen: it is `done`, or this is how things stand. `over` says why it can never be done."""

    target: str
    for_: str
    done: bool
    state: str
    waited: float = 0.0
    message: MessageView | None = None
    agent: AgentView | None = None
    over: str | None = None


class Launched(NamedTuple):
    """An agent whose session has reported in. `redacted` counts the secrets taken out of its prompt and its instructions."""

    name: str
    session_id: str
    cwd: str
    parent: str | None = None
    mission: str | None = None
    worktree: bool = False
    warnings: tuple[str, ...] = ()
    redacted: int = 0


class Renamed(NamedTuple):
    """An agent's old name and its new one."""

    old: str
    name: str


class Held(NamedTuple):
    """An agent after a stop, a hold or a release."""

    name: str
    state: str
    held: bool
    waiting: int
    warnings: tuple[str, ...] = ()


class TakenBack(NamedTuple):
    """What the tool `cancel` did: it took back a message, or stopped a child."""

    cancelled: Cancelled | None = None
    stopped: Held | None = None


class Woken(NamedTuple):
    """An agent or a foreign session that was woken. `forked`: a foreign one goes on as a copy with its own id."""

    target: str
    forked: bool
    session_id: str | None = None
    sent: Sent | None = None
    message_id: str | None = None
    note: str | None = None


class Seat(NamedTuple):
    """One agent of a mission."""

    name: str
    state: str
    held: bool
    waiting: int


class MissionView(NamedTuple):
    """A mission, `running`, `finished` or `aborted`, and its agents. `told`: whom the notice of its abort was sent to.

    `redacted` counts the secrets that this command took out of the goal or the reason.
    """

    name: str
    state: str
    goal: str | None
    coordinator: str | None
    members: tuple[Seat, ...]
    started: str | None
    ended: str | None
    reason: str | None
    told: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    redacted: int = 0


class Missions(NamedTuple):
    """All missions, by name."""

    missions: tuple[MissionView, ...]


class PolicyVerdict(NamedTuple):
    """Whether one party may `write` to another, or `control` it, and why.

    `relation` is what `to` is to `from`; `rule` the number of the policy's rule that decided, None for the default;
    `notes` is what else would stand in the way of a message now.
    """

    from_: str
    to: str
    may: str
    allowed: bool
    relation: str
    rule: int | None
    reason: str
    notes: tuple[str, ...] = ()


class Inbox(NamedTuple):
    """What waits for the person: first the questions to be answered, seen before or not, then what was not seen yet.

    Each in the order received.
    """

    messages: tuple[MessageView, ...]


class Exported(NamedTuple):
    """What was exported: where to, how many messages and bytes, when the first and the last were sent."""

    file: str | None
    messages: int
    bytes: int
    first: str | None
    last: str | None
    warnings: tuple[str, ...] = ()


class InstalledFile(NamedTuple):
    """What was done to one file."""

    path: str
    action: str
    changed: bool
    diff: str
    parts: tuple[str, ...] = ()


class ThreadLine(NamedTuple):
    """One thread in a list. `kind`: `inbox`, `mission`, `pair` (of those concerned) or `named`."""

    name: str
    kind: str
    messages: int
    pinned: int
    last: str | None
    last_id: str
    last_from: str
    last_body: str


class Threads(NamedTuple):
    """The threads the caller may see; the one that was written to last comes first."""

    threads: tuple[ThreadLine, ...]


class Thread(NamedTuple):
    """A thread's messages, or those that were searched for, oldest first; `older` fitting ones were left out."""

    name: str
    messages: tuple[MessageView, ...]
    older: int = 0


class Found(NamedTuple):
    """The messages of all threads that were searched for, oldest first; `older` fitting ones were left out."""

    messages: tuple[MessageView, ...]
    older: int = 0


class Entry(NamedTuple):
    """One line of the audit log. `details` is what stands there besides, by its name."""

    at: str
    action: str
    from_: str | None
    to: str | None
    direction: str | None
    message: str | None
    details: Mapping[str, object]


class Log(NamedTuple):
    """Lines of the audit log, oldest first; `older` fitting ones were left out."""

    entries: tuple[Entry, ...]
    older: int = 0


class Summary(NamedTuple):
    """What a thread comes to, in a model's words, and what asking cost.

    `messages` were read, `older` ones left out. `cost_usd` is None when Claude Code did not say.
    """

    thread: str
    text: str
    messages: int
    older: int
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    seconds: float


class Installed(NamedTuple):
    """What was done to a settings file and to the file that names the tool server, or would be with `dry_run`."""

    path: str
    scope: str
    action: str
    changed: bool
    dry_run: bool
    diff: str
    files: tuple[InstalledFile, ...] = ()
    warnings: tuple[str, ...] = ()


class CoordinatorView(NamedTuple):
    """Whether the coordinator of this home runs, and since when. After a stop `pid` and `since` are those of the one that was ended."""

    running: bool
    pid: int | None
    since: str | None


class Completion(NamedTuple):
    """A shell's completion script."""

    shell: str
    script: str
