"""How the audit log reads: a line for what happened, and under it what is known besides."""

from __future__ import annotations

from typing import cast

from turnpost.actions import results
from turnpost.cli import columns


def log(shown: results.Log) -> str:
    """Lines of the log, the oldest first."""
    if not shown.entries:
        return "nothing of the kind is in the log"
    older = [f"{shown.older} older fit too, --limit shows more"] if shown.older else []
    return "\n".join([*older, *(entry(one) for one in shown.entries)])


def entry(shown: results.Entry) -> str:
    """When, what, from whom to whom, and which way that is."""
    whom = " → ".join(name for name in (shown.from_, shown.to) if name)
    way = f"({shown.direction})" if shown.direction else ""
    line = columns.paragraph(" ".join(filter(None, [shown.at, shown.action, whom, way])))
    words = [shown.message or "", *(f"{name}={_detail(value)}" for name, value in shown.details.items())]
    more = " ".join(filter(None, words))
    return f"{line}\n{columns.paragraph(more, '    ')}" if more else line


def _detail(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{one}" for name, one in cast("dict[object, object]", value).items())
    return str(value)
