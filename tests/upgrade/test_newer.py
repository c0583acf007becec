"""Records of a version that is not known yet: refused in one line, kept to the byte, and no hindrance to the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.actions.fakes import PERSON, FakeHome
from tests.core import spool as mailing
from tests.doctor.kit import found
from tests.hooks.driver import FakeSession, Ran
from turnpost.actions import agents, conversations, inbox, missions, people, receipts, sending
from turnpost.actions.searching import EVERYTHING
from turnpost.core import files, home, mailbox, outbox, registry, store, threads
from turnpost.core.errors import Newer
from turnpost.doctor import spool
from turnpost.service import process
from turnpost.service.loop import Coordinator

pytestmark = pytest.mark.process


class Scene(NamedTuple):
    """A spool with an agent whose session is idle and another that has nothing to do with it."""

    root: str
    session: FakeSession
    key: str
    other: FakeSession


@pytest.fixture
def scene(tmp_path: Path, home: FakeHome) -> Iterator[Scene]:
    root = home.root
    registry.prepare(root)
    with FakeSession(root, tmp_path / "one") as one, FakeSession(root, tmp_path / "two") as two:
        for session in (one, two):
            session.hook("SessionStart", source="startup", waiter=False)
        yield Scene(root, one, one.key, two)


def ends(session: FakeSession) -> Ran:
    """A turn ends; without its waiter, which would take part of what the Stop hook does not get in time."""
    return session.stop(waiter=False)


def prompted(session: FakeSession) -> Ran:
    return session.hook("UserPromptSubmit", waiter=False, prompt="x")


def renew(path: str) -> str:
    """Make a record one that a newer version wrote, with words that are not known; its path."""
    record = json.loads(Path(path).read_bytes()) if os.path.exists(path) else {}
    for field in ("attempts", "state", "doing", "pid", "digests"):
        record.pop(field, None)
    files.write(path, store.pack({**record, "v": 2, "new": ["something", {"else": 1}]}))
    return path


def entry(scene: Scene, folder: str = "queue") -> str:
    box = mailbox.Mailbox(scene.root, scene.key)
    name = (box.waiting() if folder == "queue" else box.in_flight())[0]
    return f"{box.folder}/{folder}/{name}"


def a_message(scene: Scene) -> str:
    message_id = mailing.send(scene.root, "of the future", scene.session.agent)
    return renew(f"{mailbox.message_folder(scene.root, message_id)}/message.json")


def a_waiting_entry(scene: Scene) -> str:
    mailing.send(scene.root, "of the future", scene.session.agent)
    return renew(entry(scene))


def a_claimed_entry(scene: Scene) -> str:
    mailing.send(scene.root, "of the future", scene.session.agent)
    assert ends(scene.session).goes_on
    return renew(entry(scene, "claimed"))


def a_sending(scene: Scene) -> str:
    message = mailing.message("of the future", scene.session.agent)
    path = f"{home.outbox(scene.root)}/{message['id']}.json"
    files.write(path, store.pack({**message, "sent": 0.0}))
    return renew(path)


def a_coordinator(scene: Scene) -> str:
    return renew(scene.root + "/coordinator.json")


def a_report(scene: Scene) -> str:
    folder = home.reports(scene.root, scene.key)
    files.mkdir(folder)
    return renew(f"{folder}/msg-00000000000000000000000000.json")


def an_agent(scene: Scene) -> str:
    return renew(f"{home.agent(scene.root, scene.key)}/agent.json")


def a_state(scene: Scene) -> str:
    return renew(f"{home.agent(scene.root, scene.key)}/state.json")


def a_waiter(scene: Scene) -> str:
    return renew(f"{home.agent(scene.root, scene.key)}/waiter.json")


def a_mission(scene: Scene) -> str:
    agent = scene.session.agent
    missions.start(scene.root, "team", "a goal", members=[agent["name"]], speaker=PERSON)
    return renew(home.mission(scene.root, "team"))


MAIL = [
    a_message,
    a_waiting_entry,
    a_claimed_entry,
    a_sending,
    a_coordinator,
    a_report,
]
"""Records beside which the same agent goes on."""
AGENTS = [an_agent, a_state, a_waiter, a_mission]
"""Records without which nothing can be done for an agent."""
Make = Callable[[Scene], str]


def everything_runs(scene: Scene) -> None:
    """All that might repair, finish or give something up: hooks, commands that list, the coordinator's rounds."""
    root = scene.root
    for ran in (prompted(scene.session), scene.session.hook("PostToolBatch"), ends(scene.session)):
        assert (ran.code, ran.err) == (0, b"")
    coordinator = Coordinator(root)
    for _ in range(3):
        coordinator.round()
    outbox.recover(root, 0.0)
    agents.agents(root)
    threads.refresh(root)
    conversations.overview(root, speaker=PERSON)
    conversations.search(root, EVERYTHING, speaker=PERSON)
    inbox.waiting(root, speaker=PERSON)
    missions.everyone(root)
    process.status(root)


