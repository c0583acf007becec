"""Reading a file of the person's own settings: private, small, and checked before anything acts on it.

`tomllib` and pydantic (some 90 ms) are imported only where there is a file to distrust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from turnpost.core import files
from turnpost.core.errors import BadFile, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = 64 * 1024
_T = TypeVar("_T")


def values(path: str, rule: str) -> dict[str, object] | None:
    """What a file says, None when there is none. Raises UsageError (`rule`), in one line, for what is no TOML file of ours."""
    try:
        data = files.read(path, LIMIT)
    except FileNotFoundError:
        return None
    except (BadFile, OSError) as error:
        raise fault(path, rule, str(error)) from error
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except ValueError as error:  # no UTF-8, no TOML, or a number of thousands of digits
        raise fault(path, rule, f"it is no TOML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise fault(path, rule, "it is nested too deeply") from error


def validated(path: str, rule: str, kind: type[_T], found: Mapping[str, object]) -> _T:
    """The file's values as `kind`. Raises UsageError (`rule`) with the first thing that is wrong and where it is."""
    import json

    from pydantic import TypeAdapter, ValidationError

    try:
        # By way of JSON: strict then still takes 2 for 2.0, and a table for a dataclass.
        return TypeAdapter(kind).validate_json(json.dumps(found, default=str))
    except (ValueError, RecursionError) as error:
        if not isinstance(error, ValidationError):  # no number or text that JSON can hold
            raise fault(path, rule, " ".join(str(error).split())[:200]) from error
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        raise fault(
            path, rule, ": ".join(part for part in (_place(first["loc"]), message) if part)
        ) from error


def fault(path: str, rule: str, why: str) -> UsageError:
    """The refusal of a file that cannot be used."""
    return UsageError(f"{path} cannot be used: {why}", rule=rule)


def _place(loc: tuple[Any, ...]) -> str:
    """Where in the file: `rule 2, verdict`. People count from one."""
    words: list[str] = []
    for part in loc:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return ", ".join(words)
