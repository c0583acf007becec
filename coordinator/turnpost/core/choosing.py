"""The answers a question offers, and which of them a reply takes: by its number or by its words. Pure."""

from __future__ import annotations

from turnpost.core import text
from turnpost.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnpost.core.records import Message


_AROUND = " \t\n#№+().,:;!*`'\"[]"


def fault(kind: str, options: Sequence[str]) -> str | None:
    """Why a message of this kind cannot offer these options; None when it can."""
    if options and kind != "question":
        return f"a {kind} offers no options to choose from; only a question does (--kind question)"
    words = [text.name_key(option.strip()) for option in options]
    for number, word in enumerate(words, 1):
        shown = options[number - 1]
        if word in words[: number - 1]:
            return f"the option '{shown}' is there twice"
        meant = _number(word)
        if meant is not None and meant != number and 1 <= meant <= len(words):
            return f"the option '{shown}' is number {number} here; put it at place {meant}, or write it out"
    return None


def chosen(asked: Message, body: str) -> tuple[int | None, str]:
    """Which option an answer takes, None for a free one, and the answer's text: the option's own words when it takes one.

    Raises UsageError (`bad-option`) for the number of an option that is not offered.
    """
    options = asked["options"]
    word = text.name_key(body.strip())
    for number, option in enumerate(options, 1):
        if word == text.name_key(option.strip()):
            return number, option
    named = _number(word) if options else None
    if named is None:
        return None, body
    if not 1 <= named <= len(options):
        offered = ", ".join(f"{n}: {option}" for n, option in enumerate(options, 1))
        raise UsageError(
            f"there is no option {named}; offered are {offered}. Another answer takes more than a number",
            rule="bad-option", option=named, options=len(options),
        )  # fmt: skip
    return named, options[named - 1]


def _number(word: str) -> int | None:
    """The number a word is, however it is written down: `2`, `2.`, `#2`, `+2`, in the digits of any script."""
    digits = word.strip(_AROUND)
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None
