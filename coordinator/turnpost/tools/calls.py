"""The tools and what each does: a call is checked, done by the same action as the command of that name, and answered.

Who speaks is found anew for every call: the server is a child of its session's process, and the agent of that process
may have changed since the last one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from turnpost.actions import documents, people, receipts, roster, sending, stopping, waiting
from turnpost.actions.audited import refusing
from turnpost.actions.results import Cancelled, Held, Roster, Sent, TakenBack, Waited
from turnpost.core import ids, sender
from turnpost.core.errors import Refused, UsageError
from turnpost.core.sender import Speaker
from turnpost.tools import arguments

Pulse = Callable[[], None]
"""Called now and then by a call that waits; raises when nobody wants its answer any more."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and on which home."""

    root: str
    speaker: Speaker
    pulse: Pulse


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to: a result's document, or a failure with its rule and its numbers."""

    document: dict[str, Any]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `reads`: it changes nothing; `undoes`: it takes something away; `repeats`: twice does what once does."""

    name: str
    title: str
    description: str
    takes: type[arguments.Arguments]
    gives: type
    run: Callable[[Call, Any], object]
    reads: bool = False
    undoes: bool = False
    repeats: bool = False


def answer(
    root: str, name: str, given: Mapping[str, Any], pulse: Pulse, speaker: Speaker | None = None
) -> Answer:
    """Do one call. Nothing is raised but what `pulse` raises: whatever fails is an answer."""
    try:
        tool = _tool(name)
        words = dict(given)
        call = Call(root, _caller(root, name, words, speaker), pulse)
        return Answer(documents.plain(tool.run(call, _checked(tool, words))))
    except Exception as error:  # noqa: BLE001 - the last guard: a bug of ours must not end the server
        return Answer(documents.failure(documents.known(error)), failed=True)


def _list(call: Call, _given: arguments.List) -> Roster:
    return roster.roster(call.root, speaker=call.speaker)


def _send(call: Call, given: arguments.Send) -> Sent:
    names = [name.strip() for name in given.to.split(",") if name.strip()]
    return sending.send(
        call.root, names, given.body, kind=given.kind, urgent=given.urgent, thread=given.thread,
        reply_to=given.reply_to, refs=given.refs, options=given.options, wake=given.wake, speaker=call.speaker,
    )  # fmt: skip


def _wait(call: Call, given: arguments.Wait) -> Waited:
    return waiting.wait(
        call.root, given.target, given.for_, timeout=given.timeout, speaker=call.speaker,
        on_look=lambda _seen: call.pulse(),
    )  # fmt: skip


def _reply(call: Call, given: arguments.Reply) -> Sent:
    return sending.reply(call.root, given.id, given.body, wake=given.wake, speaker=call.speaker)


def _cancel(call: Call, given: arguments.Cancel) -> TakenBack:
    cancelled: Cancelled | None = None
    stopped: Held | None = None
    if ids.is_id(given.target, "msg"):
        cancelled = receipts.cancel(call.root, given.target, speaker=call.speaker)
    else:
        stopped = stopping.stop(call.root, given.target, speaker=call.speaker)
    return TakenBack(cancelled, stopped)


def _tool(name: str) -> Tool:
    for tool in TOOLS:
        if tool.name == name:
            return tool
    raise UsageError(f"there is no tool '{name}'; there are {', '.join(tool.name for tool in TOOLS)}")


def _caller(root: str, tool: str, given: dict[str, Any], speaker: Speaker | None) -> Speaker:
    """The agent, or the subagent of its whose call a hook has stamped: no schema names the stamp, and the hook takes it
    from every call of the agent's own. It is taken out here; one that is false is refused.
    """
    stamp = given.pop(sender.STAMP, None)
    about = next((str(given[field]) for field in ("to", "target", "id") if given.get(field)), "")
    agent = _agent(root, speaker)
    if stamp is None:
        return agent
    with refusing(root, tool, [name.strip() for name in about.split(",")], agent):
        return sender.as_subagent(root, agent, str(stamp))


def _agent(root: str, given: Speaker | None) -> Speaker:
    """The agent that calls. A program is never the person: what no session of ours has started is refused."""
    speaker = people.caller(root, given or sender.who(root))
    if speaker.is_person:
        raise Refused(
            "refused by rule 'foreign': these tools are an agent's, and this server was started by no session that "
            "turnpost knows; a person uses the command line",
            rule="foreign", pid=os.getppid(),
        )  # fmt: skip
    return speaker


def _checked(tool: Tool, given: Mapping[str, Any]) -> arguments.Arguments:
    try:
        return tool.takes.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        names = ", ".join(arguments.schema(tool.takes)["properties"]) or "nothing"
        raise UsageError(f"{tool.name}: {where}: {first['msg']}; it takes {names}") from error


TOOLS = (
    Tool(
        "list", "List agents",
        "Lists who you are and all other agents: what each does, how much mail waits for it, what it is to you, and "
        "whether you may write to it.",
        arguments.List, Roster, _list, reads=True, repeats=True,
    ),
    Tool(
        "send", "Send a message",
        "Sends a message to another agent or to the person. Returns when it is safe on disk and never waits for the "
        "recipient, who reads it at the next chance its session gives. An answer comes to you by itself, as a message: "
        "end your turn when there is nothing else to do.",
        arguments.Send, Sent, _send,
    ),
    Tool(
        "wait", "Wait a moment",
        "Waits until a message was read or answered, or an agent is idle or has written to you: 1 second unless you "
        "ask for more, at most 30. Returns what came, or how things stand now (`done` is false).",
        arguments.Wait, Waited, _wait, reads=True, repeats=True,
    ),
    Tool(
        "reply", "Answer a message",
        "Answers a message you were sent: to its sender, in its thread.",
        arguments.Reply, Sent, _reply,
    ),
    Tool(
        "cancel", "Take back",
        "Takes back a message of yours that has not been delivered yet. Given the name of a child of yours, stops "
        "that child's session, which can take some seconds.",
        arguments.Cancel, TakenBack, _cancel, undoes=True, repeats=True,
    ),
)  # fmt: skip
"""All tools, in the order they are listed."""
