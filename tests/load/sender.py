"""A sender process: it sends its messages one after the other and keeps a journal that outlives it.

A line `begin N TIME` stands before the send of message N, a line `sent N TIME ID` after it: killed in between, the sender
does not know whether its message was accepted, and whoever follows it goes on with the next.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from turnpost.actions import sending
from turnpost.core import registry
from turnpost.core.errors import LockBusy, Refused
from turnpost.core.sender import Speaker


class Planned(NamedTuple):
    """What one message is: known from its sender and number alone, so that the judge knows it too."""

    sender: int
    number: int
    body: str
    to: tuple[str, ...]
    urgent: bool


def plan(seed: str, sender: int, number: int, names: Sequence[str]) -> Planned:
    """The `number`th message of a sender: mostly to one agent, now and then to two, now and then urgent."""
    chance = random.Random(f"{seed}/{sender}/{number}")
    to = chance.sample(names, 2 if len(names) > 1 and chance.random() < 0.05 else 1)
    return Planned(sender, number, f"sender {sender}, message {number}", tuple(to), chance.random() < 0.1)


def main(
    root: str, journal: str, seed: str, pause: float, sender: int, first: int, last: int, names: Sequence[str]
) -> None:
    # Given, not asked for: this process may itself run below somebody's Claude session.
    voice = Speaker(registry.unsaved_person())
    book = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in range(first, last + 1):
        time.sleep(random.uniform(0.0, 2 * pause))
        planned = plan(seed, sender, number, names)
        os.write(book, f"begin {number} {time.monotonic()}\n".encode())
        while (identifier := _send(root, voice, planned)) is None:
            time.sleep(0.05)
        os.write(book, f"sent {number} {time.monotonic()} {identifier}\n".encode())


def _send(root: str, voice: Speaker, planned: Planned) -> str | None:
    """The id of the message; None when it was refused for now: then nothing was written."""
    try:
        return sending.send(root, planned.to, planned.body, urgent=planned.urgent, speaker=voice).id
    except LockBusy:
        return None
    except Refused as refusal:
        if refusal.rule == "mailbox-full":
            return None
        raise


if __name__ == "__main__":
    home, file, begin, wait, *words = sys.argv[1:]
    which, start, end = (int(word) for word in words[:3])
    main(home, file, begin, float(wait), which, start, end, words[3:])
