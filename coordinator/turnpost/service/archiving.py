"""The archive's housekeeping: at most one day is packed and one is dropped at a time."""

from __future__ import annotations

from collections.abc import Callable

from turnpost.core import archive, audit, clock, files, home

AGAIN = 3600.0
"""Seconds after which a day that could not be packed is looked at again: all its messages must be read for that."""


class Archivist:
    """What is known of the days between two steps; losing it costs only time."""

    def __init__(self, root: str, keeping: archive.Keeping, going: Callable[[], bool]) -> None:
        self._root = root
        self._keeping = keeping
        self._going = going
        self._tried: dict[str, float] = {}

    def due(self) -> bool:
        """Whether a step has something to do. Lists two folders."""
        return bool(self._to_pack() or self._to_drop())

    def step(self) -> None:
        """Pack one day, then drop one."""
        files.sweep(home.archive(self._root), 60.0)
        for day in self._to_pack()[:1]:
            self._tried[day] = clock.monotonic()
            last = archive.last_over(clock.now(), self._keeping.after_days)
            if archive.pack(self._root, day, last, self._going):
                audit.write(self._root, "archive", day=day, messages=len(archive.names(self._root, day)))
        for day in self._to_drop()[:1]:
            audit.write(self._root, "archive-drop", day=day, messages=archive.drop(self._root, day))

    def _to_pack(self) -> list[str]:
        now = clock.monotonic()
        days = archive.to_pack(files.names(self._root + "/messages"), self._keeping, clock.now())
        return [day for day in days if now - self._tried.get(day, -AGAIN) >= AGAIN]

    def _to_drop(self) -> list[str]:
        return archive.to_drop(archive.sizes(self._root), self._keeping, clock.now())
