"""`mcp`."""

from __future__ import annotations

import os

from turnpost.actions import left_out
from turnpost.cli import base


@base.command(example="turnpost mcp")
@left_out.noted()  # each answer has its own
def mcp() -> None:
    """Be a tool server for one agent, on stdin and stdout.

    Claude Code starts it in each session in which `turnpost install` or `turnpost launch` has registered it. The tools
    are list, send, wait, reply and cancel, and speak as the agent whose session has started the server. Under
    `claude -p`, which is no agent, there are no tools.
    """
    if os.environ.get("CLAUDE_CODE_ENTRYPOINT", "cli") != "cli":
        from turnpost.tools import nothing

        nothing.serve()
        return
    from turnpost.tools import server

    server.serve(base.root())
