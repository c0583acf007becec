"""The archive: which days are packed and dropped, what is read from it, and kills at each step of a pack and a drop."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import archive, clock, files, home, ids, mailbox, outbox, registry, store, threads
from turnpost.core.archive import Keeping
from turnpost.core.errors import BadFile, Newer
from turnpost.core.records import TYPE_CHECKING
from turnpost.doctor import spool as spool_doctor

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Message

OLD = 40 * 86_400.0
"""How long ago the messages here were sent."""


@pytest.mark.parametrize(
    ("now", "last"),
    [("2026-11-30T00:00:00Z", "2026-11-22"), ("2026-11-30T23:59:59Z", "2026-11-22"), ("2026-12-01T00:00:00Z", "2026-11-23")],
)  # fmt: skip
def test_a_day_is_packed_when_its_end_is_whole_days_ago(now: str, last: str) -> None:
    moment = clock.parse(now)
    assert moment is not None
    days = ["2026-11-29", last, "2026-01-02", "nonsense", "2026-11-24"]
    assert archive.to_pack(days, Keeping(after_days=7), moment) == ["2026-01-02", last]


@pytest.mark.parametrize(
    ("keeping", "gone"),
    [
        (Keeping(), []),
        (Keeping(days=40), []),
        (Keeping(days=30), ["2026-10-01"]),
        (Keeping(days=20), ["2026-10-01", "2026-11-08"]),
        (Keeping(size=60), []),
        (Keeping(size=59), ["2026-10-01"]),
        (Keeping(size=49), ["2026-10-01", "2026-11-08"]),
        (Keeping(days=30, size=49), ["2026-10-01", "2026-11-08"]),
        (Keeping(size=1), ["2026-10-01", "2026-11-08", "2026-11-09"]),
    ],
)
def test_nothing_is_dropped_unless_the_person_says_so_and_then_the_oldest(
    keeping: Keeping, gone: list[str]
) -> None:
    moment = clock.parse("2026-11-10T12:00:00Z")
    assert moment is not None
    sizes = {"2026-11-09": 30, "2026-10-01": 10, "2026-11-08": 20}
    moment += 19 * 86_400 if keeping.days == 20 else 0
    assert archive.to_drop(sizes, keeping, moment) == gone


def send(root: str, body: str, *agents: Agent, ago: float = OLD, **changed: object) -> Message:
    """A message of the person's as it was sent so long ago."""
    message = spool.message(body, *agents)
    moment = clock.now() - ago
    message.update({"id": ids.new("msg", moment), "sent": moment, **changed})  # type: ignore[typeddict-item]
    message["origin"] = message["id"]
    outbox.send(root, message, agents)
    return message


def end(root: str, message: Message, *agents: Agent) -> None:
    """Have a message read by these."""
    for agent in agents:
        box = mailbox.Mailbox(root, agent["key"])
        with box.lock():
            assert box.end(message["id"], "read")


def day_of(message: Message) -> str:
    return ids.day(message["id"])


def pack(root: str, day: str) -> bool:
    return archive.pack(root, day, archive.last_over(clock.now(), 7))


class Look:
    """All that can be seen of messages: what must be the same before a pack and after it."""

    def __init__(self, root: str, messages: list[Message], agents: list[Agent]) -> None:
        keys = [agent["key"] for agent in agents]
        ids_of = [message["id"] for message in messages]
        self.messages = [mailbox.load_message(root, one) for one in ids_of]
        self.receipts = [mailbox.Mailbox(root, key).receipt(one) for one in ids_of for key in keys]
        self.replies = [threads.replies(root, one) for one in ids_of]
        self.threads = {thread: threads.messages(root, thread) for thread in threads.every(root)}

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def a_day(root: str, one: Agent, other: Agent) -> list[Message]:
    """A day with messages to one and to both, a reply, and one that was cancelled; all over."""
    first = send(root, "first\u2028", one, other)
    second = send(root, "second", one, reply_to=first["id"])
    third = send(root, "third", other)
    end(root, first, one, other)
    end(root, second, one)
    box = mailbox.Mailbox(root, other["key"])
    with box.lock():
        assert box.end(third["id"], "cancelled", "taken back")
    return [first, second, third]


def test_a_packed_day_is_one_file_in_which_everything_is_found(root: str, pair: tuple[Agent, Agent]) -> None:
    messages = a_day(root, *pair)
    before, day = Look(root, messages, list(pair)), day_of(messages[0])
    assert pack(root, day)
    assert files.names(root + "/messages") == []
    assert files.names(home.archive(root)) == [f"{day}.zip"]
    assert os.stat(home.packed(root, day)).st_mode & 0o777 == 0o600
    assert Look(root, messages, list(pair)) == before
    assert before.receipts[0] is not None
    assert before.replies[0] == [messages[1]["id"]]
    assert mailbox.load_message(root, ids.new("msg", messages[0]["sent"])) is None
    assert outbox.recover(root, 0.0) == []
    assert threads.refresh(root) == 0


