"""One request to the model, as evidence of what an agent had in its conversation at that moment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

_Block: TypeAlias = Mapping[str, object]

TAG = re.compile(r"\[\[lab:([A-Za-z0-9_.-]+)\]\]")


@dataclass(frozen=True)
class ModelRequest:
    """What Claude Code sent to `/v1/messages`.

    `index` counts the requests of one model from 0. `monotonic` and `wall` are seconds (`time.monotonic`,
    `time.time`) at arrival. `headers` have lower-case names.
    """

    index: int
    monotonic: float
    wall: float
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    name: str | None = None
    """The agent it belongs to: by the tag in its conversation, else by an earlier request of the same."""

    @property
    def side(self) -> bool:
        """Whether this is a call beside the conversation (a title, a summary): it offers no tools."""
        return not self.body.get("tools")

    @cached_property
    def session_id(self) -> str | None:
        """The Claude Code session, from its header or from the request's metadata."""
        header = self.headers.get("x-claude-code-session-id")
        return header or _metadata_session(self.body)

    @property
    def subagent_id(self) -> str | None:
        """The in-process subagent that asks, None for the session's main conversation."""
        return self.headers.get("x-claude-code-agent-id")

    @property
    def conversation(self) -> str:
        """One key for each conversation: the session, and in it the subagent."""
        session = self.session_id or "unknown"
        return f"{session}/{self.subagent_id}" if self.subagent_id else session

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Every text the model would read, in order, as (role, text).

        Roles are `system`, `user`, `assistant`, and `tool` for what stands in a tool result. What the model
        itself passed to a tool is no text here: a sender's own command line must not look like a delivery.
        """
        found = [("system", text) for text in _content(self.body.get("system"))]
        for message in self.body.get("messages", ()):
            found.extend(_message_texts(message))
        return tuple(found)

    @cached_property
    def last_user_texts(self) -> tuple[str, ...]:
        """The texts of the last `user` message with its tool results; a `system` message may follow it."""
        users = [message for message in self.body.get("messages", ()) if message.get("role") == "user"]
        return tuple(text for _, text in _message_texts(users[-1])) if users else ()

    @cached_property
    def tag(self) -> str | None:
        """The NAME of the first `[[lab:NAME]]` that was given to this conversation.

        Only system and user texts count: the parent of a tagged subagent has the subagent's tag in a call and
        in its result.
        """
        for role, text in self.texts:
            match = TAG.search(text) if role in ("system", "user") else None
            if match:
                return match[1]
        return None

    def count(self, needle: str) -> int:
        """How often `needle` stands in the texts, all roles together."""
        return sum(text.count(needle) for _, text in self.texts)

    def has(self, needle: str) -> bool:
        """Whether `needle` stands in any text."""
        return any(needle in text for _, text in self.texts)


def _message_texts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    role = str(message.get("role", "user"))
    content: Any = message.get("content")
    blocks = cast("list[object]", content if isinstance(content, list) else [content])
    for block in blocks:
        for text in _content(block):
            yield ("tool" if _is_result(block) else role), text


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and cast("_Block", block).get("type") == "tool_result"


def _content(content: object) -> Iterator[str]:
    """The texts in a content value: a string, a block (a tool result holds a content again), or a list."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in cast("list[object]", content):
            yield from _content(item)
    elif isinstance(content, dict):
        block = cast("_Block", content)
        text = block.get("text")
        if block.get("type") == "tool_result":
            yield from _content(block.get("content"))
        elif isinstance(text, str):
            yield text


def _metadata_session(body: Mapping[str, Any]) -> str | None:
    try:
        found = json.loads(body["metadata"]["user_id"])["session_id"]
    except (KeyError, TypeError, ValueError):
        return None
    return found if isinstance(found, str) else None
