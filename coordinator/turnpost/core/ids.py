"""Identifiers that sort by time: a prefix and a ULID (48 bits of milliseconds, 80 of chance, Crockford base 32)."""

from __future__ import annotations

import os
import time

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new(prefix: str, moment: float) -> str:
    """A fresh id, such as `msg-01JD3Q…`."""
    value = (int(moment * 1000) & ((1 << 48) - 1)) << 80 | int.from_bytes(os.urandom(10), "big")
    digits = [_DIGITS[(value >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}-{''.join(digits)}"


def is_id(text: str, prefix: str) -> bool:
    """Whether a text has the form of an id (and so may be part of a path)."""
    head, _, tail = text.partition("-")
    return head == prefix and is_tail(tail)


def is_tail(text: str) -> bool:
    """Whether a text has the form of what follows an id's prefix."""
    return len(text) == 26 and not text.strip(_DIGITS) and text[0] <= "7"


def day(identifier: str) -> str:
    """The UTC day an id was made, `2026-11-30`: the folder its message is kept in."""
    value = 0
    for digit in identifier.rpartition("-")[2][:10]:
        value = value << 5 | _DIGITS.index(digit)
    return time.strftime("%Y-%m-%d", time.gmtime(value // 1000))
