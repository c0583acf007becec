"""The tools on the official SDK: schemas, annotations, and each call on a thread of its own, so that none holds up another."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import anyio
from anyio import from_thread, to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from turnpost import __version__
from turnpost.tools import arguments, calls, shapes

INSTRUCTIONS = (
    "Messages between Claude Code agents, and to the person. A message you send is delivered whatever its recipient "
    "does now; what is sent to you enters your conversation by itself."
)


def serve(root: str) -> None:
    """Serve the tools on stdin and stdout until stdin ends."""
    anyio.run(_serve, root)


def make(root: str) -> Server[Any]:
    """The server of a home."""

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in calls.TOOLS])

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        # A call that was cancelled, or whose session has ended, is left at its next look.
        work = partial(calls.answer, root, params.name, params.arguments or {}, from_thread.check_cancelled)
        return _result(await to_thread.run_sync(work))

    return Server(
        "turnpost",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _serve(root: str) -> None:
    server = make(root)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _described(tool: calls.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=arguments.schema(tool.takes),
        output_schema=shapes.schema(tool.gives),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.undoes,
            idempotent_hint=tool.repeats,
            open_world_hint=False,
        ),
    )


def _result(answer: calls.Answer) -> types.CallToolResult:
    """A failure is text only: a client may check what is structured against the schema of results."""
    text = json.dumps(answer.document, default=str)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=None if answer.failed else answer.document,
        is_error=answer.failed,
    )
