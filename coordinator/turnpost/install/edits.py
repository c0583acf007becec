"""What an install puts into one JSON file, and how it comes out again. Pure: each edit gives a changed copy.

`original` is what the file held before the first install, as far as that is known: what stood there already is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from turnpost.install import merge
from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import is_list, is_object

Path = tuple[str, ...]
"""The keys that lead to a value, from the outside in."""


class Edit(Protocol):
    """One thing that is put in and taken out. `add` raises SettingsRefused for a place of another kind than expected; the others find nothing there."""

    def add(self, value: dict[str, Any]) -> dict[str, Any]:
        """The value with it, once."""
        ...

    def remove(self, value: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        """The value without it; what only this had filled goes too."""
        ...

    def present(self, value: dict[str, Any]) -> bool:
        """Whether it shows that turnpost was installed here."""
        ...

    def shown(self, value: dict[str, Any]) -> str:
        """What of it stands in the value, for a person; empty when nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a settings file."""

    block: dict[str, Any]

    def add(self, value: dict[str, Any]) -> dict[str, Any]:
        """As `Edit` says."""
        return merge.merge(value, self.block)

    def remove(self, value: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - as `Edit`
        """As `Edit` says; an entry of ours is known by itself."""
        return merge.remove(value)

    def present(self, value: dict[str, Any]) -> bool:
        """As `Edit` says."""
        return bool(merge.entries(value))

    def shown(self, value: dict[str, Any]) -> str:
        """As `Edit` says."""
        events = dict.fromkeys(event for event, _ in merge.entries(value))
        return f"hooks: {', '.join(events)}" if events else ""


@dataclass(frozen=True, slots=True)
class Words:
    """Words in a list. They alone do not show an install: a person may have written them."""

    place: Path
    words: tuple[str, ...]

    def add(self, value: dict[str, Any]) -> dict[str, Any]:
        """As `Edit` says."""
        there = self._list(value)
        missing = [word for word in self.words if word not in there]
        return _put(value, self.place, [*there, *missing]) if missing else value

    def remove(self, value: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        """As `Edit` says."""
        kept = self._held(original)
        ours = [word for word in self.words if word not in kept]
        there = self._held(value)
        rest = [word for word in there if word not in ours]
        if rest == there:
            return value
        return _put(value, self.place, rest) if rest else _drop(value, self.place, original)

    def present(self, value: dict[str, Any]) -> bool:  # noqa: ARG002 - as `Edit`
        """As `Edit` says."""
        return False

    def shown(self, value: dict[str, Any]) -> str:
        """As `Edit` says."""
        there = [word for word in self.words if word in self._held(value)]
        return f"{self.place[0]}: {', '.join(there)}" if there else ""

    def _held(self, value: dict[str, Any]) -> list[Any]:
        """What there is to take from: nothing, where the place is of another kind."""
        try:
            return self._list(value)
        except SettingsRefused:
            return []

    def _list(self, value: dict[str, Any]) -> list[Any]:
        found = _get(value, self.place, [])
        if not is_list(found):
            raise SettingsRefused(f'"{".".join(self.place)}" is no list')
        return found


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an object. One under the same name that `is_ours` does not know is somebody else's, and refused."""

    place: Path
    value: dict[str, Any]
    is_ours: Callable[[object], bool]

    def add(self, value: dict[str, Any]) -> dict[str, Any]:
        """As `Edit` says."""
        found = _get(value, self.place, None)
        if found is not None and not self.is_ours(found):
            raise SettingsRefused(f'"{".".join(self.place)}" is there already, and not turnpost\'s own')
        return value if found == self.value else _put(value, self.place, self.value)

    def remove(self, value: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
        """As `Edit` says."""
        return _drop(value, self.place, original) if self.present(value) else value

    def present(self, value: dict[str, Any]) -> bool:
        """As `Edit` says."""
        return self.is_ours(self.find(value))

    def find(self, value: dict[str, Any]) -> object:
        """What stands there; None for nothing."""
        try:
            return _get(value, self.place, None)
        except SettingsRefused:
            return None

    def shown(self, value: dict[str, Any]) -> str:
        """As `Edit` says."""
        return f"tool server: {self.place[-1]}" if self.present(value) else ""


def add_all(edits: Sequence[Edit], value: dict[str, Any]) -> dict[str, Any]:
    """The value with all edits."""
    for edit in edits:
        value = edit.add(value)
    return value


def remove_all(edits: Sequence[Edit], value: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """The value without any of them."""
    for edit in edits:
        value = edit.remove(value, original)
    return value


def _get(value: object, place: Path, default: object) -> object:
    for depth, key in enumerate(place):
        if not is_object(value):
            raise SettingsRefused(f'"{".".join(place[:depth])}" is no object')
        if key not in value:
            return default
        value = value[key]
    return value


def _put(value: dict[str, Any], place: Path, new: object) -> dict[str, Any]:
    key, *rest = place
    return {**value, key: _put(value.get(key, {}), tuple(rest), new) if rest else new}


def _drop(value: dict[str, Any], place: Path, original: dict[str, Any]) -> dict[str, Any]:
    """Without what is there, and without the objects around it that are left empty and were not there before."""
    key, *rest = place
    before = original.get(key)
    inner = _drop(value[key], tuple(rest), before if is_object(before) else {}) if rest else {}
    if inner or (rest and key in original):
        return {**value, key: inner}
    return {name: item for name, item in value.items() if name != key}
