"""That the harness sees what it must: no call by which the package changes the disk or another process escapes its count."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash import points
from turnpost.data import hooks_dir, import_root

pytestmark = pytest.mark.process

OUTSIDE = ("lab", "demo", "doctor")
"""Parts that carry no message and write beside the spool: a laboratory, a show, an examination."""
MODULES = ("os", "posix", "fcntl", "shutil", "subprocess", "tempfile", "signal", "mmap")
HARMLESS = {
    "os": {
        "access", "close", "environ.get", "fdopen", "fsdecode", "fsencode", "fstat", "geteuid", "getpid", "getppid", "isatty", "listdir", "lseek", "lstat",
        "path", "pipe", "read", "readlink", "scandir", "stat", "statvfs", "urandom", "walk", "dup2", "get_terminal_size", "getcwd", "getuid",
        "_exit", "environ", "pidfd_open", "strerror",
    },
    "posix": {"access", "close", "geteuid", "listdir", "read", "stat", "environ"},
    "fcntl": set(),
    "shutil": {"which", "get_terminal_size"},
    "subprocess": {"CompletedProcess"},
    "tempfile": set(),
    "signal": {"signal"},
    "mmap": set(),
}  # fmt: skip
"""Calls that change nothing which dying would not change as well."""
WRITERS = ("write_text", "write_bytes")


def _kill(folder: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _file(folder: Path) -> int:
    return os.open(folder / "file", os.O_RDWR | os.O_CREAT)


SEEN: dict[str, Callable[[Path], object]] = {
    "os.open": _file,
    "os.write": lambda folder: os.write(_file(folder), b"x"),
    "os.fsync": lambda folder: os.fsync(_file(folder)),
    "os.fdatasync": lambda folder: os.fdatasync(_file(folder)),
    "os.rename": lambda folder: os.rename(folder / "old", folder / "new"),
    "os.replace": lambda folder: os.replace(folder / "old", folder / "new"),
    "os.link": lambda folder: os.link(folder / "old", folder / "new", follow_symlinks=False),
    "os.symlink": lambda folder: os.symlink(folder / "old", folder / "new"),
    "os.unlink": lambda folder: os.unlink(folder / "old"),
    "os.remove": lambda folder: os.remove(folder / "old"),
    "os.mkdir": lambda folder: os.mkdir(folder / "new"),
    "os.rmdir": lambda folder: os.rmdir(folder / "empty"),
    "os.utime": lambda folder: os.utime(folder / "old"),
    "os.truncate": lambda folder: os.truncate(folder / "old", 0),
    "os.ftruncate": lambda folder: os.ftruncate(_file(folder), 0),
    "os.chmod": lambda folder: os.chmod(folder / "old", 0o600),
    "os.fchmod": lambda folder: os.fchmod(_file(folder), 0o600),
    "os.mkfifo": lambda folder: os.mkfifo(folder / "new"),
    "os.kill": _kill,
    "posix.open": _file,
    "posix.unlink": lambda folder: os.unlink(folder / "old"),
    "fcntl.flock": lambda folder: fcntl.flock(_file(folder), fcntl.LOCK_EX),
    "shutil.rmtree": lambda folder: shutil.rmtree(folder / "empty"),
    "subprocess.Popen": lambda folder: subprocess.Popen(["true"]).wait(),
    "subprocess.run": lambda folder: subprocess.run(["true"]),
}
"""Calls that change something, with an example of each. Only what the harness counts may be here."""
_POINT = {
    "open": "create", "write": "write", "fsync": "fsync", "fdatasync": "fdatasync", "replace": "os.rename", "unlink": "os.remove",
    "ftruncate": "os.truncate", "fchmod": "os.chmod", "mkfifo": "mkfifo", "rmtree": "os.rmdir", "run": "subprocess.Popen",
}  # fmt: skip


def sources() -> Iterator[Path]:
    for folder in (import_root() / "turnpost", hooks_dir()):
        for path in sorted(folder.rglob("*.py")):
            if not set(path.relative_to(folder).parts) & set(OUTSIDE):
                yield path


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a file by its last two words."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                owner = node.func.value
                yield f"{owner.id if isinstance(owner, ast.Name) else ''}.{node.func.attr}", node
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node


def test_every_call_of_the_package_that_changes_something_is_one_the_harness_counts() -> None:
    used = {}
    for path in sources():
        for name, _ in calls(path):
            module, _, function = name.partition(".")
            if module in MODULES and function not in HARMLESS[module]:
                used[name] = path.name
    assert {"os.open", "os.write", "os.rename", "subprocess.Popen"} <= used.keys(), (
        "it looks in the wrong place"
    )
    assert not used.keys() - SEEN.keys(), f"is it counted at all? {used}"


def test_nothing_is_written_around_the_counted_writes() -> None:
    for path in sources():
        for name, node in calls(path):
            assert name.partition(".")[2] not in WRITERS, f"{path.name}:{node.lineno}"
            if name == "open" and len(node.args) > 1:
                mode = node.args[1]
                reads = isinstance(mode, ast.Constant) and str(mode.value) in ("r", "rb")
                assert reads or path.name == "app.py", f"{path.name}:{node.lineno}"
        for line in ast.walk(ast.parse(path.read_text())):
            if isinstance(line, ast.ImportFrom):
                assert line.module not in MODULES, (
                    f"{path.name}:{line.lineno}: its calls would not be seen by name"
                )


@pytest.mark.parametrize("name", SEEN)
def test_a_call_that_changes_something_is_a_point(name: str, tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    (tmp_path / "empty").mkdir()

    def act() -> None:
        SEEN[name](tmp_path)

    outcome = points.struck(act)
    assert outcome.error is None, outcome.trace
    assert not outcome.unknown
    function = name.partition(".")[2]
    assert _POINT.get(function, name) in outcome.found[:-1]


def test_a_write_that_is_torn_leaves_its_first_half(tmp_path: Path) -> None:
    def act() -> None:
        os.write(_file(tmp_path), b"abcdef")

    assert points.struck(act, "torn", 2).killed
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_full_disk_stays_full_and_other_failures_come_once(tmp_path: Path) -> None:
    def act() -> list[str]:
        fd = _file(tmp_path)
        told = []
        for _ in range(2):
            for call in (lambda: os.write(fd, b"x"), lambda: os.fsync(fd)):
                try:
                    call()
                    told.append("")
                except OSError as error:
                    told.append(str(error.strerror))
        return told

    assert points.struck(act, "full", 2).result == [
        "No space left on device",
        "",
        "No space left on device",
        "",
    ]
    assert points.struck(act, "broken", 3).result == ["", "Input/output error", "", ""]


def test_a_kill_comes_before_its_call_and_after_the_last(tmp_path: Path) -> None:
    def act() -> None:
        os.mkdir(tmp_path / "one")
        os.mkdir(tmp_path / "two")

    for at, left in ((1, []), (2, ["one"]), (3, ["one", "two"])):
        for name in ("one", "two"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        assert points.struck(act, "kill", at).killed
        assert sorted(os.listdir(tmp_path)) == left
    assert not points.struck(lambda: None, "kill", 2).killed
