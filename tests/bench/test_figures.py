"""What the bench makes of its figures: ratios, verdicts, the table and the document."""

from __future__ import annotations

import json

import pytest

from tests.bench import report
from tests.bench.figures import Measured

LOAD = (0.5, 0.5, 0.5)
BUSY = (report.cores() + 1.0, 0.0, 0.0)


def measured(
    values: tuple[float, ...], *, ratio: float | None = None, limit: float | None = None
) -> Measured:
    return Measured("wake", "ms", values, "a floor", (10.0, 20.0, 40.0), ratio_limit=ratio, limit=limit)


@pytest.mark.parametrize(
    ("found", "passes"),
    [
        (measured((11.0, 22.0, 44.0)), None),
        (measured((11.0, 22.0, 44.0), ratio=1.1), True),
        (measured((11.0, 23.0, 44.0), ratio=1.1), False),
        (measured((1.0, 30.0, 99.0), limit=30.0), True),
        (measured((1.0, 31.0, 99.0), limit=30.0), False),
    ],
)
def test_a_target_is_met_by_the_median(found: Measured, passes: bool | None) -> None:
    assert found.passes is passes


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds() -> None:
    found = measured((20.0, 20.0, 20.0))
    assert found.ratio == 1.0
    assert found.ratios == (2.0, 1.0, 0.5)
    assert found.document()["ratio_quartiles"] == (0.75, 1.5)


def test_against_a_yardstick_that_is_nothing_there_is_no_ratio_and_no_ratio_target_is_met() -> None:
    nothing = Measured("cpu", "ms", (1.0,), "a sleeper", (0.0,), ratio_limit=2.0)
    assert (nothing.ratio, nothing.ratios, nothing.passes) == (None, (), False)
    assert nothing.document()["ratio_quartiles"] is None


def test_the_table_names_each_yardstick_once_every_verdict_and_what_failed() -> None:
    found = [measured((11.0, 22.0, 44.0), ratio=1.1), measured((11.0, 99.0, 99.0), ratio=1.1)]
    shown = report.table(found, {"stopped": "no\nsuch request"}, LOAD, LOAD)
    assert shown.count("against a floor") == 1
    assert "1.1 pass" in shown
    assert "1.1 OVER" in shown
    assert "not measured: stopped: no such request" in shown


def test_the_document_is_json_and_tells_of_a_busy_machine() -> None:
    found = [measured((11.0, 22.0, 44.0), limit=30.0)]
    read = json.loads(json.dumps(report.document(found, {"idle": "why"}, BUSY, LOAD, quick=True)))
    assert (read["load"]["busy"], read["quick"], read["not_measured"]) == (True, True, {"idle": "why"})
    (one,) = read["measurements"]
    assert (one["median"], one["yardstick"]["median"], one["pass"]) == (22.0, 20.0, True)
    assert report.warning(LOAD) is None
    assert "trust ratios only" in str(report.warning(BUSY))
