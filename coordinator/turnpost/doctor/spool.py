"""The spool's folder: can it be written, is it private, are its records whole, is a lock stuck?"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from turnpost import config
from turnpost.core import archive, files, home, mailbox, procs, registry, store
from turnpost.core.errors import BadFile, LockBusy, Newer, UsageError
from turnpost.core.mailbox import Mailbox
from turnpost.doctor.results import Check, fail, ok, warn

_WALK = 50_000
"""Most entries looked at: a spool with years of history must not take minutes."""
_LOCK_SECONDS = 0.5
_TIGHT = 1 << 20
_LITTLE = 100 << 20


class Entry(NamedTuple):
    """One file or folder of the spool."""

    path: str
    mode: int
    uid: int


class Space(NamedTuple):
    """Room on the spool's file system, in bytes, and free inodes (-1 where it has no such count)."""

    free: int
    inodes: int
    read_only: bool


def check_all(root: str) -> list[Check]:
    """Everything about the spool's folder. Writes one small file into it and takes it away again."""
    if not os.path.lexists(root):
        return [ok("spool", f"{root} is not there yet; the first launch, install or message makes it")]
    entries = list(walk(root))
    if (own := check_root(entries[0], os.geteuid())).status == "fail":
        return [own]
    checks = [
        own,
        *check_private(entries[1:], os.geteuid()),
        *check_space(space(root)),
        *check_writable(try_write(root)),
        *check_config(root),
        *check_records(damaged(root), root),
        *check_newer(newer(entries), root),
        *check_locks(busy_locks(root)),
    ]
    if len(entries) >= _WALK:
        checks.append(ok("spool", f"only its first {_WALK} files were looked at"))
    return checks


def check_root(root: Entry, me: int) -> Check:
    """The folder itself."""
    if stat.S_ISLNK(root.mode):
        return fail("spool", f"{root.path} is a link", "set TURNPOST_HOME to the folder it leads to")
    if not stat.S_ISDIR(root.mode):
        return fail(
            "spool", f"{root.path} is no folder", "move it away, or set TURNPOST_HOME to another folder"
        )
    if root.uid != me:
        line = f"{root.path} belongs to user {root.uid}, not to {me}"
        return fail("spool", line, f"chown -R {me} {root.path}")
    if root.mode & 0o700 != 0o700:
        line = f"{root.path} has mode {root.mode & 0o777:04o}: it cannot be read and written"
        return fail("spool", line, f"chmod 0700 {root.path}")
    if root.mode & 0o022:
        line = f"{root.path} has mode {root.mode & 0o777:04o}: other users can write in it, so hooks and commands leave it alone"
        return fail("spool", line, f"chmod 0700 {root.path}, and look at what lies in it")
    if root.mode & 0o077:
        line = f"{root.path} has mode {root.mode & 0o777:04o}: other users can look into it"
        return warn("spool", line, f"chmod 0700 {root.path}")
    return ok("spool", f"{root.path} is private (0700)")


def check_private(entries: Sequence[Entry], me: int) -> list[Check]:
    """What lies in it: links, devices, foreign owners, and what is open to others or closed to us."""
    links = [entry for entry in entries if stat.S_ISLNK(entry.mode)]
    plain = [entry for entry in entries if not stat.S_ISLNK(entry.mode)]
    odd = [entry for entry in plain if not _expected(entry)]
    foreign = [entry for entry in plain if entry.uid != me]
    closed = [entry for entry in plain if entry.mode & _own(entry) != _own(entry)]
    opened = [entry for entry in plain if entry.mode & 0o077]
    checks: list[Check] = []
    if links:
        checks.append(fail("links", f"{_some(links)}: turnpost follows no links", "remove them"))
    if odd:
        checks.append(fail("kinds", f"{_some(odd)}: neither a file nor a folder", "remove them"))
    if foreign:
        checks.append(fail("owner", f"{_some(foreign)}: of another user", f"chown -R {me} the folder"))
    if closed:
        checks.append(
            fail("modes", f"{_some(closed)}: cannot be read or written", "chmod -R u+rwX the folder")
        )
    if opened:
        checks.append(warn("modes", f"{_some(opened)}: open to other users", "chmod -R go-rwx the folder"))
    return checks


