"""Who speaks: what the process tree says, whatever flags and variables claim."""

from __future__ import annotations

import os

from turnpost.core import files, home, procs, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Agent

STAMP = "subagent"
"""The field of a tool call in which a hook says which subagent calls."""


class Speaker:
    """The caller of a command: a person, an agent or one of its subagents, or (`foreign`) a Claude session that turnpost does not know."""

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
    below = [own]
    for ancestor in procs.ancestors(own):
        key = registry.key_of_process(root, ancestor)
        if key and (agent := registry.load_agent(root, key)):
            return Speaker(_subagent(root, key, below) or agent)
        below.append(ancestor)
        if _is_session(ancestor):
            return Speaker(person, ancestor)
        if not inside and procs.environment_has(ancestor, b"CLAUDECODE=1"):
            inside = ancestor
    return Speaker(person, inside)


def as_subagent(root: str, speaker: Speaker, sub: str) -> Speaker:
    """The same caller when its call bears a subagent's stamp, which a hook puts there and takes from every other call.

    Raises Refused for a stamp that is no running subagent's of this agent.
    """
    from turnpost.core import subagents
    from turnpost.core.errors import Refused

    key = subagents.key_of(speaker.agent["key"], sub)
    found = subagents.load(root, key) if subagents.is_id(sub) and subagents.lives(root, key) else None
    if found is None:
        raise Refused(
            f"refused by rule 'not-allowed': no subagent {sub!a} of {speaker.agent['name']} runs",
            rule="not-allowed", caller=speaker.agent["name"],
        )  # fmt: skip
    return Speaker(found)


def _subagent(root: str, key: str, pids: list[int]) -> Agent | None:
    """The subagent of this agent that runs one of these processes, if it is none of the agent's own."""
    if not files.exists(home.running(root, key)):
        return None
    from turnpost.core import subagents

    return subagents.speaking(root, key, pids)


def _is_session(pid: int) -> bool:
    """Whether a process is Claude Code itself."""
    words = procs.command(pid)
    programs = {os.path.basename(procs.executable(pid)), *(os.path.basename(word) for word in words[:2])}
    return "claude" in programs
