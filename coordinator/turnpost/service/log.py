"""What the coordinator did, one JSON line each, in `$TURNPOST_HOME/turnpost.log`."""

from __future__ import annotations

from turnpost.core import clock, files, home, store

LIMIT = 4 * 1024 * 1024


class Log:
    """Writes lines with an `action` and its context; a full disk costs the line, not the coordinator."""

    def __init__(self, root: str) -> None:
        self._path = home.log(root)

    def write(self, action: str, **context: object) -> None:
        """Add one line."""
        line = {"at": clock.rfc3339(clock.now()), "action": action, **context}
        try:
            files.append(self._path, store.pack(line) + b"\n", LIMIT)
        except OSError:
            pass