def check_space(room: Space) -> list[Check]:
    """Room for records."""
    if room.read_only:
        return [fail("disk", "the spool's file system is read-only", "mount it writable")]
    if room.inodes == 0:
        return [fail("disk", "the spool's file system has no inodes left", "remove files from it")]
    shown = f"{room.free / (1 << 20):.1f} MiB free"
    if room.free < _TIGHT:
        return [fail("disk", f"{shown}: the disk is full", "free some space; messages cannot be recorded")]
    if room.free < _LITTLE:
        return [warn("disk", f"{shown}: little", "free some space")]
    return [ok("disk", shown)]


def check_writable(trouble: str) -> list[Check]:
    """Whether a record could be written just now."""
    if not trouble:
        return []
    return [
        fail("writing", f"a record cannot be written: {trouble}", "mend that; nothing can be sent until then")
    ]


def check_config(root: str) -> list[Check]:
    """The person's own settings."""
    try:
        config.load(root)
    except UsageError as error:
        return [fail("config", error.message, "mend the file, or take it away: the defaults are fine")]
    return []


def check_records(broken: Sequence[str], root: str) -> list[Check]:
    """Records that cannot be read."""
    if not broken:
        return []
    shown = ", ".join(path.removeprefix(root + "/") for path in broken[:3])
    more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
    return [
        fail(
            "records",
            f"damaged: {shown}{more}",
            f"restore them from a backup, or move them out of {root}; what they were about is lost, the rest goes on",
        )
    ]


