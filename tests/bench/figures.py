"""What was measured, and how it compares with its yardstick. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measured:
    """One measurement: `values` of the product and of its `yardstick`, taken in the same rounds of one run.

    `ratio_limit` is the most that the medians' ratio may be, `limit` the most that the median itself may be.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    yardstick: str
    against: tuple[float, ...]
    ratio_limit: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Median by median; None against a yardstick that is nothing."""
        base = statistics.median(self.against)
        return statistics.median(self.values) / base if base > 0 else None

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratio of each round."""
        pairs = zip(self.values, self.against, strict=True)
        return tuple(value / base for value, base in pairs if base > 0)

    @property
    def passes(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.ratio_limit is not None:
            return self.ratio is not None and self.ratio <= self.ratio_limit
        return statistics.median(self.values) <= self.limit if self.limit is not None else None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        spread = quartiles(self.ratios) if self.ratios else None
        return {
            "name": self.name,
            "unit": self.unit,
            "count": len(self.values),
            "median": statistics.median(self.values),
            "quartiles": quartiles(self.values),
            "yardstick": {
                "name": self.yardstick,
                "median": statistics.median(self.against),
                "quartiles": quartiles(self.against),
            },
            "ratio": self.ratio,
            "ratio_quartiles": spread,
            "target": {"ratio": self.ratio_limit, "limit": self.limit},
            "pass": self.passes,
        }


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
