"""Short words for the tests of the doctor."""

from __future__ import annotations

from collections.abc import Iterable

from turnpost.doctor.results import Check


def found(checks: Iterable[Check], name: str) -> Check:
    """The one check of this name that is not fine; the one that is, when all are."""
    those = [check for check in checks if check.name == name]
    assert those, f"no check is called {name}"
    return next((check for check in those if check.status != "ok"), those[0])


def failing(checks: Iterable[Check]) -> list[str]:
    """The names of the checks that fail."""
    return [check.name for check in checks if check.status == "fail"]


def odd(checks: Iterable[Check]) -> list[str]:
    """The names of the checks that are not fine."""
    return [check.name for check in checks if check.status != "ok"]