@pytest.mark.parametrize("waits", ["queue", "claimed", "outbox", "asked", "damaged", "newer"])
def test_a_day_with_a_message_that_is_not_over_stays_as_it_is(
    root: str, pair: tuple[Agent, Agent], waits: str
) -> None:
    one, other = pair
    messages = a_day(root, *pair)
    late = send(root, "late", one, other)
    box = mailbox.Mailbox(root, other["key"])
    if waits not in ("queue", "claimed"):
        end(root, late, one, other)
    folder = mailbox.message_folder(root, late["id"])
    if waits == "claimed":
        files.move(f"{box.queue}/{box.waiting()[0]}", f"{box.claimed}/{box.waiting()[0]}")
    elif waits == "outbox":
        files.move(folder + "/message.json", f"{home.outbox(root)}/{late['id']}.json")
    elif waits == "asked":
        question = {**late, "kind": "question", "to": [registry.party(registry.person(root))]}
        files.write(
            folder + "/person.json", files.read(f"{folder}/{one['key']}.json")
        )  # seen, and not answered
        files.write(folder + "/message.json", store.pack(question))
        files.mkdir(home.asked(root))
        files.touch(f"{home.asked(root)}/{late['id']}")
    elif waits == "damaged":
        files.write(folder + "/message.json", b"{")
    elif waits == "newer":
        files.write(folder + "/message.json", store.pack({**late, "v": 2}))
    before = spool.tree(root)
    if waits == "newer":
        with pytest.raises(Newer):
            pack(root, day_of(late))
    else:
        assert not pack(root, day_of(messages[0]))
    assert spool.tree(root) == before


