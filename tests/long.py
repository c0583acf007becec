"""How much of the load and crash tests runs: a part by default, all of it under `make long`."""

from __future__ import annotations

import os
from typing import TypeVar

_T = TypeVar("_T")


def scale(short: _T, long: _T) -> _T:
    """`long` under `make long`, else `short`."""
    return long if os.environ.get("TURNPOST_LONG") == "1" else short
