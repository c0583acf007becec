"""The words before a message, which fit who sent it: the person's own message is not a teammate's question. Pure.

A sender is the person, turnpost itself, or an agent that is the reader's parent, its child or a teammate.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import Message

_SYSTEM = "This is turnpost's own notice. Nobody reads a reply; decide what follows from it for your task."
_PERSON = {
    "question": "The person you work for asks you this. Answer it as `reply` says.",
    "answer": "This is the person's own answer to you. Go on accordingly.",
    "note": "This is the person's own message to you. Do what it asks.",
}
_AGENT = {
    "question": "{Who} asks you this, not the person. Answer it as `reply` says.",
    "answer": "This is an answer from {who}. Use it in what you do next.",
    "contract": "{Who} lays down what you both build on. Keep to it, or reply why you cannot.",
    "report": "This is a report from {who}. Use it in what you do next.",
    "alert": "{Who} warns you. Look at it before you go on.",
    "note": "{Who} tells you this. Use it where it helps your task.",
}
_CORRECTION = "This is a correction or an instruction from {who}. Follow it from your next step on."


def line(message: Message, kin: str | None = None) -> str:
    """The line before a message. `kin` is what its sender is to the reader: `parent`, `child`, or None for a teammate."""
    sender, kind = message["sender"], message["kind"]
    if sender["kind"] == "system":
        return _SYSTEM
    if sender["kind"] == "person":
        return _PERSON.get(kind, _PERSON["note"])
    words = _CORRECTION if kin == "parent" and kind == "note" else _AGENT.get(kind, _AGENT["note"])
    name = f"{kin or 'teammate'} {sender['name']}"
    return words.replace("{who}", f"your {name}").replace("{Who}", f"Your {name}")
