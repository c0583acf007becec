"""The model's side of the Messages API: an answer as one JSON document or as a stream of events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from .steps import Answer, Blocks, Say, Tool

# Small and constant: a large figure would make Claude Code compact the conversation.
_USAGE = {
    "input_tokens": 100,
    "output_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def message(answer: Answer, model: str) -> dict[str, Any]:
    """The answer as a whole assistant message."""
    parts = answer.parts if isinstance(answer, Blocks) else (answer,)
    calls_tool = any(isinstance(part, Tool) for part in parts)
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(part) for part in parts],
        "stop_reason": "tool_use" if calls_tool else "end_turn",
        "stop_sequence": None,
        "usage": dict(_USAGE),
    }


def stream(answer: Answer, model: str) -> bytes:
    """The same message as server-sent events."""
    events = _events(message(answer, model))
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def error(status: int) -> dict[str, Any]:
    """The body of an HTTP error."""
    kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(
        status, "api_error" if status >= 500 else "invalid_request_error"
    )
    return {"type": "error", "error": {"type": kind, "message": f"scripted failure {status}"}}


def _block(part: Say | Tool) -> dict[str, Any]:
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    return {
        "type": "tool_use",
        "id": f"toolu_{uuid.uuid4().hex[:24]}",
        "name": part.name,
        "input": dict(part.input),
    }


def _events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = block | {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": _USAGE["output_tokens"]}}
    yield {"type": "message_stop"}
