"""Where the Claude Code binary comes from: PATH, the user's cache, or npm, at versions that were tested."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

from .env import closed_env
from .errors import FetchError
from .npm import download
from .progress import Progress, Silent

NEWEST = "2.1.332"
OLDEST = "2.1.319"
TESTED = (NEWEST, OLDEST)
"""The versions turnpost is tested with, the newest first."""


def find_claude(min_version: str = OLDEST, progress: Progress | None = None) -> Path:
    """The `claude` on PATH when it is at least `min_version`, else what `fetch_claude(NEWEST)` gives."""
    on_path = shutil.which("claude")
    if on_path is not None:
        binary = Path(on_path).resolve()
        version = claude_version(binary)
        if version is not None and _numbers(version) >= _numbers(min_version):
            return binary
    return fetch_claude(NEWEST, progress)


def fetch_claude(version: str, progress: Progress | None = None) -> Path:
    """The binary of exactly `version`, from the cache or else through npm; raises FetchError.

    Safe to run several times at once: one downloads, the others wait for it.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", version):
        raise FetchError(f"{version!r} is not a version")
    binary = cached(version)
    if binary.exists():
        return binary
    show = progress or Silent()
    root = binary.parent.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / f".{version}.lock")
        _acquire(lock, version, show)
        try:
            if not binary.exists():
                _install(version, root, show)
        finally:
            lock.release()
    except OSError as error:
        raise FetchError(f"cannot write to the cache {root}: {error.strerror or error}") from error
    return binary


def cached(version: str) -> Path:
    """Where the binary of `version` is, or would be."""
    return cache_folder() / "claude" / version / "claude"


def cache_folder() -> Path:
    """`$TURNPOST_CACHE`, else turnpost's folder among the user's caches."""
    own = os.environ.get("TURNPOST_CACHE")
    if own:
        return Path(own).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "turnpost"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "turnpost"


def claude_version(binary: Path) -> str | None:
    """What `--version` of a binary says, e.g. `2.1.332`, asked in a closed environment.

    None when it does not run there, as an installation does not that needs a Node.js from the caller's PATH.
    """
    with tempfile.TemporaryDirectory(prefix="tp-") as home:
        env = closed_env(Path(home))
        try:
            answer = subprocess.run(
                [binary, "--version"],
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                text=True,
                timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    found = re.match(r"\d+(\.\d+)+", answer.stdout.strip())
    return found[0] if found and answer.returncode == 0 else None


def _acquire(lock: FileLock, version: str, progress: Progress) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.say(f"another run is fetching Claude Code {version}; waiting for it")
        lock.acquire()


def _install(version: str, root: Path, progress: Progress) -> None:
    """Download beside the target, check, and move the folder into place in one step.

    The lock must be held.
    """
    # Nobody else works on this version while the lock is held, so what lies here is from a run that was
    # killed.
    for old in root.glob(f".{version}.part-*"):
        shutil.rmtree(old, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f".{version}.part-", dir=root))
    try:
        binary = download(version, part, progress)
        said = claude_version(binary)
        if said != version:
            raise FetchError(f"the fetched Claude Code {version} does not run here (it says {said})")
        binary.parent.rename(root / version)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    progress.say(f"fetched Claude Code {version}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
