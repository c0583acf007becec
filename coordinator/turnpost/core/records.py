"""The records on disk, as types. At run time they are plain dictionaries: `typing` costs a hook more than its work."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NotRequired, TypedDict

    Boundary = Literal["stop-block", "rewake", "next-request", "prompt", "resume", "subagent-stop", "held"]
    Doing = Literal["starting", "working", "blocked", "idle", "stopped", "lost"]
    Kind = Literal["managed", "registered", "person", "merged", "subagent"]
    Progress = Literal["queued", "claimed", "delivered", "read", "cancelled", "undeliverable"]

    class Party(TypedDict):
        """Who sends or receives: the person, an agent, one of its subagents (`sub`), or turnpost itself.

        `key` is the mailbox: an agent's key, and for a subagent `KEY~SUB`. `kin` is in a recipient what its sender is to it.
        """

        kind: Literal["person", "agent", "system"]
        name: str
        key: str
        sub: NotRequired[str]
        kin: NotRequired[Literal["parent", "child"]]

    class Message(TypedDict):
        """What was sent. Written once, never changed.

        `origin` is the id of the message that began the exchange and `hops` how many replies lie between. A `quiet` one
        does not resume a stopped agent. `redacted` counts the secrets taken out of the body. `choice` is the number of the
        question's option that an answer takes. `among` are those whose thread it is in, when they are not just its sender and
        recipients: an answer by somebody else is in the thread of its question.
        """

        v: int
        id: str
        sender: Party
        to: list[Party]
        kind: str
        thread: str
        body: str
        urgent: bool
        sent: float
        reply_to: str | None
        refs: list[str]
        options: list[str]
        origin: NotRequired[str]
        hops: NotRequired[int]
        quiet: NotRequired[bool]
        redacted: NotRequired[int]
        choice: NotRequired[int]
        among: NotRequired[list[Party]]

    class Receipt(TypedDict):
        """How far one message has come with one recipient. Where the file lies is the truth, this is the detail.

        `ended_at`: when it was cancelled, or given up as undeliverable.
        """

        v: int
        id: str
        state: Progress
        queued_at: float
        claimed_at: float | None
        delivered_at: float | None
        read_at: float | None
        ended_at: NotRequired[float]
        boundary: Boundary | None
        session_id: str | None
        attempts: int
        reason: NotRequired[str | None]
        reminders: NotRequired[int]
        nudges: NotRequired[int]
        claim: NotRequired[Claim | None]

    class Packed(TypedDict):
        """A message in the archive, with its final receipts by mailbox and the ids of what was sent in reply to it."""

        v: int
        message: Message
        receipts: dict[str, Receipt]
        replies: list[str]

    class Claim(TypedDict):
        """Who carries a message, and how the proof of its arrival is found."""

        by: str
        pid: int
        token: str | None
        until: float
        transcript: str
        offset: int

    class Agent(TypedDict):
        """Who an agent is. Changes with a rename, a relink, a launch; not with what it does.

        `about` is a subagent's type, as Claude Code calls it.
        """

        v: int
        key: str
        name: str
        kind: Kind
        created: float
        cwd: str
        root: str
        sessions: list[str]
        parent: str | None
        mission: str | None
        instructions: str | None
        background: bool
        retire: list[str]
        about: NotRequired[str]

    class State(TypedDict):
        """What an agent's session does, as its hooks last saw it. `mode` is Claude Code's permission mode.

        `due`: this turn's last words are to be reported to the parent. `holding`: until when, at most, the turn's end is held.
        """

        v: int
        doing: Doing
        since: float
        session_id: str
        pid: int
        token: str | None
        transcript: str
        cwd: str
        stops: int
        source: str
        traced: NotRequired[bool]
        mode: NotRequired[str]
        due: NotRequired[bool]
        holding: NotRequired[float]
        resume: NotRequired[Resume | None]

    class Resume(TypedDict):
        """A resume under way, with the process of its command, or the ones that failed."""

        at: float
        tries: int
        next: float
        error: str | None
        pending: bool
        pid: NotRequired[int]
        token: NotRequired[str | None]

    class Report(TypedDict):
        """A child's last words of a turn, on their way to its parent. `id` is that of the message they become."""

        v: int
        id: str
        text: str
        at: float

    class Mission(TypedDict):
        """A common task. Its members are the agents whose `mission` is its name; `coordinator` is an agent's key."""

        v: int
        name: str
        state: Literal["running", "finished", "aborted"]
        coordinator: str | None
        goal: str | None
        started: float
        ended: float | None
        reason: str | None

    class Waiter(TypedDict):
        """The active waiter of an agent, with the FIFO that wakes it."""

        v: int
        id: str
        pid: int
        token: str | None
        session_id: str
        harness_pid: int
        since: float