def test_an_agent_that_a_failed_launch_took_away_holds_no_day_back(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    one, _ = pair
    message = send(root, "to both", one)
    record = {**message, "to": [registry.party(one), registry.party(spool.agent(root, "gone"))]}
    files.write(mailbox.message_folder(root, message["id"]) + "/message.json", store.pack(record))
    end(root, message, one)
    gone = registry.find(root, "gone")
    registry.forget(root, gone)
    assert pack(root, day_of(message))
    assert mailbox.load_message(root, message["id"]) == record


def test_what_cannot_be_read_beside_a_message_stays_where_it_is(root: str, pair: tuple[Agent, Agent]) -> None:
    messages = a_day(root, *pair)
    folder = mailbox.message_folder(root, messages[0]["id"])
    files.write(folder + "/ag-00000000000000000000000000.json", b"{")
    files.write(folder + "/note.txt", b"a stranger's")
    assert pack(root, day_of(messages[0]))
    assert files.names(folder) == ["ag-00000000000000000000000000.json", "note.txt"]
    assert files.names(folder.rpartition("/")[0]) == [messages[0]["id"]]
    assert len(archive.names(root, day_of(messages[0]))) == 3


def test_folders_of_sends_that_were_taken_back_go_and_make_no_archive(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    messages = a_day(root, *pair)
    day = day_of(messages[0])
    assert pack(root, day)
    before = Path(home.packed(root, day)).stat().st_size
    for moment in (messages[0]["sent"], messages[0]["sent"] - 86_400):
        files.mkdir(mailbox.message_folder(root, ids.new("msg", moment)) + "/replies")
    for other in files.names(root + "/messages"):
        assert pack(root, other)
    assert files.names(root + "/messages") == []
    assert archive.sizes(root) == {day: before}


def test_what_reads_archives_is_loaded_for_an_archived_message_only(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    messages = a_day(root, *pair)
    assert pack(root, day_of(messages[0]))
    recent = send(root, "recent", *pair, ago=0.0)
    ask = (
        "import sys; from turnpost.core import mailbox; root, key, one = sys.argv[1:]; box = mailbox.Mailbox(root, key)\n"
        "found = [mailbox.load_message(root, one)['body'], box.receipt(one)['state']]\n"
        'sys.stdout.write(f\'{found} {bool({"zipfile", "turnpost.core.archive"} & set(sys.modules))}\')'
    )

    def asked(one: Message) -> str:
        words = [sys.executable, "-c", ask, root, pair[0]["key"], one["id"]]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert asked(recent) == "['recent', 'queued'] False"
    assert asked(messages[1]) == "['second', 'read'] True"


def test_a_reply_to_a_packed_message_is_found_at_once_and_packed_when_it_is_old(
    root: str, pair: tuple[Agent, Agent]
) -> None:
    messages = a_day(root, *pair)
    first, day = messages[0], day_of(messages[0])
    assert pack(root, day)
    recent = send(root, "a reply", pair[0], ago=0.0, reply_to=first["id"])
    assert threads.replies(root, first["id"]) == [messages[1]["id"], recent["id"]]
    assert not pack(root, day)
    files.unlink(f"{mailbox.message_folder(root, first['id'])}/replies/{recent['id']}")
    old = send(root, "an old reply", pair[0], ago=OLD - 3 * 86_400, reply_to=first["id"])
    before = Look(root, messages, list(pair))
    assert pack(root, day)
    assert Look(root, messages, list(pair)) == before
    assert old["id"] in threads.replies(root, first["id"])
    assert day not in files.names(root + "/messages")


def test_a_note_that_comes_while_the_folder_goes_is_not_lost(root: str, pair: tuple[Agent, Agent]) -> None:
    messages = a_day(root, *pair)
    first, day = messages[0], day_of(messages[0])
    assert pack(root, day)
    folder = mailbox.message_folder(root, first["id"])
    stop = threading.Event()

    def tidy() -> None:
        while not stop.is_set():
            files.rmdir(folder + "/replies")
            files.rmdir(folder)

    one = threading.Thread(target=tidy)
    one.start()
    try:
        sent = [send(root, f"reply {n}", pair[0], ago=0.0, reply_to=first["id"]) for n in range(30)]
    finally:
        stop.set()
        one.join()
    assert threads.replies(root, first["id"]) == sorted([messages[1]["id"], *(one["id"] for one in sent)])


def test_a_dropped_day_is_gone_with_all_that_led_there(root: str, pair: tuple[Agent, Agent]) -> None:
    messages = a_day(root, *pair)
    stays = send(root, "stays", pair[0], ago=OLD - 5 * 86_400)
    end(root, stays, pair[0])
    files.mkdir(root + "/reports")
    files.write(home.report(root, messages[0]["id"]), b"long")
    assert pack(root, day_of(messages[0]))
    assert pack(root, day_of(stays))
    assert archive.drop(root, day_of(messages[0])) == 3
    assert all(mailbox.load_message(root, one["id"]) is None for one in messages)
    assert [threads.messages(root, one) for one in threads.every(root)] == [[stays["id"]]]
    assert files.names(root + "/reports") == []
    assert mailbox.load_message(root, stays["id"]) == stays
    assert list(archive.sizes(root)) == [day_of(stays)]


def test_what_is_no_archive_of_ours_is_nobodys_message(root: str, pair: tuple[Agent, Agent]) -> None:
    messages = a_day(root, *pair)
    path = Path(home.packed(root, day_of(messages[0])))
    assert pack(root, day_of(messages[0]))
    whole = path.read_bytes()
    for data in (b"", whole[:100], whole[100:]):
        path.write_bytes(data)
        assert mailbox.load_message(root, messages[0]["id"]) is None
        # And is not taken for an empty one when there is something to add.
        send(root, "late", pair[0], ago=OLD - 3 * 86_400, reply_to=messages[0]["id"])
        with pytest.raises(BadFile):
            pack(root, day_of(messages[0]))
        assert path.read_bytes() == data
    assert spool_doctor.damaged(root) == []
    path.write_bytes(b"")
    assert spool_doctor.damaged(root) == [str(path)]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert mailbox.load_message(root, messages[0]["id"]) is None
    path.unlink()
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(messages[0]["id"], b'{"v": 2}')
    with pytest.raises(Newer):
        mailbox.load_message(root, messages[0]["id"])


def test_an_archive_that_does_not_read_as_it_was_written_takes_nothings_place(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = a_day(root, *pair)
    before = spool.tree(root)
    verify = archive._verify

    def damaged(path: str, count: int) -> None:
        data = bytearray(Path(path).read_bytes())
        data[30 + len(messages[0]["id"]) + 5] ^= 0xFF  # behind the header of the first
        Path(path).write_bytes(data)
        verify(path, count)

    def lacking(path: str, count: int) -> None:
        verify(path, count + 1)

    for fault in (damaged, lacking):
        monkeypatch.setattr(archive, "_verify", fault)
        with pytest.raises(BadFile):
            pack(root, day_of(messages[0]))
        assert spool.tree(root) == before


def test_a_full_disk_leaves_the_folders_and_no_half_archive(
    root: str, pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = a_day(root, *pair)
    before, fsync = spool.tree(root), os.fsync

    def full(fd: int) -> None:
        if "/archive/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(28, "No space left on device")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        pack(root, day_of(messages[0]))
    assert spool.tree(root) == before
    assert os.listdir(home.archive(root)) == []


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    archive.close()


def test_no_byte_that_is_off_raises_anything_or_takes_long(root: str) -> None:
    """zipfile alone raises seven kinds of errors for one changed byte."""
    alpha = spool.agent(root, "alpha")
    sent = [send(root, f"body {number}", alpha)["id"] for number in range(2)]
    box = mailbox.Mailbox(root, alpha["key"])
    with box.lock():
        for one in sent:
            assert box.end(one, "cancelled")
    day = ids.day(sent[0])
    assert archive.pack(root, day, day)
    path = Path(home.packed(root, day))
    whole = path.read_bytes()
    for place in range(random.randrange(3), len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        archive.close()  # the size is the same, and the time may be
        archive.is_whole(root, day)
        for one in sent:
            found = archive.load(root, one)
            assert found is None or found["message"]["id"] == one
        archive.names(root, day)
    path.write_bytes(whole)
    archive.close()
    assert archive.names(root, day) == sorted(sent)