@pytest.mark.parametrize("make", [*MAIL, *AGENTS], ids=lambda make: str(make.__name__))
def test_an_unknown_newer_record_is_kept_to_the_byte_and_doctor_names_it(scene: Scene, make: Make) -> None:
    path = make(scene)
    before = Path(path).read_bytes()
    everything_runs(scene)
    assert Path(path).read_bytes() == before
    assert not os.path.exists(f"{home.agent(scene.root, scene.key)}/damaged")
    check = found(spool.check_all(scene.root), "newer")
    assert check.status == "fail"
    assert path.removeprefix(scene.root + "/") in check.line
    assert "version 2" in check.line
    assert "upgrade turnpost" in check.mend
    assert "records" not in [one.name for one in spool.check_all(scene.root)]


@pytest.mark.parametrize("make", MAIL, ids=lambda make: str(make.__name__))
def test_other_messages_still_come_to_the_same_agent(scene: Scene, make: Make) -> None:
    make(scene)
    before = list(scene.session.read)
    sent = [mailing.send(scene.root, body, scene.session.agent) for body in ("one", "two")]
    ends(scene.session)
    assert scene.session.read == [*before, *sent]
    ends(scene.session)
    for message_id in sent:
        assert mailing.receipt(scene.root, scene.session.agent, message_id)["state"] == "read"


@pytest.mark.parametrize("make", [*MAIL, *AGENTS], ids=lambda make: str(make.__name__))
def test_other_agents_notice_nothing(scene: Scene, make: Make) -> None:
    make(scene)
    other = scene.other.agent
    sent = sending.send(scene.root, [other["name"]], "hello", speaker=PERSON)
    ends(scene.other)
    assert scene.other.read == [sent.id]
    assert other["name"] in [one.name for one in agents.agents(scene.root).agents]


@pytest.mark.parametrize("make", AGENTS, ids=lambda make: str(make.__name__))
def test_hooks_of_such_an_agent_stay_silent_and_a_send_to_it_is_refused_before_it_is_written(
    scene: Scene, make: Make
) -> None:
    name = scene.session.agent["name"]
    mailing.send(scene.root, "waits", scene.session.agent)
    path = make(scene)
    if make in (an_agent, a_state):
        assert prompted(scene.session).silent
        for event in ("Stop", "StopFailure", "SessionEnd"):
            assert scene.session.hook(event, waiter=False).silent, event
    mail = sorted(files.names(scene.root + "/messages") + files.names(home.outbox(scene.root)))
    with pytest.raises(Newer) as refused:
        sending.send(scene.root, [name], "more", speaker=PERSON)
    told = refused.value
    assert (told.exit_code, told.rule) == (3, "newer")
    assert told.numbers == {"path": path, "version": 2, "known": store.VERSION}
    assert path in told.message
    assert "upgrade turnpost" in told.message
    assert sorted(files.names(scene.root + "/messages") + files.names(home.outbox(scene.root))) == mail
    assert len(mailbox.Mailbox(scene.root, scene.key).waiting()) == 1


@pytest.mark.parametrize(
    "make", [a_message, a_waiting_entry, a_claimed_entry], ids=lambda make: str(make.__name__)
)
def test_what_is_asked_about_the_message_itself_is_refused_with_its_version(scene: Scene, make: Make) -> None:
    path = make(scene)
    message_id = next(
        part[:30] for word in path.split("/") for part in (word, word[11:]) if part.startswith("msg-")
    )
    for ask in (receipts.show, receipts.cancel):
        with pytest.raises(Newer) as refused:
            ask(scene.root, message_id, speaker=PERSON)
        assert refused.value.numbers["version"] == 2


def test_a_newer_waiter_is_not_put_out_of_its_place(scene: Scene) -> None:
    path = a_waiter(scene)
    before = Path(path).read_bytes()
    armed = scene.session.arm("Stop")
    assert armed.wait(20) == 0
    assert Path(path).read_bytes() == before


def test_the_coordinator_tells_of_a_newer_record_once(scene: Scene) -> None:
    mailing.send(scene.root, "waits", scene.session.agent)
    an_agent(scene)
    coordinator = Coordinator(scene.root)
    for _ in range(5):
        coordinator.round()
    lines: list[dict[str, Any]] = [json.loads(line) for line in files.read(home.log(scene.root)).splitlines()]
    told = [line for line in lines if line["action"] == "trouble"]
    assert [line["kind"] for line in told] == ["Newer"]
    assert people.name_of(scene.root, scene.key) == scene.key
