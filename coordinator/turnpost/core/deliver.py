"""What each hook does once there is work. The hook scripts decide whether there is; this decides what enters.

Every function takes the hook's input and answers with the one JSON document to print, or None for silence.
"""

from __future__ import annotations

import os

from turnpost.core import clock, fastjson, files, home, procs, rules, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnpost.core.records import Boundary, Doing, State

    Payload = dict[str, Any]
    Answer = dict[str, Any]

INPUT_LIMIT = 64 * 1024 * 1024
WAITER_BEGINS = 0.5
"""Seconds a Stop hook gives the waiter that begins beside it, when what waits has no room in context."""


def read_input() -> Payload:
    """The hook's input. One cut off in the middle raises ValueError: silence."""
    parts = []
    room = INPUT_LIMIT
    while room > 0 and (part := os.read(0, 1 << 16)):
        parts.append(part)
        room -= len(part)
    found = fastjson.loads(b"".join(parts))
    if not isinstance(found, dict):
        raise ValueError("a hook's input is one JSON object")
    return found


def answer(document: Answer | None) -> None:
    """Print one JSON document, or nothing."""
    if document is not None:
        files.write_all(1, fastjson.dumps(document).encode())


def harness_pid() -> int:
    """The session's process, 0 when the harness does not say."""
    return _number(os.environ.get("CLAUDE_PID", ""), 0)


def at_prompt(root: str, key: str, payload: Payload) -> Answer | None:
    """UserPromptSubmit: the session works from now on, and what waits comes with the prompt.

    It also fires when a person types during a turn, or a rewake is taken into one. Claude Code then holds text and
    context until the running tool ends, for as long as that takes; so that turn's own boundaries bring what waits.
    """
    key = _traced(root, key, payload)
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None:
            return None
        turn_runs = state["doing"] in ("working", "blocked")
        boundary: Boundary = (
            "resume" if state["doing"] == "starting" and state["source"] in ("resume", "fork") else "prompt"
        )
        _record(root, key, state, payload, "working")["stops"] = 0
        store.save_state(root, key, state)
        blocks = [] if turn_runs else _take(root, key, boundary, payload, state)
        if begin_report(root, key, state, payload, mail=bool(blocks)):
            store.save_state(root, key, state)
    return context("UserPromptSubmit", blocks)


def at_tool_batch(root: str, key: str, payload: Payload) -> Answer | None:
    """PostToolBatch: urgent messages come with the next request; after a permission prompt all that waited behind it."""
    if payload.get("agent_id"):
        return at_subagent(root, key, payload, "at_tool_batch")
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None:
            return None
        unblocked = files.exists(home.agent(root, key) + "/blocked")
        if unblocked:
            store.save_state(root, key, _record(root, key, state, payload, "working"))
        elif note_mode(root, key, state, payload):
            store.save_state(root, key, state)
        blocks = _take(root, key, "next-request", payload, state, everything=unblocked)
    return context("PostToolBatch", blocks)


def at_stop(root: str, key: str, payload: Payload) -> Answer | None:
    """Stop: what waits keeps the turn going, as often as the harness allows; the rest is the waiter's.

    Children of an agent that holds its last answer back keep it going too. A child's last words are its report.
    """
    if payload.get("agent_id"):
        return None
    key = _traced(root, key, payload)
    busy = _held_back(root, key, payload) if files.exists(home.hold_final(root, key)) else []
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None:
            return None
        state["stops"] += 1
        # Before the claim: where nothing can be written, nothing may be taken; and killed after it, the hook leaves an
        # idle session to the waiter.
        store.save_state(root, key, _record(root, key, state, payload, "idle"))
        may = rules.stop_may_block(state["stops"], block_cap())
        blocks = _take(root, key, "stop-block", payload, state) if may else []
        if may and busy and not blocks:
            blocks = _take(root, key, "stop-block", payload, state, whole=True)
        busy = busy if may and not blocks else []
        if blocks or busy:
            store.save_state(root, key, store.change_state(state, "working"))
        left = bool(files.names(home.agent(root, key) + "/queue"))
        if state.get("due") and not (blocks or busy or left):
            _report(root, key, payload, state)
    if may and left and not (blocks or busy or _waiter_brings(root, key, state)):
        blocks = _take_whole(root, key, payload)
    if not blocks and not busy:
        _after_turn(root, key, payload, left)
        return None
    from turnpost.core import render

    children = render.CHILDREN_WORK.format(names=", ".join(busy))
    return go_on("Stop", render.batch(blocks) if blocks else children)


def at_subagent(root: str, key: str, payload: Payload, step: str) -> Answer | None:
    """A hook of, or for, an in-process subagent."""
    from turnpost.core import subhooks

    found: Answer | None = getattr(subhooks, step)(root, key, payload)
    return found


