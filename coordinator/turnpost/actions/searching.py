"""What a search asks for, and whether a message fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from turnpost.actions.sending import KINDS
from turnpost.core import clock, text
from turnpost.core.errors import UsageError

if TYPE_CHECKING:
    from turnpost.core.records import Message

STATES = ("queued", "claimed", "delivered", "read", "cancelled", "undeliverable")
_AGE = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*(s|min|h|d)", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Query(NamedTuple):
    """A search. What is None asks for nothing; `since` and `until` are a moment, a day or an age (see `moment`)."""

    text: str | None = None
    sender: str | None = None
    kind: str | None = None
    state: str | None = None
    since: str | None = None
    until: str | None = None


EVERYTHING = Query()


class Fits:
    """A search made ready: whether a message fits, but for its state, which costs a look into a mailbox."""

    def __init__(self, query: Query, sender_keys: frozenset[str] | None = None) -> None:
        """`sender_keys` are the mailboxes behind the sender's name. Raises UsageError for what no message can fit."""
        for what, word, known in (("kind", query.kind, KINDS), ("state", query.state, STATES)):
            if word is not None and word not in known:
                raise UsageError(
                    f"'{text.visible(word)}' is no {what} of message; it is one of {', '.join(known)}"
                )
        now = clock.now()
        self._words = text.name_key(query.text) if query.text else ""
        self._kind = query.kind
        self._keys = sender_keys
        self._since = moment(query.since, now) if query.since is not None else None
        self._until = moment(query.until, now) if query.until is not None else None

    def __call__(self, message: Message) -> bool:
        """Whether a message fits: all that is asked for must be so."""
        return (
            (self._kind is None or message["kind"] == self._kind)
            and (self._keys is None or message["sender"]["key"] in self._keys)
            and (self._since is None or message["sent"] >= self._since)
            and (self._until is None or message["sent"] < self._until)
            and (not self._words or any(self._words in text.name_key(part) for part in _texts(message)))
        )


def moment(word: str, now: float) -> float:
    """The moment in `2026-11-30T14:02:11Z`, at the begin of `2026-11-30` (UTC), or as long ago as `90s`, `5min`, `2h`, `3d`.

    Raises UsageError (`bad-time`).
    """
    if age := _AGE.fullmatch(word.strip()):
        return now - float(age[1]) * _SECONDS[age[2]]
    found = clock.parse(f"{word}T00:00:00Z" if _DAY.fullmatch(word) else word)
    if found is None:
        raise UsageError(
            f"'{text.visible(word)}' is no time: write 2026-11-30, 2026-11-30T14:02:11Z (UTC), or an age such as 2h or 3d",
            rule="bad-time",
        )
    return found


def _texts(message: Message) -> list[str]:
    return [message["body"], *message["refs"], *message["options"]]
