"""What the hooks do for an in-process subagent: it gets its own mail, at its own boundaries, and never its agent's.

Each function is told the agent's key and the hook's input, and answers as those of `deliver` do.
"""

from __future__ import annotations

from turnpost.core import (
    commands,
    deliver,
    files,
    home,
    mailbox,
    render,
    rules,
    sender,
    store,
    subagents,
)
from turnpost.core.errors import LockBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnpost.core.deliver import Answer, Payload
    from turnpost.core.records import Boundary, State

TOOLS = "mcp__turnpost__"
"""How Claude Code calls the tools of our server."""


def at_start(root: str, key: str, payload: Payload) -> None:
    """SubagentStart: make it known."""
    about, sub, state = payload.get("agent_type"), payload.get("agent_id"), store.load_state(root, key)
    if not about or not subagents.is_id(sub) or state is None or not _is_current(state, payload):
        return
    state["transcript"] = str(payload.get("transcript_path") or state["transcript"])
    subagents.start(
        root, subagents.key_of(key, sub), about=str(about), state=state,
        transcript=_transcript(state["transcript"], sub),
    )  # fmt: skip


def at_tool_batch(root: str, key: str, payload: Payload) -> Answer | None:
    """PostToolBatch: its commands have ended, and all that waits for the subagent comes with its next request."""
    own = _own(root, key, payload)
    if own is None:
        return None
    commands.drop(home.agent(root, own))
    box = mailbox.Mailbox(root, own)
    with box.lock():
        state = store.load_state(root, own)
        if state is None or not _is_current(state, payload):
            return None
        state["stops"] = 0  # a tool has run: the harness counts blocks anew
        store.save_state(root, own, state)
        box.settle(state)
        blocks = _claim(root, box, state, "next-request", rules.CONTEXT_UNITS)
    subagents.tidy(root, key)
    return deliver.context("PostToolBatch", blocks)


def at_stop(root: str, key: str, payload: Payload) -> Answer | None:
    """SubagentStop: what waits keeps it going, and it is asked for its whole report again; else it has ended.

    One that never started for us, or has no type (a compaction is one), is left alone.
    """
    own = _own(root, key, payload) if payload.get("agent_type") else None
    if own is None:
        return None
    box = mailbox.Mailbox(root, own)
    with box.lock():
        state = store.load_state(root, own)
        if state is None or not _is_current(state, payload):
            return None
        state["transcript"] = str(payload.get("agent_transcript_path") or state["transcript"])
        state["stops"] += 1
        store.save_state(root, own, state)
        box.settle(state)
        blocks: list[str] = []
        if rules.stop_may_block(state["stops"], deliver.block_cap()):
            # What has no room in context would stand twice in the request, so it is for the last time.
            more = rules.stop_may_block(state["stops"] + 1, deliver.block_cap())
            room = rules.CONTEXT_UNITS - len(render.WHOLE_REPORT) - 1 if more else rules.REWAKE_UNITS
            blocks = _claim(root, box, state, "subagent-stop", room)
        left = not blocks and subagents.end(root, own, state)
        flying = bool(box.in_flight())
    subagents.tidy(root, key)
    if blocks:
        return deliver.go_on("SubagentStop", f"{render.batch(blocks)}\n{render.WHOLE_REPORT}")
    if flying:
        from turnpost.core import bell

        bell.announce(root, own)
    if left:
        _tell(root, own)
    return None


def at_tool(root: str, key: str, payload: Payload) -> Answer | None:
    """PreToolUse: a tool call by which a subagent sends is stamped as its own, and no other call bears such a stamp.

    Any command may send, a script that it runs say, so each is remembered. Nothing is allowed or denied, and what else the call says stays as it is.
    """
    sub, name = payload.get("agent_id"), str(payload.get("tool_name", ""))
    given: dict[str, Any] | None = payload.get("tool_input")
    if not isinstance(given, dict) or not (sub is None or subagents.is_id(sub)):
        return None
    if name.startswith(TOOLS):
        stamped = {field: value for field, value in given.items() if field != sender.STAMP}
        if sub:
            stamped[sender.STAMP] = sub
        if stamped == given:
            return None
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": stamped}}
    command = given.get("command")
    if isinstance(command, str):
        subagents.speak(root, key, sub or "", command, lasting=bool(given.get("run_in_background")))
    return None


def at_agents_stop(root: str, key: str, payload: Payload) -> None:
    """Stop of the agent itself: where the session runs no subagent any more, those we know were ended without a word, as by Esc."""
    tasks: list[dict[str, Any] | None] | None = payload.get("background_tasks")
    if not isinstance(tasks, list) or any(isinstance(t, dict) and t.get("type") == "subagent" for t in tasks):
        return
    for own in subagents.running(root, key):
        with mailbox.Mailbox(root, own).lock():
            state = store.load_state(root, own)
            left = state is not None and subagents.end(root, own, state)
        if left:
            _tell(root, own)
    subagents.tidy(root, key)


def _tell(root: str, own: str) -> None:
    """Tell who wrote what was given up, unless a mailbox is locked: the coordinator does it then."""
    from turnpost.core import giving_up

    try:
        giving_up.finish(root, own)
    except LockBusy:
        pass


def _claim(root: str, box: mailbox.Mailbox, state: State, boundary: Boundary, room: int) -> list[str]:
    if not box.waiting():
        return []
    claim = mailbox.make_claim(state["pid"], state["transcript"])
    name = deliver.name_of(root, box.key)
    return box.claim(
        boundary,
        room,
        claim,
        recipient=name,
        session_id=state["session_id"],
        whole_first=boundary == "subagent-stop",
    )


def _own(root: str, key: str, payload: Payload) -> str | None:
    """The mailbox of the subagent whose hook this is; None for one that was never made known."""
    sub = payload.get("agent_id")
    own = subagents.key_of(key, sub) if subagents.is_id(sub) else ""
    return own if own and files.exists(home.agent(root, own) + "/state.json") else None


def _is_current(state: State, payload: Payload) -> bool:
    return bool(state["session_id"] == payload.get("session_id"))


def _transcript(path: str, sub: str) -> str:
    """Where Claude Code writes a subagent's conversation; SubagentStop says it too, but that is late for a proof."""
    return f"{path.removesuffix('.jsonl')}/subagents/agent-{sub}.jsonl"
