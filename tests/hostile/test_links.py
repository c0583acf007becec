"""Whatever lies in the home is replaced by what it must not be: a link, a FIFO, a device, another user's file.

The names are those of a home that has everything in it, so a new one cannot be forgotten. A link in the place of a
*folder* can only be put there by whoever may write in the home (0700): then nothing may crash or hang, and the doctor
tells; where it leads is not asked at each step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile import kit
from tests.hostile.kit import Rich
from tests.long import scale

pytestmark = pytest.mark.process

CANARY = "this-stands-outside"
STRANGER = 54321
KINDS = ("link", "dangling", "fifo", "device", "foreign", "other", "hard", "folder link")
PART = scale(5, 1)
"""Of so many pairs of a name and a kind one is tried, every other time another."""


BLOCKING = ("agents", "agents/ag", "agents/ag/lock", "agents/ag/claimed", "sessions", "sessions/N")
"""Without these an agent has no mailbox, or a session no agent: its mail waits for the mend."""


def pattern(path: str) -> str:
    """A name without what differs from one message, agent or day to the next."""
    path = re.sub(r"(msg|ag)-[0-9A-Z]{26}", r"\1", path)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{24}|\d{4}-\d\d-\d\d|\d{5,}", "N", path)


def places(rich: Rich) -> dict[str, str]:
    """One path of each pattern, relative to the home."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(rich.root):
        for name in sorted([*folders, *names]):
            path = os.path.relpath(f"{folder}/{name}", rich.root)
            found.setdefault(pattern(path), path)
    return found


def plant(path: Path, kind: str, outside: Path) -> bool:
    """Put something of this kind in the place of what is there; False where that kind is none of it."""
    was_folder = path.is_dir()
    if (kind == "folder link") != was_folder and kind in ("folder link", "hard", "foreign"):
        return False
    data = path.read_bytes() if path.is_file() else b""
    outside.mkdir()
    victim = outside / "victim"
    victim.write_bytes(_marked(data))
    if kind == "folder link":
        shutil.move(path, outside / "folder")
        path.symlink_to(outside / "folder")
        return True
    mode = stat.S_IMODE(path.lstat().st_mode)
    shutil.rmtree(path) if was_folder else path.unlink()
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling":
        path.symlink_to(outside / "nowhere")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "device":
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero: an endless file
    elif kind == "foreign":
        path.write_bytes(_marked(data))
        path.chmod(mode)
        os.chown(path, STRANGER, STRANGER)
    elif kind == "other":
        path.write_bytes(b"") if was_folder else path.mkdir(0o700)
    elif kind == "hard":
        victim.write_bytes(data)
        path.hardlink_to(victim)
    return True


def _marked(data: bytes) -> bytes:
    """The same record, whole and valid, with words in it that are seen when it is believed."""
    try:
        record = json.loads(data)
    except ValueError:
        return CANARY.encode()
    if not isinstance(record, dict):
        return CANARY.encode()
    for name in ("body", "text", "name", "thread", "reason", "goal", "transcript", "cwd", "error", "command"):
        if isinstance(record.get(name), str):
            record[name] = CANARY
    return json.dumps(record).encode()


def pairs(rich: Rich) -> dict[tuple[str, str], str]:
    """Where each message that is under way lies, by recipient and message."""
    found: dict[tuple[str, str], str] = {}
    for folder, folders, names in os.walk(rich.root, followlinks=True):
        here = os.path.relpath(folder, rich.root)
        for name in [*folders, *names]:
            if os.path.basename(folder) in ("queue", "claimed", "damaged") and len(name) >= 41:
                found[here.rpartition("/")[0], name[11:41]] = f"{here}/{name}"
            elif here.startswith("messages/") and here.count("/") == 2 and name.endswith(".json"):
                owner, _, sub = name.removesuffix(".json").partition("~")
                found[f"agents/{owner}" + (f"/subagents/{sub}" if sub else ""), os.path.basename(folder)] = (
                    f"{here}/{name}"
                )
    return found


@pytest.fixture
def able(kind: str) -> None:
    """Devices and other users' files are made by root only."""
    if kind in ("device", "foreign") and os.geteuid() != 0:
        pytest.skip(f"NO {kind.upper()}: only root can make one")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planted_in_the_home_is_neither_followed_nor_read_nor_written(
    template: Rich, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, able: None
) -> None:
    tried, wrong = 0, []
    for number, (shown, place) in enumerate(sorted(places(template).items())):
        if (number + KINDS.index(kind)) % PART:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        rich, outside = template.copy(folder), folder / "outside"
        if plant(Path(rich.root, place), kind, outside):
            tried += 1
            wrong += [f"{shown}: {what}" for what in found_wrong(rich, place, kind, outside, monkeypatch)]
        shutil.rmtree(folder)
    assert tried > 5
    assert not wrong, "\n".join(wrong)


def found_wrong(
    rich: Rich, place: str, kind: str, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """What is not as it must be when everything is done with a home in which something was planted."""
    before = {key: where for key, where in pairs(rich).items() if not f"{where}/".startswith(f"{place}/")}
    clean, started = kit.tree(str(outside)), kit.moment()
    told, said = kit.doctor_of(rich), ""
    try:
        with monkeypatch.context() as patch:
            said = kit.everything(rich, patch)
    except Exception as error:  # noqa: BLE001 - all that is wrong is told at once
        yield "".join(traceback.format_exception(error)[-3:])
    if kit.moment() - started > 30:
        yield "slow"
    # Lines are added to a log and a counter in place.
    if kind != "folder link" and not (kind == "hard" and re.search(r"turnpost\.log|^loops/", place)):
        if kit.tree(str(outside)) != clean:
            yield "written"
        if CANARY in said:
            yield f"read: {said[max(0, said.index(CANARY) - 200) :][:400]}"
    if kind not in ("other", "hard") and not any(check.status == "fail" for check in told):
        yield "the doctor sees nothing"
    if pattern(place) not in BLOCKING and kind != "folder link":
        mine = {one for owner, one in before if owner == f"agents/{rich.key('alpha')}"} - {rich.ids["half"]}
        yield from (f"left behind {one}" for one in kit.queued(rich, "alpha") if one in mine)
    for lost in set(before) - set(pairs(rich)):
        yield f"lost {before[lost]}"
