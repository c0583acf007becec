"""What a settings file was before turnpost wrote to it, kept so that an uninstall gives it back byte for byte.

One record per file under ``$TURNPOST_HOME/settings``, named after the file's path. It is written **before** the
file: a crash between the two leaves a record whose hashes fit nothing, which is harmless; the other order would
leave a changed file whose original is lost.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from turnpost.core import files, store
from turnpost.core.errors import BadFile, Newer
from turnpost.core.home import home

_VERSION = 1
_LIMIT = 8 * 1024 * 1024  # bytes: a 4 MiB original in base64, and room
# A reinstall that dies between record and file leaves the file as the install before wrote it.
_HASHES_KEPT = 4


@dataclass(frozen=True, slots=True)
class Backup:
    """`original` is None when there was no file, `written` are the hashes of what turnpost may have left there."""

    original: bytes | None
    written: tuple[str, ...]
    made_folder: bool

    def wrote(self, data: bytes | None) -> bool:
        """Whether a file's bytes are those of an install of turnpost's, not edited since."""
        return data is not None and _hash(data) in self.written

    def adding(self, data: bytes) -> Backup:
        """The same original, for a file that is about to become *data*."""
        return Backup(self.original, (*self.written, _hash(data))[-_HASHES_KEPT:], self.made_folder)


def folder() -> str:
    """Where the records and the lock of installs lie."""
    return home() + "/settings"


def load(path: Path) -> Backup | None:
    """The record for a settings file; None when there is none or it is damaged: then only our own entries can go.

    Raises Newer for one that a newer turnpost wrote: it alone knows how the file was.
    """
    try:
        record = json.loads(files.read(_record(path), _LIMIT))
        version = record["version"]
        if isinstance(version, int) and version > _VERSION:
            raise store.newer(_record(path), version, _VERSION)
        if version != _VERSION or record["path"] != str(path):
            return None
        original = record["original"]
        return Backup(
            None if original is None else base64.b64decode(original, validate=True),
            tuple(str(one) for one in record["written"]),
            bool(record["made_folder"]),
        )
    except Newer:
        raise
    except (FileNotFoundError, BadFile, ValueError, KeyError, TypeError):
        return None


def save(path: Path, backup: Backup) -> None:
    """Write the record, durably. Raises OSError."""
    original = None if backup.original is None else base64.b64encode(backup.original).decode("ascii")
    record = {
        "version": _VERSION,
        "path": str(path),
        "original": original,
        "written": list(backup.written),
        "made_folder": backup.made_folder,
    }
    files.write(_record(path), json.dumps(record, indent=1).encode("ascii"))


def forget(path: Path) -> None:
    """Remove the record."""
    files.unlink(_record(path))


def _record(path: Path) -> str:
    return f"{folder()}/{_hash(str(path).encode('utf-8', 'surrogateescape'))[:32]}.json"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
