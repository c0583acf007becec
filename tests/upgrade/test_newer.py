"""Records of a version that is not known yet: refused in one line, kept to the byte, and no hindrance to the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

from tests.actions.fakes import PERSON, FakeHome
from tests.commands import leaves
from tests.core import spool as mailing
from tests.doctor.kit import found
from tests.hooks.driver import FakeSession, Ran
from turnpost.actions import (
    agents,
    conversations,
    exporting,
    inbox,
    left_out,
    missions,
    people,
    receipts,
    sending,
)
from turnpost.actions.searching import EVERYTHING
from turnpost.cli import main
from turnpost.core import audit, files, home, ids, mailbox, outbox, procs, registry, sender, store, threads
from turnpost.core.errors import Newer
from turnpost.doctor import spool
from turnpost.service import process
from turnpost.service.loop import Coordinator
from turnpost.tools import calls, server

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


class Talk(NamedTuple):
    """A home with something for every list, and the records of it that a newer version may have written, by what they are."""

    root: str
    asked: str
    records: dict[str, str]


CLAUDE = """
import json
print(json.dumps(dict(type="result", is_error=False, result="They agree.", duration_ms=1)))
"""


@pytest.fixture
def talk(home: FakeHome, own_settings: None, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.setattr(sender, "who", lambda _root, _pid=None: PERSON)
    monkeypatch.setenv("TURNPOST_CLAUDE", home.claude(CLAUDE))
    root = home.root
    # For so long that none becomes deaf while the test looks.
    alpha, beta = home.agent("alpha", ago=3600.0), home.agent("beta", ago=3600.0)
    home.team(alpha, beta)
    plan: dict[str, Any] = {"thread": "plan", "speaker": PERSON}
    asked = sending.send(root, ["alpha", "beta"], "which words?", kind="question", **plan).id
    answered = sending.reply(root, asked, "these words", speaker=home.speaker(beta)).id
    note = sending.send(root, ["beta"], "more words", **plan).id
    home.claim(alpha)  # on its way: whoever looks asks the session's record how far it came
    audit.write(root, "deaf", agent=beta["key"])
    running = {"v": 1, "pid": os.getpid(), "token": procs.token(os.getpid()), "since": 1.0}
    files.write(root + "/coordinator.json", store.pack(running))
    (entry,) = (name for name in home.box(beta).waiting() if mailbox.entry_id(name) == note)
    return Talk(
        root,
        asked,
        {
            "agent": f"{home.box(beta).folder}/agent.json",
            "state": f"{home.box(alpha).folder}/state.json",
            "message": f"{mailbox.message_folder(root, answered)}/message.json",
            "receipt": f"{home.box(beta).queue}/{entry}",
            "mission": f"{root}/missions/team.json",
            "coordinator": f"{root}/coordinator.json",
        },
    )


def turnpost(*words: str) -> Result:
    done = CliRunner().invoke(main, words, prog_name="turnpost")
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


ACTING = {
    "install", "uninstall", "launch", "rename", "send", "reply", "cancel", "stop", "hold", "release", "wake", "mission start",
    "mission add", "mission finish", "mission abort", "coordinator run", "coordinator start", "coordinator stop", "mcp",
    "demo", "doctor",
}  # fmt: skip
"""Commands that do more than look, and doctor, whose finding names the records."""
WITHOUT_RECORDS = {"completion"}
ABOUT_ONE = {"show", "wait", "policy check"}
"""Commands that one record can be missing for."""
OPTIONS = {"inbox": ["--keep"], "wait": ["--timeout", "0"], "export": ["-o", "messages.jsonl"]}
PASSING = ("since", "waited", "seconds", "message")
"""Fields that another look may see otherwise; `message` where it is an error's."""


def looks() -> list[str]:
    """All commands of the table that only look; one that is added is among them."""
    every = leaves()
    assert set(every) >= ACTING | WITHOUT_RECORDS | set(OPTIONS)
    return [name for name in every if name not in ACTING]


