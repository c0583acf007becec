"""Who speaks: what the process tree says, whatever flags and variables claim."""

from __future__ import annotations

import os

from turnpost.core import procs, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Agent


class Speaker:
    """The caller of a command: a person, an agent, or (`foreign`) a Claude session that turnpost does not know."""

    __slots__ = ("agent", "foreign_pid")

    def __init__(self, agent: Agent, foreign_pid: int = 0) -> None:
        self.agent = agent
        self.foreign_pid = foreign_pid

    @property
    def is_person(self) -> bool:
        """Whether no Claude session is among the caller's ancestors."""
        return self.agent["kind"] == "person" and not self.foreign_pid


def who(root: str, pid: int | None = None) -> Speaker:
    """The speaker behind a process. The nearest Claude session above it decides.

    The shell of a session's tool only tells that there is one: it inherits the session's variables. Where its session
    cannot be found any more, as for a process that was left behind, the speaker is nobody we know.
    """
    person = registry.load_agent(root, registry.PERSON) or registry.unsaved_person()
    own = pid or os.getpid()
    inside = own if procs.environment_has(own, b"CLAUDECODE=1") else 0
    for ancestor in procs.ancestors(own):
        key = registry.key_of_process(root, ancestor)
        if key and (agent := registry.load_agent(root, key)):
            return Speaker(agent)
        if _is_session(ancestor):
            return Speaker(person, ancestor)
        if not inside and procs.environment_has(ancestor, b"CLAUDECODE=1"):
            inside = ancestor
    return Speaker(person, inside)


def _is_session(pid: int) -> bool:
    """Whether a process is Claude Code itself."""
    words = procs.command(pid)
    programs = {os.path.basename(procs.executable(pid)), *(os.path.basename(word) for word in words[:2])}
    return "claude" in programs
