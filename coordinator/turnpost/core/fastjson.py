"""JSON by the compiled half of the standard library's `json`.

The package around it imports `re` and `enum`, and that takes longer than a bare interpreter's whole start: most of what
a hook would cost. On a Python without that half, or with another one, the package serves.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]
    Encode = Callable[[object, int], Iterable[str]]

_SPACE = " \t\n\r"


class _Reading:
    """What the scanner is told, as `json.JSONDecoder` does by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _unknown(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _package() -> tuple[Scan, Encode]:
    import json

    encoder = json.JSONEncoder(separators=(",", ":"), default=_unknown)
    return json.JSONDecoder().raw_decode, lambda value, _: encoder.iterencode(value)


def _compiled() -> tuple[Scan, Encode]:
    import _json  # type: ignore[import-not-found,unused-ignore]

    scan = _json.make_scanner(_Reading)  # type: ignore[arg-type,unused-ignore]
    encode = _json.make_encoder(
        None, _unknown, _json.encode_basestring_ascii, None, ":", ",", False, False, True
    )
    if scan('[1.5,{"a":null}]', 0)[0] != [1.5, {"a": None}] or "".join(encode([True], 0)) != "[true]":
        raise TypeError("another kind of _json")
    return scan, encode


try:
    _scan, _encode = _compiled()
except (ImportError, AttributeError, TypeError, ValueError):
    _scan, _encode = _package()


def loads(data: bytes) -> Any:
    """The one value in a UTF-8 document. Raises ValueError, or RecursionError for one that is nested too deep.

    What cannot be read goes to the package, for its account of what is wrong.
    """
    text = data.decode("utf-8", "surrogatepass")
    try:
        value, end = _scan(text, len(text) - len(text.lstrip(_SPACE)))
        if not text[end:].strip(_SPACE):
            return value
    except (StopIteration, SystemError):
        # The scanner's errors are of a class in the package: while that is not loaded it fails without one.
        pass
    import json

    return json.loads(text)


def dumps(value: object) -> str:
    """A value as JSON in ASCII, without spaces. Raises TypeError for what JSON does not know."""
    return "".join(_encode(value, 0))