def lines(name: str, talk: Talk) -> list[list[str]]:
    """How a command is called: with what it needs, and also with all that it takes."""
    values = {
        "T": "plan", "THREAD": "plan", "ID": talk.asked, "target": talk.asked, "MISSION": "team", "TEXT": "words",
        "FROM": "alpha", "TO": "beta", "shell": "bash",
    }  # fmt: skip
    taken = [one for one in leaves()[name].params if isinstance(one, click.Argument)]
    words = [(values[(one.metavar or str(one.name)).strip("[]")], one.required) for one in taken]
    needed, full = [word for word, required in words if required], [word for word, _ in words]
    options = OPTIONS.get(name, [])
    return [[*name.split(), *one, *options] for one in ([needed] if needed == full else [needed, full])]


def lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: lasting(one)
            for name, one in value.items()
            if name not in PASSING or not isinstance(one, (str, float))
        }
    return [lasting(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", looks())
def test_whatever_answers_otherwise_since_a_record_is_newer_says_so(
    talk: Talk, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    differed: set[str] = set()
    for words in lines(name, talk):
        known = turnpost(*words, "--json")
        assert known.stderr == ""
        assert lasting(json.loads(turnpost(*words, "--json").stdout)) == lasting(json.loads(known.stdout))
        for kind, path in talk.records.items():
            before = Path(path).read_bytes()
            renew(path)
            done, shown = turnpost(*words, "--json"), turnpost(*words)
            files.write(path, before)
            document, was = json.loads(done.stdout), json.loads(known.stdout)
            assert type(document) is type(was)
            if lasting(document) == lasting(was):
                continue
            differed.add(kind)
            one = {"state": "agent", "receipt": "message", "coordinator": "other record"}.get(kind, kind)
            line = f"1 {one} was written by a newer turnpost, and what needs it is left out; upgrade turnpost to see it"
            if done.exit_code == 3:
                assert document["error"]["rule"] == "newer"
                assert path in shown.stderr
                assert name in ABOUT_ONE or (kind == "mission" and "team" in words), "a list is not refused"
                continue
            assert shown.stderr.splitlines()[-1] == f"warning: {line}"
            if "warnings" in document and name == "export":
                assert document["warnings"] == [line]
                assert done.stderr == ""
            else:
                assert done.stderr == f"warning: {line}\n"
    assert bool(differed) == (name not in WITHOUT_RECORDS), differed


def test_a_list_that_leaves_nothing_out_says_nothing(talk: Talk) -> None:
    renew(talk.records["receipt"])
    done = turnpost("agents")
    assert "beta" in done.stdout
    assert done.stderr == ""


def test_each_record_counts_once_and_by_what_it_is(talk: Talk) -> None:
    folders = {kind: path.rpartition("/")[0] for kind, path in talk.records.items()}
    paths = [*talk.records.values(), f"{folders['agent']}/state.json", f"{folders['message']}/ag-x.json"]
    told: list[str] = []
    with left_out.noted() as found:
        for path in [*paths, *paths]:
            renew(path)
            assert store.if_known(store.load, path) is None
            told += found.warnings
    assert told[0].startswith("1 agent was ")
    assert told[1].startswith("2 agents were ")
    assert told[2].startswith("2 agents and 1 message were ")
    assert told[-1] == (
        "2 agents, 2 messages, 1 mission and 1 other record were written by a newer turnpost, and what needs them is "
        "left out; upgrade turnpost to see it"
    )


def test_a_thread_of_newer_messages_only_is_not_found_but_not_without_a_word(talk: Talk) -> None:
    sent = sending.send(talk.root, ["alpha"], "x", thread="late", speaker=PERSON)
    renew(f"{mailbox.message_folder(talk.root, sent.id)}/message.json")
    done = turnpost("thread", "late")
    assert done.exit_code == 4
    first, second = done.stderr.splitlines()
    assert first.startswith("turnpost: there is no thread 'late'")
    assert second.startswith("warning: 1 message was written by a newer turnpost")


def test_an_export_names_the_record_that_stands_in_its_way(talk: Talk) -> None:
    renew(talk.records["state"])
    renew(talk.records["message"])
    exported: list[bytes] = []
    done = exporting.export(talk.root, exported.append, speaker=PERSON)
    assert done.messages == len(exported)
    line = "1 agent and 1 message were written by a newer turnpost, and what needs them is left out; upgrade turnpost to see it"
    assert done.warnings == (line,)
    told = turnpost("export")
    assert len(told.stdout.splitlines()) == done.messages
    assert told.stderr == f"warning: {line}\n"


def listed(talk: Talk, name: str) -> dict[str, Any]:
    speaker = sender.Speaker(registry.find(talk.root, name))
    answer = calls.answer(talk.root, "list", {}, lambda: None, speaker)
    assert not answer.failed
    return answer.document


def test_the_tool_list_says_so_in_its_document(talk: Talk) -> None:
    assert [one["name"] for one in listed(talk, "beta")["agents"]] == ["alpha"]
    assert listed(talk, "beta")["warnings"] == []
    renew(talk.records["state"])
    document = listed(talk, "beta")
    assert document["agents"] == []
    assert document["warnings"] == [
        "1 agent was written by a newer turnpost, and what needs it is left out; upgrade turnpost to see it"
    ]


def test_calls_that_run_side_by_side_do_not_tell_of_each_others(tmp_path: Path) -> None:
    def call(number: int) -> tuple[str, ...]:
        with left_out.noted() as found:
            for one in range(number):
                path = renew(f"{tmp_path}/{number}-{one}.json")
                assert store.if_known(store.load, path) is None
            return found.warnings

    numbers = [0, 1, 2, 3, 20, 30] * 3
    with ThreadPoolExecutor(len(numbers)) as threads_of:
        told = list(threads_of.map(call, numbers))
    assert [line[0].split()[0] if line else "0" for line in told] == [str(number) for number in numbers]


@pytest.mark.parametrize("folder", ["folder", "archive"])
def test_a_packed_message_counts_as_a_message(tmp_path: Path, folder: str) -> None:
    message = ids.new("msg", 0.0)
    path = {
        "folder": f"{mailbox.message_folder(str(tmp_path), message)}/ag-x.json",
        "archive": f"{home.packed(str(tmp_path), ids.day(message))}: {message}",
    }[folder]
    with left_out.noted() as found:
        assert store.if_known(store.understood, {"v": 2}, path) is None
    assert found.warnings[0].startswith("1 message was written")


@pytest.mark.parametrize(("words", "serving"), [("coordinator run", process.run), ("mcp", server.serve)])
def test_what_serves_without_end_tells_nobody(
    talk: Talk, words: str, serving: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT", raising=False)
    renew(talk.records["state"])
    served: list[str] = []

    def serve(root: str) -> None:
        served.append(root)
        assert [one.name for one in agents.agents(root).agents] == ["beta"]

    monkeypatch.setattr(f"{serving.__module__}.{serving.__name__}", serve)
    done = turnpost(*words.split())
    assert (done.exit_code, done.output, served) == (0, "", [talk.root])


def test_what_an_answer_tells_itself_is_not_told_again(tmp_path: Path) -> None:
    def passes(name: str) -> None:
        files.mkdir(f"{tmp_path}/{name.rpartition('/')[0]}")
        store.if_known(store.load, renew(f"{tmp_path}/{name}"))

    with left_out.noted() as outer:
        with left_out.noted() as inner:
            passes("missions/one.json")
            passes("agents/two/agent.json")
        passes("agents/three/agent.json")
    passes("agents/four/agent.json")
    assert [found.warnings[0].partition(" w")[0] for found in (outer, inner)] == [
        "1 agent",
        "1 agent and 1 mission",
    ]
