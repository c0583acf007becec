"""docs/threat-model.md promises nothing that no test shows: each line names its tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[list[str]]:
    """The lines of the tables, without their heads."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("|")
    ]
    return [row for row in cells if not set(row[0]) <= {"-", " "} and row[-1] != "shown by"]


def test_each_line_names_a_test() -> None:
    assert len(rows()) > 20
    for row in rows():
        assert len(row) == 3, row
        assert row[1] in ("can", "cannot"), row
        assert TEST.search(row[2]), row[0]


def test_the_tests_that_are_named_exist() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 20
    assert PAGE.count("::test_") == len(named)
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text())
        assert any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body), (
            f"{path}::{name}"
        )
