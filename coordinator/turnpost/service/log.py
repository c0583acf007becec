"""The coordinator's hand on the audit log of one home."""

from __future__ import annotations

from turnpost.core import audit


class Log:
    """Writes lines with an `action` and its context."""

    def __init__(self, root: str) -> None:
        self._root = root

    def write(self, action: str, **context: object) -> None:
        """Add one line."""
        audit.write(self._root, action, **context)
