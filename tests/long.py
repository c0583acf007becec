"""How much of the load and crash tests runs: a part by default, all of it under `make long`."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")


def scale(short: Size, long: Size) -> Size:
    """The one of two sizes that this run has."""
    return long if os.environ.get("TURNPOST_LONG") == "1" else short
