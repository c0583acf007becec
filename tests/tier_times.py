"""A pytest plugin: how long each tier of tests took, printed at the end of the run.

A tier is a test's ``contract``, ``real`` or ``process`` mark, ``property`` for one that hypothesis drives, else ``unit``.
Loaded by name (``-p tests.tier_times``), so that a plain ``pytest`` run stays plain.
"""

from collections import defaultdict

import pytest

_TIERS = ("contract", "real", "process", "property")
_seconds: dict[str, float] = defaultdict(float)
_tests: dict[str, set[str]] = defaultdict(set)


@pytest.hookimpl(trylast=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks what hypothesis drives: a function it wraps, or a state machine."""
    test = getattr(item, "obj", None)
    if getattr(test, "is_hypothesis_test", False):
        item.add_marker(pytest.mark.property)


def _tier(report: pytest.TestReport) -> str:
    return next((tier for tier in _TIERS if tier in report.keywords), "unit")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds one phase (set-up, call or tear-down) of a test to its tier."""
    tier = _tier(report)
    _seconds[tier] += report.duration
    _tests[tier].add(report.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints one line per tier, the longest first."""
    terminalreporter.section("time per tier")
    for tier, seconds in sorted(_seconds.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{tier}: {len(_tests[tier])} tests in {seconds:.1f} s")
