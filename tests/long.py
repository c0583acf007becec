"""How much of the load and crash tests runs: a part by default, all of it under `make long`."""

from __future__ import annotations

import os


def scale(short: int, long: int) -> int:
    return long if os.environ.get("TURNPOST_LONG") == "1" else short
