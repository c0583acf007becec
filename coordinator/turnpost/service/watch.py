"""Hears the bells in `pending/`. An event is a hint: whoever wakes looks at the folder itself."""

from __future__ import annotations

import threading

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer


class Bells(FileSystemEventHandler):
    """Sets `rung` whenever something happens in the folder. Nothing is renamed out of it, which watchdog would hold back."""

    def __init__(self, folder: str) -> None:
        self.rung = threading.Event()
        self._observer = Observer()
        self._observer.schedule(self, folder)
        self._observer.daemon = True
        self._watching = False

    def start(self) -> None:
        """Begin to listen. Without a watch (limits reached) the rounds alone go on, more slowly."""
        try:
            self._observer.start()
            self._watching = True
        except OSError:
            pass

    def stop(self) -> None:
        """Stop listening."""
        if self._watching:
            self._observer.stop()
            self._observer.join(2.0)

    def on_created(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - watchdog's signature
        """A recipient got its first message."""
        self.rung.set()

    def on_modified(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - watchdog's signature
        """Another one."""
        self.rung.set()