def record(root: str, key: str, payload: Payload, doing: Doing) -> None:
    """StopFailure, PermissionRequest, Notification: only the state changes."""
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None or (doing == "blocked" and state["doing"] == "blocked"):
            return
        if doing == "idle":
            state.pop("due", None)  # the turn failed: its last words are the failure's
        store.save_state(root, key, _record(root, key, state, payload, doing))
        left = bool(files.names(home.agent(root, key) + "/queue"))
    if left and doing == "idle":
        _ring(root, key)


def at_start(root: str, _key: str, payload: Payload) -> Answer | None:
    """SessionStart: find or make the agent, relink it, and tell it who it is and how to write."""
    from turnpost.core import attach, briefing

    session_id = str(payload.get("session_id", ""))
    if payload.get("agent_id") or not home.is_session_id(session_id):
        return None
    source = str(payload.get("source", "startup"))
    agent = attach.attach(
        root,
        attach.Start(
            session_id,
            source,
            harness_pid(),
            transcript=str(payload.get("transcript_path", "")),
            cwd=str(payload.get("cwd", "")),
            project=os.environ.get("CLAUDE_PROJECT_DIR", ""),
            env_key=os.environ.get("TURNPOST_AGENT", ""),
            name=str(payload.get("session_title") or ""),
            background=bool(os.environ.get("CLAUDE_JOB_DIR")),
        ),
    )
    return _added("SessionStart", briefing.brief(root, agent, source))


def at_notification(root: str, key: str, payload: Payload) -> None:
    """Notification: only a prompt that waits for the person changes the state."""
    if payload.get("notification_type") in ("permission_prompt", "elicitation_dialog"):
        record(root, key, payload, "blocked")


def at_end(root: str, key: str, payload: Payload) -> None:
    """SessionEnd: the session is gone, unless it only makes place for the next one in the same process."""
    if payload.get("reason") in ("clear", "resume"):
        return
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None or (harness_pid() and state["pid"] != harness_pid()):
            return
        store.save_state(root, key, _record(root, key, state, payload, "stopped"))
        left = bool(files.names(home.agent(root, key) + "/queue"))
    files.unlink(f"{root}/pids/{state['pid']}")
    if left:
        from turnpost.core import bell

        bell.announce(root, key)


def log_failure(root: str, where: str, error: BaseException) -> None:
    """Leave a trace of a hook that failed. That it cannot even do that must not stop anybody."""
    from turnpost.core import audit

    audit.write(root, "hook-failed", hook=where, error=f"{type(error).__name__}: {error}")


def _lock(root: str, key: str) -> files.Lock:
    """The agent's lock, the same one as `Mailbox.lock`."""
    return files.Lock(home.agent(root, key) + "/lock")


def _held_back(root: str, key: str, payload: Payload) -> list[str]:
    """Wait for the agent's children; those that still work afterwards. Meanwhile no waiter takes what comes.

    The lock is free meanwhile: what is waited for needs it.
    """
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None or not rules.stop_may_block(state["stops"] + 1, block_cap()):
            return []
        from turnpost.core import finals

        _record(root, key, state, payload, "working")["holding"] = clock.now() + finals.step(root, key)
        store.save_state(root, key, state)
    return finals.wait(root, key)


def begin_report(root: str, key: str, state: State, payload: Payload, *, mail: bool) -> bool:
    """Note that the turn which begins is to be reported; whether this agent's turns are."""
    if not files.exists(home.reporting(root, key)):
        return False
    from turnpost.core import reporting

    reporting.begin(state, payload, mail=mail)
    return True


def _report(root: str, key: str, payload: Payload, state: State) -> None:
    from turnpost.core import reporting

    reporting.leave(root, key, payload)
    # After that: killed in between, the hook leaves a turn that is reported, not one that will never be.
    del state["due"]
    store.save_state(root, key, state)


def _after_turn(root: str, key: str, payload: Payload, left: bool) -> None:
    if left:
        _ring(root, key)
    if files.exists(home.running(root, key)):
        at_subagent(root, key, payload, "at_agents_stop")


def _ring(root: str, key: str) -> None:
    from turnpost.core import bell

    bell.ring_waiter(root, key)


def _take(
    root: str,
    key: str,
    boundary: Boundary,
    payload: Payload,
    state: State,
    *,
    everything: bool = True,
    whole: bool = False,
) -> list[str]:
    """Claim what may enter at this boundary. With an empty queue and nothing to settle the mailbox is not even imported."""
    folder = home.agent(root, key)
    if not files.names(folder + "/queue") and not files.names(folder + "/claimed"):
        return []
    from turnpost.core.mailbox import Mailbox, make_claim

    box = Mailbox(root, key)
    box.settle(state)
    if not box.waiting() or box.held():
        return []
    return box.claim(
        boundary,
        0 if whole else rules.CONTEXT_UNITS,
        make_claim(harness_pid(), _transcript(payload, state)),
        recipient=name_of(root, key),
        session_id=state["session_id"],
        want="all" if everything else "urgent",
        whole_first=whole,
    )


