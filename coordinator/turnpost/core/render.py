"""How a message stands in a conversation. Pure: records in, text out. The line that fits its sender is `wording`'s."""

from __future__ import annotations

from turnpost.core import clock, text, wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnpost.core.records import Message, Party

NUDGE = "turnpost: messages for you."
"""The prompt of a resume, and of a wake whose messages the prompt hook brings. Short: it counts to what a message costs."""
REMINDER = (
    "turnpost: a message above has not been answered because the turn ended before you could read it. "
    "Please read and act on it now."
)

WHOLE_REPORT = "Then end with your whole report again: the last one counts."

REPLY = "turnpost reply ID"
"""How to answer; the id is the one that `about` has, and does not stand there twice."""

CHILDREN_WORK = (
    "turnpost: your answer is held back because children of yours still work: {names}. Their results come by themselves; "
    "say in a few words that you wait, and end your turn again."
)


def mark(message_id: str) -> str:
    """What a rendered message carries and a body cannot: a body's own `<message` is escaped."""
    return f'<message about="{message_id}"'


def block(message: Message, recipient: str, now: float, key: str = "") -> str:
    """One message as it enters: a line that says whose it is, then its element.

    `key` is the mailbox it is taken from, which tells what its sender is to the reader.
    """
    kin = next((party.get("kin") for party in message["to"] if party["key"] == key), None)
    return f"{wording.line(message, kin)}\n{element(message, recipient, now)}"


def element(message: Message, recipient: str, now: float) -> str:
    """A message's own element, the body letter for letter."""
    answerable = message["sender"]["kind"] != "system"
    choice = message.get("choice")
    attributes = {
        "about": message["id"],
        "from": label(message["sender"]),
        "to": recipient,
        "kind": message["kind"],
        "thread": message["thread"],
        "age": clock.span(now - message["sent"]),
        "reply-to": message["reply_to"],
        "choice": str(choice) if choice else None,
        "urgent": "yes" if message["urgent"] else None,
        "refs": " | ".join(message["refs"]) or None,
        "options": " | ".join(f"{n}: {o}" for n, o in enumerate(message["options"], 1)) or None,
        "reply": REPLY if answerable else None,
    }
    head = " ".join(f'{name}="{_attribute(value)}"' for name, value in attributes.items() if value)
    return f"<message {head}>\n{text.inert(message['body'])}\n</message>"


def batch(blocks: Sequence[str]) -> str:
    """What enters the conversation: the blocks in order."""
    return "\n".join(blocks)


def label(party: Party) -> str:
    """How a sender is named: `person`, `system`, or the agent's name."""
    return party["name"]


def _attribute(value: str) -> str:
    flat = text.visible(value).replace("\n", " ").replace("\t", " ")
    return flat.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
