"""Runs a hook as it is installed, in this process, which dies at a point: `python dying.py NUMBER` before the hook's own words."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Make of `/bin/sh -c … PYTHON -I -S -c GUARD PACKAGE SCRIPT …` the guard and its words."""
    number, words = int(sys.argv[1]), sys.argv[2:]
    at = words.index("-S") + 2
    sys.argv = ["-c", *words[at + 1 :]]
    sys.path[:0] = [str(Path(__file__).parents[2]), words[at + 1]]
    from tests.crash.points import Points

    Points("kill", number).begin()
    exec(words[at], {"__name__": "__main__"})


main()
