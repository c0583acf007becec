"""How messages and threads read. A body is shown as it was written, or by `body` as a terminal's Markdown."""

from __future__ import annotations

from collections.abc import Callable

from turnpost.actions import results
from turnpost.cli import columns
from turnpost.core import refs, text

Body = Callable[[str], str]
_STEPS = ("queued", "claimed", "delivered", "read")
_NAMES = 30
"""Columns that the name of a thread and of its last sender have together: a beginning of the text fits beside them."""
_SENDER = 10


def message(shown: results.MessageView, body: Body = columns.literal) -> str:
    """One message with all that is known of it."""
    lines = [_heading(shown), *(receipt(name, found) for name, found in shown.receipts.items())]
    return "\n".join([*lines, "", body(shown.body)])


def inbox(shown: results.Inbox, body: Body = columns.literal) -> str:
    """What waits for the person, with the command that answers each question."""
    if not shown.messages:
        return "nothing waits for you"
    return "\n\n".join(message(one, body) for one in shown.messages)


def thread(shown: results.Thread, body: Body = columns.literal) -> str:
    """A thread, as it would be read aloud: who, when, what."""
    head = columns.paragraph(f"thread {shown.name}: {_count(len(shown.messages), shown.older)}")
    return "\n\n".join([head, *(_turn(one, body) for one in shown.messages)])


def found(shown: results.Found, body: Body = columns.literal) -> str:
    """What a search found, each with its thread."""
    head = f"found: {_count(len(shown.messages), shown.older)}"
    return "\n\n".join([head, *(_turn(one, body, with_thread=True) for one in shown.messages)])


def threads(shown: results.Threads) -> str:
    """The threads in columns, with the beginning of the last message."""
    if not shown.threads:
        return "nothing was sent yet"
    head = ["THREAD", "MESSAGES", "PINNED", "LAST", "FROM", "TEXT"]
    rows = [
        [
            line.name, str(line.messages), str(line.pinned or ""), (line.last or "")[:16].replace("T", " "), line.last_from,
            columns.fit(line.last_body, columns.WIDTH),
        ]
        for line in shown.threads
    ]  # fmt: skip
    sender = min(_SENDER, max(columns.width(cell[4]) for cell in [head, *rows]))
    return columns.table([head, *rows], [_NAMES - sender, 8, 6, 16, sender], keep_end=False)


def summary(shown: results.Summary, body: Body = text.visible) -> str:
    """What a thread comes to, and what asking cost."""
    cost = f"${shown.cost_usd:.4f}" if shown.cost_usd is not None else "an unknown sum"
    left = f", {shown.older} older left out" if shown.older else ""
    read = f"{shown.messages} message{'' if shown.messages == 1 else 's'} of {shown.thread}{left}"
    used = f"{shown.input_tokens} tokens in, {shown.output_tokens} out, {shown.seconds:.1f} s"
    return f"{body(shown.text)}\n\n{columns.paragraph(f'{read}; it cost {cost} ({used})')}"


def receipt(name: str, shown: results.ReceiptView) -> str:
    """How far a message has come with one recipient."""
    moments = [f"{step} {moment[11:23]}" for step in _STEPS if (moment := getattr(shown, f"{step}_at"))]
    moments += [f"{shown.state} {shown.ended_at[11:23]}"] if shown.ended_at else []
    where = f" ({shown.boundary})" if shown.boundary else ""
    tries = f", attempt {shown.attempts}" if shown.attempts > 1 else ""
    lines = [columns.paragraph(f"{name}: {shown.state}{where}{tries}", "  ")]
    if moments:
        lines.append(columns.paragraph(", ".join(moments) + " UTC", "    "))
    if shown.reason:
        lines.append(columns.paragraph(shown.reason, "    "))
    return "\n".join(lines)


def _heading(shown: results.MessageView) -> str:
    lines = [
        shown.id,
        columns.paragraph(f"{_marks(shown)} from {shown.sender} to {', '.join(shown.to)}", "  "),
        columns.paragraph(f"sent {shown.sent}, thread {shown.thread}", "  "),
        *_details(shown),
    ]
    return "\n".join(lines)


def _turn(shown: results.MessageView, body: Body, *, with_thread: bool = False) -> str:
    when = (shown.sent or "")[:19].replace("T", " ")
    where = f", thread {shown.thread}" if with_thread else ""
    states = ", ".join(f"{name} {found.state}" for name, found in shown.receipts.items())
    lines = [
        columns.paragraph(f"{shown.sender} → {', '.join(shown.to)}: {_marks(shown)}, {when} UTC{where}"),
        columns.paragraph(f"{shown.id}; {states}", "  "),
        *_details(shown),
        "",
        body(shown.body),
    ]
    return "\n".join(lines)


def _details(shown: results.MessageView) -> list[str]:
    lines = [f"  {text.taken_out(shown.redacted)}"] if shown.redacted else []
    if shown.reply_to:
        took = f" with option {shown.choice}" if shown.choice else ""
        lines.append(
            f"  answers {shown.reply_to}{took}"
            if shown.kind == "answer"
            else f"  replies to {shown.reply_to}"
        )
    lines += [columns.paragraph(f"about {_about(ref)}", "  ") for ref in shown.refs]
    lines += [columns.paragraph(f"{n}: {option}", "  ") for n, option in enumerate(shown.options, 1)]
    lines += [f"  answered by {answer}" for answer in shown.answers]
    if shown.pinned:
        lines.append(
            columns.paragraph(
                f"answer with: turnpost reply {shown.id} {'NUMBER|TEXT' if shown.options else 'TEXT'}", "  "
            )
        )
    return lines


def _marks(shown: results.MessageView) -> str:
    return ", ".join(
        word for word, so in ((shown.kind, True), ("urgent", shown.urgent), ("pinned", shown.pinned)) if so
    )


def _about(ref: str) -> str:
    kind = refs.kind(ref)
    return ref if kind in ("file", "page") else f"{kind} {text.visible(ref)}"


def _count(number: int, older: int) -> str:
    words = f"{number} message{'' if number == 1 else 's'}"
    return f"{words}; {older} older fit too, --last shows more" if older else words