def _waiter_brings(root: str, key: str, state: State) -> bool:
    """Whether the session has a waiter that can bring what waits, letter for letter; the one that this Stop arms is given
    a moment to begin.
    """
    from turnpost.core import bell
    from turnpost.core.mailbox import Mailbox

    end = clock.monotonic() + WAITER_BEGINS
    while True:
        waiter = store.load_waiter(root, key)
        if waiter and waiter["session_id"] == state["session_id"] and bell.listening(root, key):
            return not Mailbox(root, key).garbled()
        if clock.monotonic() > end:
            return False
        clock.sleep(0.02)


def _take_whole(root: str, key: str, payload: Payload) -> list[str]:
    """Claim the first that waits, of any size, for a turn that has just ended and goes on with it."""
    with _lock(root, key):
        state = _current(root, key, payload)
        if state is None or state["doing"] != "idle":
            return []
        blocks = _take(root, key, "stop-block", payload, state, whole=True)
        if blocks:
            store.save_state(root, key, store.change_state(state, "working"))
    return blocks


def _traced(root: str, key: str, payload: Payload) -> str:
    """The agent of a session that may be a fork: only its transcript, written after its start, names the parent."""
    state = store.load_state(root, key)
    if state is None or state["source"] != "fork" or state.get("traced"):
        return key
    from turnpost.core import fork

    return fork.trace(root, key, str(payload.get("transcript_path", "")))


def _current(root: str, key: str, payload: Payload) -> State | None:
    """The agent's state if this hook belongs to its present session.

    A retired copy gets no mail and records nothing, and neither does a subagent, whose hooks run in the same session.
    """
    if payload.get("agent_id"):
        return None
    state = store.load_state(root, key) or _anew(root, key, payload)
    return state if state is not None and state["session_id"] == payload.get("session_id") else None


def _anew(root: str, key: str, payload: Payload) -> State | None:
    """What the agent's newest session does, when the record of it is damaged: else it were deaf until its next start."""
    from turnpost.core import attach, registry

    agent = registry.load_agent(root, key)
    session_id = str(payload.get("session_id", ""))
    if agent is None or agent["sessions"][-1:] != [session_id]:
        return None
    start = attach.Start(
        session_id, "resume", harness_pid(), transcript=str(payload.get("transcript_path", "")),
        cwd=str(payload.get("cwd", "")),
    )  # fmt: skip
    return attach.first_state(None, start)


def _record(root: str, key: str, state: State, payload: Payload, doing: Doing) -> State:
    """Note what the session does."""
    note_blocked(root, key, doing)
    pid = harness_pid()
    if pid and pid != state["pid"]:
        state["pid"], state["token"] = pid, procs.token(pid)
    path = _transcript(payload, state)
    if path != state["transcript"] and files.names(home.agent(root, key) + "/claimed"):
        from turnpost.core.mailbox import Mailbox

        Mailbox(root, key).settle(state)  # the conversation goes on elsewhere: what it has read so far counts
    state["transcript"] = path
    state.pop("holding", None)
    note_mode(root, key, state, payload)
    return store.change_state(state, doing)


def note_blocked(root: str, key: str, doing: Doing) -> None:
    """The `blocked` flag lets PostToolBatch see with one look that a prompt was answered."""
    flag = home.agent(root, key) + "/blocked"
    if doing == "blocked":
        files.touch(flag)
    else:
        files.unlink(flag)


def note_mode(root: str, key: str, state: State, payload: Payload) -> bool:
    """Note the session's permission mode; whether it is another one than before.

    The `plan` flag lets PostToolBatch see with one look that it must watch for the end of plan mode.
    """
    mode = payload.get("permission_mode")
    if not isinstance(mode, str) or mode == state.get("mode"):
        return False
    state["mode"] = mode
    flag = home.agent(root, key) + "/plan"
    if mode == "plan":
        files.touch(flag)
    else:
        files.unlink(flag)
    return True


def _transcript(payload: Payload, state: State) -> str:
    path = payload.get("transcript_path")
    return path if isinstance(path, str) and path else state["transcript"]


def context(event: str, blocks: list[str]) -> Answer | None:
    """The answer by which messages enter with the next model request; None without any."""
    if not blocks:
        return None
    from turnpost.core import render

    return _added(event, render.batch(blocks))


def go_on(event: str, entering: str) -> Answer:
    """The answer by which a turn that was to end goes on with a text.

    Context does that by itself, and stands once in the request. A block's reason stands there twice, under more words of
    Claude Code's own, and carries any size: it is for what has no room in context.
    """
    from turnpost.core import text

    if text.units(entering) > rules.CONTEXT_UNITS:
        return {"decision": "block", "reason": entering}
    return _added(event, entering)


def _added(event: str, context: str) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}


def name_of(root: str, key: str) -> str:
    """The agent's name; its key when the record is damaged, which must not cost it its mail."""
    agent = store.load(home.agent(root, key) + "/agent.json", {"name": str})
    return str(agent["name"]) if agent else key


def block_cap() -> int:
    """How many blocks of a turn's end in a row the harness takes."""
    return _number(os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", ""), 8)


def _number(word: str, otherwise: int) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else otherwise
