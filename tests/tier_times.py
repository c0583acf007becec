"""A pytest plugin: how long each tier of tests took, printed at the end of the run.

A tier is a test's ``real`` or ``process`` mark, else the folder under ``tests`` it lies in.
Loaded by name (``-p tests.tier_times``), so that a plain ``pytest`` run stays plain.
"""

from collections import defaultdict

import pytest

_MARKED_TIERS = ("real", "process")
_seconds: dict[str, float] = defaultdict(float)
_tests: dict[str, set[str]] = defaultdict(set)


def _tier(report: pytest.TestReport) -> str:
    for mark in _MARKED_TIERS:
        if mark in report.keywords:
            return mark
    folders = report.nodeid.partition("::")[0].split("/")[1:-1]
    return folders[0] if folders else "tests"


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
