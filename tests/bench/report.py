"""The figures as a table of 80 columns, or as one JSON document."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.figures import Measured, quartiles
from turnpost.lab.fetch import NEWEST

Load = tuple[float, float, float]


def cores() -> int:
    """The processors this run may use."""
    return os.cpu_count() or 1


def warning(load: Load) -> str | None:
    """What to say of a machine that is busy before we begin."""
    if load[0] <= cores():
        return None
    return f"warning: load {load[0]:.1f} on {cores()} cores before the start; trust ratios only, and only wide margins"


def document(
    found: Sequence[Measured], failed: Mapping[str, str], before: Load, after: Load, quick: bool
) -> dict[str, Any]:
    """As JSON."""
    return {
        "machine": {"system": platform.system(), "python": platform.python_version(), "cores": cores()},
        "claude": NEWEST,
        "load": {"before": before, "after": after, "busy": warning(before) is not None},
        "quick": quick,
        "measurements": [one.document() for one in found],
        "not_measured": dict(failed),
    }


def table(found: Sequence[Measured], failed: Mapping[str, str], before: Load, after: Load) -> str:
    """For people."""
    machine = f"Claude Code {NEWEST}, Python {platform.python_version()}, {cores()} cores"
    lines = [f"turnpost bench   {machine}, load {before[0]:.1f} to {after[0]:.1f}"]
    if found:
        lines += ["", _row("", "n", "median (quartiles)", "yardstick", "ratio", "target")]
    yardstick = ""
    for one in found:
        if one.yardstick != yardstick:
            yardstick = one.yardstick
            lines.append(f"against {yardstick}")
        lines.append(_measured(one))
    lines += [f"not measured: {name}: {' '.join(why.split())}" for name, why in failed.items()]
    return "\n".join(lines)


def _measured(one: Measured) -> str:
    ratio = "-" if one.ratio is None else f"{one.ratio:.2f}"
    target = "-"
    if one.ratio_limit is not None:
        target = f"{one.ratio_limit:g}"
    elif one.limit is not None:
        target = f"{one.limit:g} {one.unit}"
    verdict = {True: " pass", False: " OVER", None: ""}[one.passes]
    return _row(
        f"  {one.name}",
        str(len(one.values)),
        f"{_figures(one.values)} {one.unit}",
        _figures(one.against),
        ratio,
        target + verdict,
    )


def _figures(values: Sequence[float]) -> str:
    low, high = quartiles(values)
    digits = 0 if statistics.median(values) >= 100 else 1
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def _row(name: str, count: str, value: str, against: str, ratio: str, target: str) -> str:
    return f"{name:<25.25}{count:>4} {value:>19} {against:>16}{ratio:>6}  {target}".rstrip()
