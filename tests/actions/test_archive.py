"""Archived messages through the product's own doors: the same to see as before, kept as long as the person says, exported."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tests.actions.fakes import PERSON, FakeHome
from turnpost.actions import conversations, documents, exporting, inbox, journal, receipts, sending
from turnpost.actions.searching import EVERYTHING, Query
from turnpost.cli import main
from turnpost.core import archive, clock, files, ids, registry, sender, store
from turnpost.core import home as paths
from turnpost.core.errors import NotFound, Refused, UsageError
from turnpost.core.mailbox import Mailbox
from turnpost.service.archiving import AGAIN, Archivist
from turnpost.service.loop import Coordinator

DAY = 86_400.0
Ago = Callable[[float], None]


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    archive.close()


@pytest.fixture
def ago(monkeypatch: pytest.MonkeyPatch) -> Ago:
    """Set the clock back by so many days."""
    real = clock.now
    return lambda days: monkeypatch.setattr(clock, "now", lambda: real() - days * DAY)


class Written(NamedTuple):
    """What was written long ago: all over but the last two, which are of another day."""

    over: list[str]
    question: str
    waits: str


@pytest.fixture
def written(home: FakeHome, ago: Ago) -> Written:
    alpha, beta = home.agent("alpha"), home.agent("beta")
    ago(30)
    sent = [sending.send(home.root, ["alpha", "beta"], "Die Straße\u2028 is long", speaker=PERSON).id]
    for agent in (alpha, beta):
        home.enters(agent, home.claim(agent))
        receipts.settle(home.root, [agent["key"]])
    sent.append(sending.reply(home.root, sent[0], "understood", speaker=home.speaker(alpha)).id)
    sent.append(
        sending.send(
            home.root, ["person"], "Which?", kind="question", options=["a", "b"], speaker=home.speaker(beta)
        ).id
    )
    sent.append(sending.reply(home.root, sent[2], "2", speaker=PERSON).id)
    sent.append(sending.send(home.root, ["alpha"], "never mind", thread="plan", speaker=PERSON).id)
    receipts.cancel(home.root, sent[4], speaker=PERSON)
    home.enters(beta, home.claim(beta))
    receipts.settle(home.root, [beta["key"]])
    inbox.mark_read(home.root, sent, speaker=PERSON)
    ago(20)
    asked = sending.send(home.root, ["person"], "Still?", kind="question", speaker=home.speaker(alpha)).id
    inbox.mark_read(home.root, [asked], speaker=PERSON)
    waits = sending.send(home.root, ["beta"], "waits", speaker=PERSON).id
    ago(0)
    return Written(sent, asked, waits)


def seen(root: str, written: Written) -> list[Any]:
    """What commands show of them."""
    return [
        *(
            receipts.show(root, one, speaker=PERSON)
            for one in (*written.over, written.question, written.waits)
        ),
        conversations.overview(root, speaker=PERSON),
        conversations.thread(root, "plan", speaker=PERSON),
        conversations.thread(root, "inbox", speaker=PERSON),
        conversations.thread(root, written.over[0], speaker=PERSON),
        conversations.search(root, Query("strasse"), speaker=PERSON),
        conversations.search(root, Query(state="cancelled", since="2020-01-01"), speaker=PERSON),
        conversations.search(root, EVERYTHING, speaker=PERSON),
        inbox.waiting(root, speaker=PERSON),
        [entry for entry in journal.entries(root, journal.Query(), newest=1000).entries if entry.message],
    ]


def housekeeping(root: str) -> None:
    """One housekeeping of a new coordinator, with what it began."""
    coordinator = Coordinator(root)
    coordinator.round()
    if coordinator._archiving is not None:
        coordinator._archiving.result(30)


def days(root: str) -> tuple[list[str], list[str]]:
    return files.names(root + "/messages"), list(archive.sizes(root))


def test_what_is_archived_is_shown_as_before_and_what_is_not_over_is_not_archived(
    home: FakeHome, written: Written
) -> None:
    before = seen(home.root, written)
    housekeeping(home.root)
    assert days(home.root) == ([ids.day(written.waits)], [ids.day(written.over[0])])
    assert seen(home.root, written) == before
    housekeeping(home.root)
    assert len(days(home.root)[1]) == 1
    (line,) = journal.entries(home.root, journal.Query(action="archive")).entries
    assert line.details == {"day": ids.day(written.over[0]), "messages": 5}


def test_an_archived_message_can_be_replied_to_and_its_answer_is_found(
    home: FakeHome, written: Written
) -> None:
    housekeeping(home.root)
    alpha = registry.find(home.root, "alpha")
    reply = sending.reply(home.root, written.over[0], "once more", speaker=home.speaker(alpha))
    shown = receipts.show(home.root, written.over[0], speaker=PERSON)
    assert shown.answers == (written.over[1], reply.id)
    assert receipts.show(home.root, reply.id, speaker=PERSON).thread == shown.thread
    thread = conversations.thread(home.root, written.over[0], speaker=PERSON)
    assert [one.id for one in thread.messages][-1] == reply.id
    assert home.box(alpha).waiting() == []


def test_the_oldest_days_go_when_the_person_says_how_long_they_are_kept(
    home: FakeHome, written: Written, ago: Ago
) -> None:
    Path(home.root, "config.toml").write_text("archive_keep_days = 25\n")
    before = conversations.search(home.root, EVERYTHING, speaker=PERSON)
    for _ in range(2):
        housekeeping(home.root)
    assert days(home.root) == ([ids.day(written.waits)], [])
    with pytest.raises(NotFound):
        receipts.show(home.root, written.over[0], speaker=PERSON)
    left = conversations.search(home.root, EVERYTHING, speaker=PERSON)
    assert [one.id for one in left.messages] == [
        one.id for one in before.messages if one.id not in written.over
    ]
    (line,) = journal.entries(home.root, journal.Query(action="archive-drop")).entries
    assert line.details["messages"] == 5


def test_by_size_only_as_many_days_go_as_are_over_it(home: FakeHome, ago: Ago) -> None:
    alpha = home.agent("alpha")
    for back in (40, 39, 38):
        ago(back)
        sent = sending.send(home.root, ["alpha"], os.urandom(600).hex(), speaker=PERSON).id
        with home.box(alpha).lock():
            home.box(alpha).end(sent, "read")
    ago(0)
    for _ in range(3):
        housekeeping(home.root)
    sizes = archive.sizes(home.root)
    assert len(sizes) == 3
    Path(home.root, "config.toml").write_text(f"archive_keep_bytes = {sum(sizes.values()) - 1}\n")
    for _ in range(3):
        housekeeping(home.root)
    assert list(archive.sizes(home.root)) == sorted(sizes)[1:]


def test_a_day_is_packed_beside_the_rounds_and_not_in_them(
    home: FakeHome, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    pack = archive.pack

    def slow(*words: Any) -> bool:
        begun.set()
        assert go_on.wait(30)
        return pack(*words)

    monkeypatch.setattr(archive, "pack", slow)
    coordinator = Coordinator(home.root)
    coordinator.round()
    assert begun.wait(30)
    coordinator.round()  # neither waits nor begins a second one
    assert coordinator._archiving is not None
    assert not coordinator._archiving.done()
    go_on.set()
    coordinator._archiving.result(30)
    assert days(home.root)[1] == [ids.day(written.over[0])]


def test_a_day_that_is_not_over_is_looked_at_again_after_an_hour_only(
    home: FakeHome, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(archive, "pack", lambda root, day, *_: looked.append(day))
    archivist = Archivist(home.root, archive.Keeping(), lambda: True)
    for _ in range(5):
        archivist.step()
    assert looked == sorted({ids.day(written.over[0]), ids.day(written.waits)})
    assert not archivist.due()
    real = clock.monotonic
    monkeypatch.setattr(clock, "monotonic", lambda: real() + AGAIN + 1)
    assert archivist.due()


def test_a_coordinator_that_is_to_end_packs_no_further(home: FakeHome, written: Written) -> None:
    before = home.tree()
    Archivist(home.root, archive.Keeping(), lambda: False).step()
    assert home.tree() == before


def exported(root: str, **asked: Any) -> list[Any]:
    lines: list[bytes] = []
    exporting.export(root, lines.append, speaker=PERSON, **asked)
    return [json.loads(line) for line in lines]


def test_an_export_has_every_message_as_show_has_it_archived_or_not(home: FakeHome, written: Written) -> None:
    every = [*written.over, written.question, written.waits]
    housekeeping(home.root)
    wanted = [documents.plain(receipts.show(home.root, one, speaker=PERSON)) for one in every]
    assert exported(home.root) == json.loads(json.dumps(wanted))
    day = ids.day(written.waits)
    assert [one["id"] for one in exported(home.root, since=day)] == every[5:]
    assert [one["id"] for one in exported(home.root, until=day)] == every[:5]
    assert [one["id"] for one in exported(home.root, threads=["plan"])] == [written.over[4]]
    both = exported(home.root, threads=["plan", "inbox"])
    assert [one["id"] for one in both] == [
        written.over[1],
        written.over[2],
        written.over[4],
        written.question,
    ]
    with pytest.raises(NotFound):
        exported(home.root, threads=["nothing"])
    with pytest.raises(UsageError):
        exported(home.root, since="soon")


def test_an_export_leaves_out_what_only_a_newer_turnpost_knows_and_says_so(
    home: FakeHome, written: Written
) -> None:
    path = f"{home.root}/messages/{ids.day(written.waits)}/{written.waits}/message.json"
    files.write(path, store.pack({"v": 2, "id": written.waits}))
    done = exporting.export(home.root, lambda line: None, speaker=PERSON)
    assert done.messages == 6
    assert done.warnings[0].startswith("1 message was written by a newer turnpost")


def test_only_the_person_may_export(home: FakeHome, written: Written) -> None:
    alpha = registry.find(home.root, "alpha")
    lines: list[bytes] = []
    with pytest.raises(Refused) as refused:
        exporting.export(home.root, lines.append, speaker=home.speaker(alpha))
    assert refused.value.rule == "not-allowed"
    with pytest.raises(Refused):
        exporting.export_to(home.root, str(home.folder / "all"), speaker=home.speaker(alpha))
    assert lines == []
    assert not (home.folder / "all").exists()


def test_the_command_writes_lines_or_a_private_file_of_which_it_tells(
    home: FakeHome, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "who", lambda _root, _pid=None: PERSON)
    housekeeping(home.root)
    ran = CliRunner().invoke(main, ["export"], prog_name="turnpost")
    assert ran.exit_code == 0
    assert len(ran.stdout.splitlines()) == 7
    assert ran.stderr == ""
    path = home.folder / "all.jsonl"
    told = json.loads(
        CliRunner().invoke(main, ["export", "-o", str(path), "--json"], prog_name="turnpost").stdout
    )
    assert path.read_text() == ran.stdout
    assert path.stat().st_mode & 0o777 == 0o600
    sent = [json.loads(line)["sent"] for line in ran.stdout.splitlines()]
    assert told == {
        "file": str(path), "messages": 7, "bytes": path.stat().st_size, "first": sent[0], "last": sent[-1], "warnings": [],
    }  # fmt: skip
    assert CliRunner().invoke(main, ["export", "--json"], prog_name="turnpost").exit_code == 2
    assert Mailbox(home.root, registry.PERSON).waiting() == []
    assert files.names(paths.outbox(home.root)) == []


@pytest.mark.parametrize("what", ["fifo", "link", "folder", "nowhere", "nothing"])
def test_an_export_replaces_nothing_but_a_plain_file(home: FakeHome, what: str) -> None:
    path = home.folder / "out"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to(home.folder / "elsewhere")
    elif what == "folder":
        path.mkdir()
    given = {"nowhere": str(home.folder / "no" / "out"), "nothing": ""}.get(what, str(path))
    before = path.lstat().st_mode if os.path.lexists(path) else None
    with pytest.raises(UsageError, match="cannot be written"):
        exporting.export_to(home.root, given, speaker=PERSON)
    assert (path.lstat().st_mode if os.path.lexists(path) else None) == before


def test_an_export_replaces_a_plain_file(home: FakeHome) -> None:
    path = home.folder / "out"
    path.write_text("old")
    assert exporting.export_to(home.root, str(path), speaker=PERSON).messages == 0
    assert path.read_text() == ""
