"""Changing a JSON text so that what did not change keeps its letters.

A settings file is its owner's: written out anew, a line of permissions would become forty lines, ``1.0`` might
become ``1`` and the difference shown before an install would bury the few lines that matter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeGuard

_SPACE = re.compile(r"[ \t\r\n]*")
_FIRST_INDENT = re.compile(r"\n([ \t]+)\S")
_DEFAULT_INDENT = "  "


class NotJson(ValueError):
    """The text is no JSON that can be changed safely; the message says where."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A member of an object or an item of a list. `lead` is the white space before it."""

    key: str | None
    lead: str
    head: str  # the key as written, with the colon and the spaces around it; empty in a list
    node: _Node
    trail: str  # white space between the value and the comma


@dataclass(frozen=True, slots=True)
class _Node:
    """A value and the place it was read from."""

    value: Any
    text: str
    parts: list[_Part] = field(default_factory=list["_Part"])
    tail: str = ""  # white space before the closing bracket


@dataclass(frozen=True, slots=True)
class _Style:
    indent: str
    newline: str


def load(text: str) -> Any:
    """The value of a JSON text.

    Raises NotJson for what is no JSON, for NaN and Infinity, for a text nested too deeply, and for an object that
    has a key twice: a rewrite would drop one of the two.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} in line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(" ".join(str(error).split(";")[0].split())) from None


def rewrite(text: str, new: dict[str, Any]) -> str:
    """*text* changed to hold *new*, an object; every part that both have keeps its own letters.

    Raises NotJson like `load`, and when the text is no object.
    """
    old = load(text)
    if not is_object(old):
        raise NotJson("it is not an object")
    style = _style(text)
    begin = _skip(text, 0)
    try:
        node, end = _scan(text, begin)
        result = text[:begin] + _rewrite(node, new, style, 0) + text[end:]
        if _same(load(result), new):
            return result
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    # The letters of the old text were not kept: the right value matters more.
    return text[:begin] + _render(new, style, 0) + text[end:]


def render(value: dict[str, Any]) -> str:
    """A new file's text: two spaces of indent and a final newline."""
    return _render(value, _Style(_DEFAULT_INDENT, "\n"), 0) + "\n"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value that `load` gave is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value that `load` gave is a list."""
    return isinstance(value, list)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotJson(f"it has the key {twice!r} twice in one object")
    return result


def _constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no JSON value")


def _style(text: str) -> _Style:
    found = _FIRST_INDENT.search(text)
    return _Style(found[1] if found else _DEFAULT_INDENT, "\r\n" if "\r\n" in text else "\n")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _scan(text: str, begin: int) -> tuple[_Node, int]:
    """The value that begins at *begin*, and where it ends. The text was accepted by `load` before."""
    bracket = text[begin]
    if bracket not in "{[":
        value, end = json.JSONDecoder().raw_decode(text, begin)
        return _Node(value, text[begin:end]), end
    parts: list[_Part] = []
    at = begin + 1
    while True:
        start = _skip(text, at)
        if text[start] in "}]":
            tail = text[at:start]
            break
        part, after = _scan_part(text, at, start, keyed=bracket == "{")
        if text[after] == ",":
            parts.append(part)
            at = after + 1
            continue
        # White space before the closing bracket belongs to the bracket, whoever stands last.
        tail = part.trail
        parts.append(_Part(part.key, part.lead, part.head, part.node, ""))
        start = after
        break
    end = start + 1
    if bracket == "{":
        value = {part.key: part.node.value for part in parts}
    else:
        value = [part.node.value for part in parts]
    return _Node(value, text[begin:end], parts, tail), end


def _scan_part(text: str, lead: int, start: int, *, keyed: bool) -> tuple[_Part, int]:
    key, at = None, start
    if keyed:
        key, at = json.JSONDecoder().raw_decode(text, start)
        at = _skip(text, _skip(text, at) + 1)
    node, end = _scan(text, at)
    after = _skip(text, end)
    return _Part(key, text[lead:start], text[start:at], node, text[end:after]), after


def _rewrite(node: _Node, new: Any, style: _Style, depth: int) -> str:
    if _same(node.value, new):
        return node.text
    if is_object(node.value) and is_object(new):
        return _joined(node, _members(node, new, style, depth), "{}", style, depth)
    if is_list(node.value) and is_list(new):
        return _joined(node, _items(node, new, style, depth), "[]", style, depth)
    return _render(new, style, depth)


def _members(node: _Node, new: dict[str, Any], style: _Style, depth: int) -> list[tuple[_Part | None, str]]:
    """Per member of the new object: the old part it comes from, if any, and its text."""
    old = {part.key: part for part in node.parts}
    result: list[tuple[_Part | None, str]] = []
    for key, value in new.items():
        part = old.get(key)
        if part is None:
            head = json.dumps(key, ensure_ascii=False) + ": "
            result.append((None, head + _render(value, style, depth + 1)))
        else:
            result.append((part, part.head + _rewrite(part.node, value, style, depth + 1)))
    return result


def _items(node: _Node, new: list[Any], style: _Style, depth: int) -> list[tuple[_Part | None, str]]:
    if len(new) == len(node.parts):
        pairs = zip(node.parts, new, strict=True)
        return [(part, _rewrite(part.node, value, style, depth + 1)) for part, value in pairs]
    result: list[tuple[_Part | None, str]] = []
    at = 0
    for value in new:
        found = next((n for n in range(at, len(node.parts)) if _same(node.parts[n].node.value, value)), None)
        if found is None:
            result.append((None, _render(value, style, depth + 1)))
        else:
            result.append((node.parts[found], node.parts[found].node.text))
            at = found + 1
    return result


def _joined(
    node: _Node, pieces: list[tuple[_Part | None, str]], empty: str, style: _Style, depth: int
) -> str:
    if not pieces:
        return empty
    added = any(part is None for part, _ in pieces)
    lead = node.parts[0].lead if node.parts else ""
    tail = node.tail
    spread = added and "\n" not in lead
    if spread:
        # What is added takes many lines: on one line with the rest nobody could read it.
        lead = style.newline + style.indent * (depth + 1)
        tail = style.newline + style.indent * depth
    texts: list[str] = []
    for index, (part, text) in enumerate(pieces):
        own = lead if part is None or spread or index == 0 else part.lead
        trail = part.trail if part is not None and index < len(pieces) - 1 else ""
        texts.append(own + text + trail)
    return empty[0] + ",".join(texts) + tail + empty[1]


def _render(value: Any, style: _Style, depth: int) -> str:
    lines = json.dumps(value, indent=style.indent, ensure_ascii=False).split("\n")
    return (style.newline + style.indent * depth).join(lines)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, the order of keys included: for Python 1, 1.0 and true are equal."""
    return json.dumps(one) == json.dumps(other)
