"""The JSON schema of a result, read from its type: what `documents.plain` makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_SIMPLE: dict[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", object: "object"
}  # fmt: skip


def schema(kind: Any) -> dict[str, Any]:
    """The schema of values of this type. Raises TypeError for what no result holds."""
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [schema(one) for one in args]}
    if origin is tuple:
        return {"type": "array", "items": schema(args[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": schema(args[1])}
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        named = {name.rstrip("_"): schema(hint) for name, hint in hints.items()}
        return {"type": "object", "properties": named, "required": list(named)}
    raise TypeError(f"no schema for {kind!r}")
