"""Hears the bells in `pending/`. An event is a hint: whoever wakes looks at the folder itself."""

from __future__ import annotations

import threading

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver


class Bells(FileSystemEventHandler):
    """Sets `rung` whenever something happens in the folder. Nothing is renamed out of it, which watchdog would hold back."""

    def __init__(self, folder: str) -> None:
        self.rung = threading.Event()
        self._folder = folder
        self._observer: BaseObserver | None = None

    def start(self) -> None:
        """Begin to listen. Without a watch (limits reached) the rounds alone go on, more slowly."""
        try:
            observer = Observer()  # some versions ask the system here, others later
            observer.schedule(self, self._folder)
            observer.daemon = True
            observer.start()
        except OSError:
            return
        self._observer = observer

    def stop(self) -> None:
        """Stop listening."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(2.0)

    def on_created(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - watchdog's signature
        """A recipient got its first message."""
        self.rung.set()

    def on_modified(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - watchdog's signature
        """Another one."""
        self.rung.set()
