"""How each answer reads for a person: at most 80 columns, no colours, safe for any terminal."""

from __future__ import annotations

from functools import singledispatch

from turnpost.actions import results
from turnpost.cli import columns, conversations, log_views
from turnpost.core import text

_BOUNDARIES = {
    "stop-block": "working; gets it at the end of its turn",
    "next-request": "gets it with its next model request",
    "rewake": "idle; woken now",
    "prompt": "gets it with its next prompt",
    "resume": "not running; resumed for it",
    "held": "held; it waits for a release or the person's next message",
    "inbox": "in the person's inbox",
}


@singledispatch
def view(result: object) -> str:
    """A result as text, without the newline at its end."""
    raise TypeError(f"nothing shows a {type(result).__name__}")


@view.register
def _(result: results.Sent) -> str:
    lines = [result.id]
    for recipient in result.recipients:
        extra = [f"{recipient.waiting} waiting" if recipient.waiting > 1 else ""]
        extra.append(f"{ordinal(recipient.copy)} copy of the same text" if recipient.copy > 1 else "")
        extra.append(
            "it is deaf: nothing wakes it" if recipient.deaf and recipient.boundary == "prompt" else ""
        )
        extra.append(
            "not woken for it; --wake would" if result.quiet and recipient.boundary == "prompt" else ""
        )
        expected = _BOUNDARIES.get(recipient.boundary, recipient.boundary)
        if recipient.boundary == "resume" and recipient.deaf:
            expected = "idle, and nothing wakes it; restarted for it"
        told = "; ".join(filter(None, [expected, *extra]))
        lines.append(columns.paragraph(f"{recipient.name}: {told}", "  "))
    if result.redacted:
        lines.append(f"  {text.taken_out(result.redacted)}")
    if result.replaced:
        lines.append(f"  {result.replaced} characters that no text may hold were replaced")
    return "\n".join(lines)


@view.register
def _(result: results.MessageView) -> str:
    return conversations.message(result)


@view.register
def _(result: results.Cancelled) -> str:
    lines = [f"{result.id} was taken back from {', '.join(result.cancelled)}"]
    lines += [f"too late for {name}: {state}" for name, state in result.too_late.items()]
    return "\n".join(columns.paragraph(line) for line in lines)


@view.register
def _(result: results.Agents) -> str:
    if not result.agents:
        return "no agents yet; `turnpost launch NAME` starts one, `turnpost install` makes\nsessions of a project known"
    head = ["NAME", "STATE", "WAITING", "SESSION", "FOLDER"]
    rows: list[list[str]] = []
    for agent in result.agents:
        rows.append([agent.name, doing(agent), str(agent.waiting), (agent.session_id or "-")[:8], agent.cwd])
        rows += [
            [f"  /{sub.name.rpartition('/')[2]}", "working", str(sub.waiting), "subagent", sub.about]
            for sub in agent.subagents
        ]
    return columns.table([head, *rows], [28, 16, 7, 8])


@view.register
def _(result: results.Waited) -> str:
    from turnpost.cli import render

    if result.done and result.for_ in ("reply", "message") and result.message:
        return view(result.message)
    head = f"{result.target}: {result.state}" if result.done else render.missed(result)
    lines = [columns.paragraph(head)]
    if result.message:
        lines += [conversations.receipt(name, receipt) for name, receipt in result.message.receipts.items()]
    return "\n".join(lines)


@view.register
def _(result: results.Launched) -> str:
    kin = f", child of {result.parent}" if result.parent else ""
    return columns.paragraph(f"{result.name} runs{kin}") + f"\n  session {result.session_id}"


@view.register
def _(result: results.Renamed) -> str:
    return columns.paragraph(f"{result.old} is now called {result.name}")


@view.register
def _(result: results.Held) -> str:
    hold = "held until your next message to it, or `turnpost release`" if result.held else "not held"
    return columns.paragraph(f"{result.name}: {result.state}, {hold}; {result.waiting} waiting")


@view.register
def _(result: results.Woken) -> str:
    if result.sent is not None:
        return view(result.sent)
    return columns.paragraph(f"{result.note} {result.session_id}")


