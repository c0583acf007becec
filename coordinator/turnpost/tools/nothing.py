"""The tool server of a session that is no agent, such as `claude -p`: it is there at once, has nothing, and is gone at once.

Without the SDK, whose import alone takes longer than the rest of such a run. A server that ended instead would be named
to the model as one that failed.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from turnpost import __version__


def serve() -> None:
    """Answer on stdin and stdout until stdin ends or Claude Code interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        document = answer(line)
        if document is not None:
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()


def answer(line: bytes) -> dict[str, Any] | None:
    """What to say to one message of the protocol; None for a notification and for what is none."""
    try:
        request = json.loads(line)
        request_id, method = request["id"], request["method"]
    except (ValueError, KeyError, TypeError):
        return None
    document: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
    if method == "initialize":
        version = request.get("params", {}).get("protocolVersion", "2025-06-18")
        server = {"name": "turnpost", "version": __version__}
        return {**document, "result": {"protocolVersion": version, "capabilities": {}, "serverInfo": server}}
    if method == "ping":
        return {**document, "result": {}}
    return {**document, "error": {"code": -32601, "message": f"no {method} here"}}