def check_newer(found: Sequence[Newer], root: str) -> list[Check]:
    """Records that only a newer turnpost understands."""
    if not found:
        return []
    shown = ", ".join(str(one.numbers["path"]).removeprefix(root + "/") for one in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    versions = max(int(str(one.numbers["version"])) for one in found)
    return [
        fail(
            "newer",
            f"a newer turnpost wrote {shown}{more} (version {versions}, this one knows {store.VERSION}): they are kept, "
            "and nothing is done with them",
            "upgrade turnpost to the version that wrote them, or a later one, and install its hooks",
        )
    ]


def check_locks(busy: Sequence[tuple[str, int | None]]) -> list[Check]:
    """Locks that somebody has held for longer than any step takes."""
    return [
        fail(
            "locks",
            f"{path} has been held for over {_LOCK_SECONDS:g} s by {f'process {pid}' if pid else 'another process'}",
            f"look at that process ({_command(pid)}); the lock is free as soon as it ends",
        )
        for path, pid in busy
    ]


def walk(root: str) -> Iterator[Entry]:
    """The folder and what is in it, links not followed."""
    count = 0
    stack = [root]
    while stack and count < _WALK:
        path = stack.pop()
        try:
            info = os.lstat(path)
            inside = sorted(os.listdir(path)) if stat.S_ISDIR(info.st_mode) else []
        except FileNotFoundError:
            continue  # in a spool in use files come and go
        except OSError:
            inside = []  # its mode says why
            info = os.lstat(path)
        count += 1
        yield Entry(path, info.st_mode, info.st_uid)
        stack += [f"{path}/{name}" for name in reversed(inside)]


def space(root: str) -> Space:
    """Room on the spool's file system."""
    found = os.statvfs(root)
    inodes = found.f_favail if found.f_files else -1
    return Space(found.f_bavail * found.f_frsize, inodes, bool(found.f_flag & os.ST_RDONLY))


def try_write(root: str) -> str:
    """Why a record cannot be written; empty when it can."""
    path = f"{root}/.doctor-{os.getpid()}"
    try:
        files.write(path, b"x" * 65_536)
    except OSError as error:
        return error.strerror or str(error)
    finally:
        try:
            files.unlink(path)
        except OSError:
            pass
    return ""


def damaged(root: str) -> list[str]:
    """Records of agents, names and waiting mail, and archives, that cannot be read."""
    found = [path for key in files.names(home.agents(root)) for path in _damaged_of(root, key)]
    found += [home.packed(root, day) for day in archive.sizes(root) if not archive.is_whole(root, day)]
    for name in files.names(root + "/names"):
        key = _word(home.name(root, name))
        if key is None or not _reads(registry.load_agent, root, key):
            found.append(home.name(root, name))
    return found


def newer(entries: Sequence[Entry]) -> list[Newer]:
    """The records of a newer turnpost among these files."""
    found: list[Newer] = []
    for entry in entries:
        if stat.S_ISREG(entry.mode) and not entry.path.endswith((".toml", ".log", ".md")):
            try:
                store.load(entry.path)
            except Newer as error:
                found.append(error)
    return found


def busy_locks(root: str) -> list[tuple[str, int | None]]:
    """Locks that could not be had, with their holders where the platform tells. Coordinators hold theirs for life."""
    paths = [
        f"{root}/registry.lock",
        *(f"{home.agent(root, key)}/lock" for key in files.names(home.agents(root))),
    ]
    busy: list[tuple[str, int | None]] = []
    for path in paths:
        if files.exists(path):
            try:
                with files.Lock(path, _LOCK_SECONDS):
                    pass
            except LockBusy:
                busy.append((path, holder(path)))
            except OSError:
                pass  # its mode says why, and that was looked at
    return busy


def holder(path: str) -> int | None:
    """The process that holds a lock on a file, from the kernel's table; None where there is none or it is unknown."""
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return None
    for row in rows:
        if "FLOCK" in row and row[-3].rpartition(":")[2] == str(inode) and int(row[-4]) > 0:
            return int(row[-4])
    return None


def _damaged_of(root: str, key: str) -> Iterator[str]:
    box = Mailbox(root, key)
    records = {
        "agent.json": _reads(registry.load_agent, root, key),
        "state.json": _reads(store.load_state, root, key),
        "waiter.json": _reads(store.load_waiter, root, key),
    }
    # Killed in its very making an agent has a folder and no record; that is only damage when mail lies in it.
    needed = {"agent.json"} if box.waiting() or box.in_flight() else set[str]()
    for name, whole in records.items():
        if not whole and (name in needed or files.exists(f"{box.folder}/{name}")):
            yield f"{box.folder}/{name}"
    for folder in (box.queue, box.claimed):
        if files.exists(folder) and not os.path.isdir(folder):
            yield folder
        for name in files.names(folder):
            message_id = mailbox.entry_id(name)
            if not _reads(mailbox.load_message, root, message_id):
                yield (
                    f"{mailbox.message_folder(root, message_id)}/message.json"
                    if len(name) >= 41
                    else f"{folder}/{name}"
                )
            elif not _reads(store.load, f"{folder}/{name}") and files.exists(f"{folder}/{name}"):
                yield f"{folder}/{name}"
    yield from (f"{box.folder}/damaged/{name}" for name in files.names(f"{box.folder}/damaged"))


def _reads(look: Callable[..., object], *words: str) -> bool:
    """Whether a record is whole; that of a newer turnpost is none of those that are damaged."""
    try:
        return look(*words) is not None
    except Newer:
        return True


def _own(entry: Entry) -> int:
    return 0o700 if stat.S_ISDIR(entry.mode) else 0o600


def _expected(entry: Entry) -> bool:
    """Whether it is of a kind that turnpost makes: a file, a folder, or the FIFO of a waiter."""
    name = os.path.basename(entry.path)
    bell = name.startswith("waiter-") and name.endswith(".fifo")
    return stat.S_ISFIFO(entry.mode) if bell else stat.S_ISREG(entry.mode) or stat.S_ISDIR(entry.mode)


def _some(entries: Sequence[Entry]) -> str:
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[0].path} ({entries[0].mode & 0o777:04o}){more}"


def _word(path: str) -> str | None:
    try:
        return files.read(path, 4096).decode().strip() or None
    except (OSError, ValueError, BadFile):
        return None


def _command(pid: int | None) -> str:
    return " ".join(procs.command(pid))[:100] if pid else "unknown"
