"""The one module that writes files: whole or not at all, and nothing but plain files of ours is read."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from turnpost.core import clock, files, store
from turnpost.core.errors import BadFile, LockBusy


def test_a_written_file_is_private_and_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write(str(path), b"one")
    files.write(str(path), b"two")
    assert files.read(str(path)) == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_a_made_folder_is_private_and_one_that_is_there_stays(tmp_path: Path) -> None:
    files.mkdir(str(tmp_path / "x"))
    (tmp_path / "x" / "kept").touch()
    files.mkdir(str(tmp_path / "x"))
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o700
    assert (tmp_path / "x" / "kept").exists()


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    files.write(str(path), b"old")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="full"):
            files.write(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_write_goes_on_after_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    files.write(str(tmp_path / "a"), b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_write_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "victim")
    files.write(str(tmp_path / "a"), b"x")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "a").is_symlink()


def test_a_half_file_of_a_killed_writer_with_our_pid_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_counter", 6)
    (tmp_path / f".a.{os.getpid()}.7.tmp").write_bytes(b"ha")
    files.write(str(tmp_path / "a"), b"whole")
    assert files.read(str(tmp_path / "a")) == b"whole"
    assert files.names(str(tmp_path)) == ["a"]


def test_of_many_that_create_one_name_one_wins(tmp_path: Path) -> None:
    won: list[int] = []
    gate = threading.Barrier(8)

    def create(number: int) -> None:
        gate.wait()
        if files.create(str(tmp_path / "name"), str(number).encode(), durable=False):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number) for number in won] == [(tmp_path / "name").read_text()]
    assert os.listdir(tmp_path) == ["name"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "folder", "device", "huge"])
def test_what_is_no_plain_file_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "link":
        (tmp_path / "real").write_bytes(b"{}")
        path.symlink_to(tmp_path / "real")
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/null")
    else:
        path.write_bytes(b"x" * 11)
    with pytest.raises(BadFile):
        files.read(str(path), 10)
    if kind != "huge":
        assert store.load(str(path)) is None


def test_a_file_of_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 10)
    assert files.read(str(tmp_path / "x"), 10) == b"x" * 10


def test_a_strangers_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"{}")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(BadFile, match="belongs to user"):
        files.read(str(tmp_path / "x"))


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.read(str(tmp_path / "x"))
    assert files.names(str(tmp_path / "x")) == []
    files.unlink(str(tmp_path / "x"))


def test_a_dangling_link_is_there(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "nowhere")
    assert files.exists(str(tmp_path / "x"))
    assert not files.exists(str(tmp_path / "y"))


def test_a_touch_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "made")
    files.touch(str(tmp_path / "x"))
    with pytest.raises(OSError):  # noqa: PT011 - the number differs between systems
        files.mark(str(tmp_path / "x"))
    assert not (tmp_path / "made").exists()


def test_a_touch_makes_the_time_new(tmp_path: Path) -> None:
    path = tmp_path / "bell"
    files.touch(str(path))
    os.utime(path, (1, 1))
    files.touch(str(path))
    assert path.stat().st_mtime > 1_000_000


def test_a_log_over_its_limit_makes_place_for_a_new_one(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    for number in range(6):
        files.append(path, b"line %d\n" % number, 12)
    assert Path(path + ".1").read_bytes() == b"line 3\nline 4\n" or Path(path).read_bytes().endswith(
        b"line 5\n"
    )
    assert len(Path(path).read_bytes()) <= 12 + 7


def test_a_sweep_takes_old_temporary_files_only(tmp_path: Path) -> None:
    for name in (".a.1.1.tmp", ".b.1.1.tmp", "kept.tmp", ".kept"):
        (tmp_path / name).touch()
    for name in (".a.1.1.tmp", "kept.tmp", ".kept"):
        os.utime(tmp_path / name, (1, 1))
    assert files.sweep(str(tmp_path), 60.0) == 1
    assert sorted(os.listdir(tmp_path)) == [".b.1.1.tmp", ".kept", "kept.tmp"]
    assert files.sweep(str(tmp_path / "none"), 60.0) == 0


def test_a_busy_lock_says_so_after_its_time_and_no_later(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with files.Lock(path):
        start = clock.monotonic()
        with pytest.raises(LockBusy) as busy, files.Lock(path, 0.2):
            pytest.fail("both hold it")
        assert 0.2 <= clock.monotonic() - start < 5.0
    assert busy.value.numbers == {"seconds": 0.2}
    with files.Lock(path, 0.0):
        pass


def test_a_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), files.Lock(path):
        raise ZeroDivisionError
    with files.Lock(path, 0.0):
        assert Path(path).exists()
    assert Path(path).exists()


def test_our_lock_and_filelocks_exclude_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with filelock.FileLock(path), pytest.raises(LockBusy), files.Lock(path, 0.0):
        pytest.fail("both hold it")
    with files.Lock(path), pytest.raises(filelock.Timeout), filelock.FileLock(path, timeout=0.0):
        pytest.fail("both hold it")
    assert Path(path).exists()


def test_a_lock_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError), files.Lock(str(tmp_path / "lock")):  # noqa: PT011
        pytest.fail("it was followed")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b"\xff", b"[" * 200_000, b'{"a": 1}'])
def test_a_record_that_is_none_of_ours_loads_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert store.load(str(tmp_path / "x"), {"b": int}) is None


def noted(steps: list[str], name: str, real: Callable[..., object]) -> Callable[..., object]:
    """The same call, noted as `name`."""

    def call(*args: object, **named: object) -> object:
        steps.append(name)
        return real(*args, **named)

    return call


def fill(out: files.Stream) -> None:
    out.write(b"data")


@pytest.mark.parametrize("make", ["write", "create", "compose"])
def test_a_durable_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: str
) -> None:
    steps: list[str] = []

    def fsync(fd: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")

    for name in ("link", "rename"):
        monkeypatch.setattr(os, name, noted(steps, "name", getattr(os, name)))
    monkeypatch.setattr(os, "fsync", fsync)
    path = str(tmp_path / "x")
    if make == "compose":
        files.compose(path, fill)
    else:
        getattr(files, make)(path, b"data")
    assert steps == ["file", "name", "folder"]
    assert Path(path).read_bytes() == b"data"
