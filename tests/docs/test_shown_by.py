"""The threat model and the reliability page promise nothing that no test shows: each line names its tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / name).read_text() for name in ("threat-model.md", "reliability.md")}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows(page: str) -> list[list[str]]:
    """The lines of the tables, without their heads."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGES[page].splitlines()
        if line.startswith("|")
    ]
    return [row for row in cells if not set(row[0]) <= {"-", " "} and row[-1] != "shown by"]


def names(path: Path) -> set[str]:
    """What a file of tests defines: functions, classes, and state machines, which are assigned."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_each_line_names_a_test(page: str) -> None:
    assert len(rows(page)) > 12
    for row in rows(page):
        assert len(row) == 3, row
        assert TEST.search(row[2]), row[0]


def test_a_threat_can_or_cannot_be_carried_out() -> None:
    assert {row[1] for row in rows("threat-model.md")} == {"can", "cannot"}


@pytest.mark.parametrize("page", PAGES)
def test_the_tests_that_are_named_exist(page: str) -> None:
    named = TEST.findall(PAGES[page])
    assert len(named) > 12
    assert PAGES[page].count(".py::") == len(named)
    for path, name in named:
        assert name in names(ROOT / path), f"{path}::{name}"