@view.register
def _(result: results.Exported) -> str:
    span = f", {result.first} to {result.last}" if result.messages else ""
    return columns.paragraph(f"{result.messages} messages ({result.bytes} bytes) in {result.file}{span}")


@view.register
def _(result: results.Threads) -> str:
    return conversations.threads(result)


@view.register(results.Inbox)
@view.register(results.Thread)
@view.register(results.Found)
def conversation(
    result: results.Inbox | results.Thread | results.Found | results.Summary,
    body: conversations.Body = columns.literal,
) -> str:
    """What people wrote to each other; `body` shows a message's text."""
    if isinstance(result, results.Inbox):
        return conversations.inbox(result, body)
    if isinstance(result, results.Thread):
        return conversations.thread(result, body)
    if isinstance(result, results.Summary):
        return conversations.summary(result, body)
    return conversations.found(result, body)


@view.register
def _(result: results.MissionView) -> str:
    until = f" to {result.ended}" if result.ended else ""
    lines = [columns.paragraph(f"{result.name}: {result.state}, {result.started}{until}")]
    about = (("goal", result.goal), ("coordinator", result.coordinator), ("reason", result.reason))
    lines += [columns.paragraph(f"{what}: {words}", "  ") for what, words in about if words]
    for seat in result.members:
        state = f"{seat.state}, held" if seat.held else seat.state
        lines.append(columns.paragraph(f"{seat.name}: {state}; {seat.waiting} waiting", "  "))
    if result.redacted:
        lines.append(f"  {text.taken_out(result.redacted)}")
    if result.told:
        lines.append(columns.paragraph(f"told of the abort: {', '.join(result.told)}", "  "))
    return "\n".join(lines)


@view.register
def _(result: results.Missions) -> str:
    if not result.missions:
        return "no missions yet; `turnpost mission start NAME` starts one"
    head = ["NAME", "STATE", "AGENTS", "STARTED", "GOAL"]
    rows = [
        [one.name, one.state, str(len(one.members)), (one.started or "")[:16], one.goal or "-"]
        for one in result.missions
    ]
    return columns.table([head, *rows], [24, 8, 6, 16])


@view.register
def _(result: results.PolicyVerdict) -> str:
    verb = "write to" if result.may == "write" else "control"
    head = f"{result.from_} {'may' if result.allowed else 'may not'} {verb} {result.to}: {result.reason}"
    by = f"by rule {result.rule} of the policy" if result.rule else "by default"
    lines = [columns.paragraph(head), columns.paragraph(f"decided {by}; relation: {result.relation}", "  ")]
    return "\n".join([*lines, *(columns.paragraph(f"now: {note}", "  ") for note in result.notes)])


@view.register
def _(result: results.Log) -> str:
    return log_views.log(result)


@view.register
def _(result: results.Entry) -> str:
    return log_views.entry(result)


@view.register
def _(result: results.Summary) -> str:
    return conversations.summary(result)


@view.register
def _(result: results.Installed) -> str:
    lines: list[str] = []
    for file in result.files:
        done = f"would be {file.action}" if result.dry_run and file.changed else file.action
        lines.append(f"{done}: {text.visible(file.path)} ({result.scope})")
        lines += [columns.paragraph(part, "  ") for part in file.parts]
    return (text.visible(result.diff) if result.dry_run else "") + "\n".join(lines)


@view.register
def _(result: results.CoordinatorView) -> str:
    if not result.running:
        return f"the coordinator, pid {result.pid}, was ended" if result.pid else "no coordinator runs"
    return f"the coordinator runs, pid {result.pid}, since {result.since}"


@view.register
def _(result: results.Completion) -> str:
    return result.script


def doing(agent: results.AgentView) -> str:
    """An agent's state in one word, with what is odd about it."""
    odds = (("deaf", agent.deaf), ("held", agent.held), ("over", agent.mission_over))
    odd = [word for word, is_so in odds if is_so]
    return ",".join([agent.state, *odd])


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
