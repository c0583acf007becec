"""Answers and failures as JSON values: one shape for the command line's `--json` and for the tools of agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from turnpost.core.errors import TurnpostError


def plain(value: object) -> Any:
    """A result as JSON values. A field whose name ends in `_` is called without it."""
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    if names is not None:
        return {name.rstrip("_"): plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        return {str(name): plain(item) for name, item in items.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("Iterable[object]", value)]
    return value


def failure(error: TurnpostError) -> dict[str, Any]:
    """A failure with its rule and its numbers."""
    return {"error": {"rule": error.rule, "message": error.message, **error.numbers}}


def known(error: BaseException) -> TurnpostError:
    """Any failure as one of ours: the system's own as `io`, everything unforeseen as `bug`."""
    if isinstance(error, TurnpostError):
        return error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return TurnpostError(f"{where}{error.strerror or error}", rule="io", errno=error.errno)
    words = " ".join(str(error).split())
    return TurnpostError(f"bug: {type(error).__name__}: {words} (TURNPOST_DEBUG=1 shows where)")
