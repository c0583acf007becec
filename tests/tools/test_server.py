"""The server as Claude Code runs it: a process, spoken to by the SDK's own client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from tests.actions.fakes import FakeHome
from turnpost.actions import sending
from turnpost.core import attach, mailbox
from turnpost.core import home as places
from turnpost.install import servers

if TYPE_CHECKING:
    from turnpost.core.records import Agent

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture
def me(home: FakeHome) -> Agent:
    """This process is the session of the agent `alpha`: what it starts speaks as alpha."""
    start = attach.Start(str(uuid.uuid4()), "startup", os.getpid(), name="alpha", cwd=str(home.folder))
    return attach.attach(home.root, start)


def talk(root: str, what: Callable[[ClientSession], Awaitable[None]], cwd: Path | None = None) -> None:
    """Talk to a server that was started as `install` and `launch` register it."""

    async def session() -> None:
        entry = servers.entry()
        environment = {"TURNPOST_HOME": root, "PATH": os.environ["PATH"]} | python_path()
        words = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment, cwd=cwd)
        async with stdio_client(words) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
            await client.initialize()
            await what(client)

    anyio.run(session)


def python_path() -> dict[str, str]:
    """A source tree that is not installed is found through this."""
    found = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": found} if found else {}


async def call(client: ClientSession, name: str, **given: Any) -> Any:
    """A tool's result, which must be one."""
    answer = await client.call_tool(name, given)
    assert not answer.is_error, answer.content
    return answer.structured_content


def test_the_tools_say_what_they_change(home: FakeHome, me: Agent) -> None:
    async def look(client: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [f"mcp__turnpost__{name}" for name in tools] == list(servers.TOOLS)
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == {"list", "wait"}
        assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == {"cancel"}
        assert all(hint and hint.open_world_hint is False for hint in hints.values())
        assert all(tool.output_schema and tool.description and tool.title for tool in tools.values())

    talk(home.root, look)


def test_the_server_speaks_as_the_session_that_started_it(home: FakeHome, me: Agent) -> None:
    """Whatever its variables claim, and although its folder has packages of the names it needs."""
    home.agent("beta")
    for name in ("mcp", "anyio", "turnpost"):
        (home.folder / name).mkdir()
        (home.folder / name / "__init__.py").write_text("raise SystemExit('not this one')")

    async def send(client: ClientSession) -> None:
        sent = await call(client, "send", to="person", body="hello")
        message = mailbox.load_message(home.root, sent["id"])
        assert message is not None
        assert (message["sender"]["name"], message["sender"]["key"]) == ("alpha", me["key"])
        assert (await call(client, "list"))["you"] == "alpha"

    talk(home.root, send, home.folder)


def test_a_refusal_is_a_tool_error_with_rule_and_numbers(home: FakeHome, me: Agent) -> None:
    async def refused(client: ClientSession) -> None:
        answer = await client.call_tool("send", {"to": "person", "body": "x" * 8001})
        assert answer.is_error
        assert answer.structured_content is None
        (block,) = answer.content
        error = json.loads(block.text)["error"]  # type: ignore[union-attr]
        assert (error["rule"], error["bytes"], error["limit"]) == ("too-long", 8001, 8000)

    talk(home.root, refused)


def test_a_wait_holds_up_no_other_call(home: FakeHome, me: Agent) -> None:
    sent = sending.send(home.root, ["person"], "hello", speaker=home.speaker(me))
    order: list[str] = []

    async def both(client: ClientSession) -> None:
        async def wait() -> None:
            await call(client, "wait", target=sent.id, timeout=3)
            order.append("wait")

        async def send() -> None:
            await anyio.sleep(0.3)
            await call(client, "send", to="person", body="meanwhile")
            order.append("send")

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(send)

    talk(home.root, both)
    assert order == ["send", "wait"]


def test_the_server_ends_with_its_session_although_a_call_waits(home: FakeHome, me: Agent) -> None:
    sent = sending.send(home.root, ["person"], "hello", speaker=home.speaker(me))
    entry = servers.entry()
    server = subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "TURNPOST_HOME": home.root},
    )  # fmt: skip
    with server:
        assert server.stdin
        assert server.stdout
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        wait = {"name": "wait", "arguments": {"target": sent.id, "timeout": 30}}
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": wait},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
            if message.get("id") == 1:
                assert json.loads(server.stdout.readline())["id"] == 1
        time.sleep(0.5)
        begin = time.monotonic()
        server.stdin.close()
        assert server.wait(20) == 0
        assert time.monotonic() - begin < 15


def test_the_command_line_loads_nothing_of_the_server() -> None:
    """`turnpost send` must not pay for the SDK."""
    code = "import sys; import turnpost.cli.messages, turnpost.actions.sending; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert places.home()


def test_a_session_that_is_no_agent_gets_no_tools_and_loads_no_sdk(home: FakeHome) -> None:
    entry = servers.entry()
    env = {**os.environ, "TURNPOST_HOME": home.root, "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
    ]
    ran = subprocess.run(
        [entry["command"], "-X", "importtime", *entry["args"]],
        input="".join(json.dumps(one) + "\n" for one in asked) + "no json\n[]\n",
        env=env, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert ran.returncode == 0
    first, second, third = map(json.loads, ran.stdout.splitlines())
    assert (first["id"], first["result"]["capabilities"]) == (1, {})
    assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert (third["id"], third["error"]["code"]) == (3, -32601)
    assert not re.search(r"\| +(mcp|pydantic|anyio)\b", ran.stderr)
