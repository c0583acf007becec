"""The spool's folder, each check on a good one and on broken ones."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from tests.actions.fakes import FakeHome
from tests.core import spool as mailing
from tests.doctor.kit import failing, found, odd
from turnpost.core import files
from turnpost.doctor import spool
from turnpost.doctor.spool import Entry, Space

ME = os.geteuid()
FOLDER = Entry("/s", stat.S_IFDIR | 0o700, ME)
FILE = Entry("/s/f", stat.S_IFREG | 0o600, ME)
ROOM = Space(10 << 30, 1000, False)


def test_a_spool_in_use_is_fine(home: FakeHome) -> None:
    agent = home.agent("alpha")
    mailing.send(home.root, "hello", agent)
    assert odd(spool.check_all(home.root)) == []


def test_no_spool_yet_is_fine(tmp_path: Path) -> None:
    assert odd(spool.check_all(str(tmp_path / "none"))) == []


@pytest.mark.parametrize(
    ("root", "status"),
    [
        (FOLDER, "ok"),
        (FOLDER._replace(mode=stat.S_IFDIR | 0o755), "warn"),
        (FOLDER._replace(mode=stat.S_IFDIR | 0o000), "fail"),
        (FOLDER._replace(mode=stat.S_IFDIR | 0o500), "fail"),
        (FOLDER._replace(mode=stat.S_IFLNK | 0o777), "fail"),
        (FOLDER._replace(mode=stat.S_IFREG | 0o600), "fail"),
        (FOLDER._replace(uid=ME + 1), "fail"),
    ],
)
def test_the_folder_itself(root: Entry, status: str) -> None:
    check = spool.check_root(root, ME)
    assert check.status == status
    assert bool(check.mend) == (status != "ok")


def test_an_unreadable_spool_fails_and_nothing_more_is_asked_of_it(home: FakeHome) -> None:
    home.agent("alpha")
    os.chmod(home.root, 0o000)
    try:
        checks = spool.check_all(home.root)
    finally:
        os.chmod(home.root, 0o700)
    assert failing(checks) == ["spool"]
    assert len(checks) == 1


@pytest.mark.parametrize(
    ("entry", "name", "status"),
    [
        (FILE._replace(mode=stat.S_IFLNK | 0o777), "links", "fail"),
        (FILE._replace(uid=ME + 1), "owner", "fail"),
        (FILE._replace(mode=stat.S_IFREG | 0o000), "modes", "fail"),
        (FILE._replace(mode=stat.S_IFREG | 0o644), "modes", "warn"),
        (FOLDER._replace(mode=stat.S_IFDIR | 0o600), "modes", "fail"),
    ],
)
def test_what_lies_in_it(entry: Entry, name: str, status: str) -> None:
    assert spool.check_private([FILE, FOLDER], ME) == []
    (check,) = spool.check_private([FILE, entry, FOLDER], ME)
    assert (check.name, check.status) == (name, status)


def test_a_link_in_the_spool_is_found(home: FakeHome) -> None:
    home.agent("alpha")
    os.symlink("/etc/passwd", home.root + "/names/beta")
    assert "links" in failing(spool.check_all(home.root))


@pytest.mark.parametrize(
    ("room", "status"),
    [
        (ROOM, "ok"),
        (ROOM._replace(inodes=-1), "ok"),
        (ROOM._replace(free=50 << 20), "warn"),
        (ROOM._replace(free=4096), "fail"),
        (ROOM._replace(inodes=0), "fail"),
        (ROOM._replace(read_only=True), "fail"),
    ],
)
def test_the_room_for_records(room: Space, status: str) -> None:
    assert [check.status for check in spool.check_space(room)] == [status]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_record_that_cannot_be_written_fails(
    home: FakeHome, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    home.agent("alpha")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "write", refuse)
    check = found(spool.check_all(home.root), "writing")
    assert check.status == "fail"
    assert os.strerror(number) in check.line


def test_the_trial_record_is_taken_away(home: FakeHome) -> None:
    home.agent("alpha")
    before = home.tree()
    spool.check_all(home.root)
    assert home.tree() == before


def test_a_damaged_record_is_named(home: FakeHome) -> None:
    agent = home.agent("alpha")
    state = Path(home.box(agent).folder, "state.json")
    assert spool.damaged(home.root) == []
    state.write_bytes(b'{"v":')
    check = found(spool.check_all(home.root), "records")
    assert check.status == "fail"
    assert f"agents/{agent['key']}/state.json" in check.line


def test_a_damaged_entry_and_a_lost_message_are_named(home: FakeHome) -> None:
    agent = home.agent("alpha")
    first, second = (mailing.send(home.root, body, agent) for body in ("one", "two"))
    box = home.box(agent)
    entry = Path(box.queue, box.waiting()[0])
    files.write(str(entry), b"\0\0")
    message = next(Path(home.root, "messages").glob(f"*/{second}/message.json"))
    files.write(str(message), b"")
    assert first in str(entry)
    assert spool.damaged(home.root) == [str(entry), str(message)]


def test_a_file_in_the_place_of_a_queue_is_named(home: FakeHome) -> None:
    queue = Path(home.box(home.agent("alpha")).queue)
    queue.rmdir()
    queue.touch(0o600)
    assert spool.damaged(home.root) == [str(queue)]


def test_a_name_that_leads_nowhere_is_named(home: FakeHome) -> None:
    home.agent("alpha")
    Path(home.root, "names", "ghost").write_text("ag-nobody")
    assert spool.damaged(home.root) == [f"{home.root}/names/ghost"]


def test_an_agent_that_died_in_the_making_is_no_damage(home: FakeHome) -> None:
    home.agent("alpha")
    Path(home.root, "agents", "ag-half", "queue").mkdir(parents=True)
    assert spool.damaged(home.root) == []


def test_a_config_that_cannot_be_used_fails(home: FakeHome) -> None:
    home.agent("alpha")
    Path(home.root, "config.toml").write_text("body_bytes = 'many'")
    os.chmod(home.root + "/config.toml", 0o600)
    assert failing(spool.check_all(home.root)) == ["config"]


def test_a_lock_that_is_held_is_named_with_its_holder(home: FakeHome) -> None:
    agent = home.agent("alpha")
    path = home.box(agent).folder + "/lock"
    with open(path, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ((busy, pid),) = spool.busy_locks(home.root)
        check = found(spool.check_all(home.root), "locks")
    assert busy == path
    assert pid in (os.getpid(), None)  # macOS does not tell
    assert check.status == "fail"
    assert path in check.line
    assert spool.busy_locks(home.root) == []
