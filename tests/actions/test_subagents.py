"""Writing to a subagent, and a subagent that writes."""

from __future__ import annotations

import pytest

from tests.actions.fakes import PERSON, FakeHome
from turnpost import harness
from turnpost.actions import agents, conversations, journal, receipts, sending
from turnpost.actions.searching import Query
from turnpost.cli import views
from turnpost.core import giving_up, procs, registry, sender, store, subagents
from turnpost.core.errors import NotFound, Refused
from turnpost.core.mailbox import Mailbox
from turnpost.core.records import TYPE_CHECKING
from turnpost.core.sender import Speaker
from turnpost.service.loop import Coordinator
from turnpost.tools import calls

if TYPE_CHECKING:
    from turnpost.core.records import Agent


def grow(home: FakeHome, owner: Agent, sub: str = "a1b2c3d4") -> Agent:
    """A subagent that runs in this agent's session."""
    state = store.load_state(home.root, owner["key"])
    assert state is not None
    key = subagents.key_of(owner["key"], sub)
    subagents.start(home.root, key, about="Explore", state=state, transcript="")
    found = subagents.load(home.root, key)
    assert found is not None
    return found


@pytest.fixture
def alpha(home: FakeHome) -> Agent:
    return home.agent("alpha", "working")


@pytest.fixture
def sub(home: FakeHome, alpha: Agent) -> Agent:
    return grow(home, alpha)


def refused(home: FakeHome, rule: str, *args: object, **more: object) -> Refused:
    """A send that is refused by this rule and writes nothing."""
    before = home.tree()
    with pytest.raises(Refused) as caught:
        sending.send(home.root, *args, **more)  # type: ignore[arg-type]
    assert caught.value.rule == rule
    assert home.tree() == before
    return caught.value


def refusals(home: FakeHome) -> list[tuple[object, ...]]:
    """What the log says was refused: what was tried, by whom, with whom, and which way it would have gone."""
    found = journal.entries(home.root, journal.Query(action="refusal")).entries
    return [(one.details["tried"], one.from_, one.to, one.direction) for one in found]


@pytest.mark.parametrize("name", ["alpha/a1b2c3d4", "alpha/a1b2", "ALPHA/a1b2c3d4"])
def test_the_person_and_its_agent_write_to_it_by_agent_and_id(
    home: FakeHome, alpha: Agent, sub: Agent, name: str
) -> None:
    for speaker in (PERSON, Speaker(alpha)):
        sent = sending.send(home.root, [name], "look at b.py", speaker=speaker)
        (to,) = sent.recipients
        assert (to.name, to.boundary) == ("alpha/a1b2c3d4", "next-request")
        assert receipts.show(home.root, sent.id).receipts["alpha/a1b2c3d4"].state == "queued"
    assert len(Mailbox(home.root, sub["key"]).waiting()) == 2


def test_it_is_listed_under_its_agent(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    sending.send(home.root, [sub["name"]], "x", speaker=PERSON)
    (view,) = agents.agents(home.root).agents
    (one,) = view.subagents
    assert (one.name, one.about, one.waiting) == ("alpha/a1b2c3d4", "Explore", 1)
    registry.rename(home.root, alpha, "omega")
    assert agents.agents(home.root).agents[0].subagents[0].name == "omega/a1b2c3d4"


def test_an_unknown_one_is_refused_with_those_that_run(home: FakeHome, sub: Agent) -> None:
    for name in ("alpha/ffff", "alpha/", "alpha/a", "alpha/../x"):
        with pytest.raises(NotFound, match="alpha/a1b2c3d4"):
            sending.send(home.root, [name], "x", speaker=PERSON)
    with pytest.raises(NotFound, match="beta"):
        sending.send(home.root, ["beta/a1b2c3d4"], "x", speaker=PERSON)


def test_only_its_agent_and_the_person_may_write_to_it(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    child, stranger = home.agent("kid", parent=alpha), home.agent("omega")
    for other in (child, stranger, grow(home, alpha, "b2b2b2b2")):
        refused(home, "not-allowed", [sub["name"]], "x", speaker=Speaker(other))


def test_one_byte_over_its_limit_is_refused_with_both_numbers(home: FakeHome, sub: Agent) -> None:
    sending.send(home.root, [sub["name"]], "x" * 4096, speaker=PERSON)
    error = refused(home, "too-long", [sub["name"]], "x" * 4097, speaker=PERSON)
    assert (error.numbers["bytes"], error.numbers["limit"]) == (4097, 4096)
    assert "8 such may wait" in error.message


def test_the_ninth_is_refused_and_its_agent_may_still_have_more(
    home: FakeHome, alpha: Agent, sub: Agent
) -> None:
    for number in range(8):
        sending.send(home.root, [sub["name"]], str(number), speaker=PERSON)
    error = refused(home, "mailbox-full", [sub["name"]], "nine", speaker=PERSON)
    assert (error.numbers["waiting"], error.numbers["limit"]) == (8, 8)
    refused(home, "mailbox-full", ["alpha", sub["name"]], "nine", speaker=PERSON)
    for number in range(9):
        sending.send(home.root, ["alpha"], str(number), speaker=PERSON)


def test_the_limits_are_the_persons_to_set(home: FakeHome, sub: Agent) -> None:
    with open(home.root + "/config.toml", "w") as file:
        file.write("subagent_body_bytes = 3\nsubagent_mailbox_size = 1\n")
    refused(home, "too-long", [sub["name"]], "four", speaker=PERSON)
    sending.send(home.root, [sub["name"]], "one", speaker=PERSON)
    refused(home, "mailbox-full", [sub["name"]], "two", speaker=PERSON)


def test_after_its_end_it_is_refused_as_ended_and_what_waited_stays_to_be_seen(
    home: FakeHome, alpha: Agent, sub: Agent
) -> None:
    waits = sending.send(home.root, [sub["name"]], "too late", speaker=PERSON)
    state = store.load_state(home.root, sub["key"])
    assert state is not None
    with Mailbox(home.root, sub["key"]).lock():
        assert subagents.end(home.root, sub["key"], state)
    refused(home, "ended", [sub["name"]], "x", speaker=Speaker(alpha))
    assert agents.view(home.root, alpha).subagents == ()
    shown = receipts.show(home.root, waits.id).receipts[sub["name"]]
    assert (shown.state, shown.reason) == ("undeliverable", subagents.ENDED)
    assert refusals(home) == [("send", "alpha", sub["name"], "parent → subagent")]
    again = grow(home, alpha)
    assert Mailbox(home.root, again["key"]).waiting() == []


def test_one_whose_session_is_gone_has_ended_and_the_coordinator_tells_the_sender(
    home: FakeHome, alpha: Agent, sub: Agent
) -> None:
    waits = sending.send(home.root, [sub["name"]], "x", speaker=PERSON)
    home.kill(alpha)
    refused(home, "ended", [sub["name"]], "x", speaker=PERSON)
    Coordinator(home.root).round()
    assert receipts.show(home.root, waits.id).receipts[sub["name"]].state == "undeliverable"
    box = Mailbox(home.root, registry.PERSON)
    assert len(box.waiting()) == 1


def test_a_coordinator_never_resumes_a_subagent(
    home: FakeHome, sub: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise AssertionError("Claude Code was asked")

    monkeypatch.setattr(harness.Claude, "find", fail)
    waits = sending.send(home.root, [sub["name"]], "x", speaker=PERSON)
    Coordinator(home.root).round()
    assert receipts.show(home.root, waits.id).receipts[sub["name"]].state == "queued"


def test_it_speaks_for_itself_and_to_its_agent_only(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    home.agent("kid", parent=alpha)
    sent = sending.send(home.root, ["parent"], "found it", speaker=Speaker(sub))
    message = sending.original(home.root, sent.id)
    assert message["sender"] == {
        "kind": "agent", "name": "alpha/a1b2c3d4", "key": sub["key"], "sub": "a1b2c3d4",
    }  # fmt: skip
    assert [party["name"] for party in message["to"]] == ["alpha"]
    for name in ("person", "kid"):
        error = refused(home, "not-allowed", [name], "x", speaker=Speaker(sub))
        assert "its agent only" in error.message
    refused(home, "self", [sub["name"]], "x", speaker=Speaker(sub))


def test_its_agent_answers_it(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    asked = sending.send(home.root, ["parent"], "which file?", kind="question", speaker=Speaker(sub))
    answer = sending.reply(home.root, asked.id, "b.py", speaker=Speaker(alpha))
    assert [to.name for to in answer.recipients] == ["alpha/a1b2c3d4"]


def test_in_plan_mode_it_may_not_send_either(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    home.plan_mode(alpha)
    refused(home, "read-only", ["parent"], "x", speaker=Speaker(sub))


def test_a_stamp_is_believed_only_for_a_subagent_that_runs(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    assert sender.as_subagent(home.root, Speaker(alpha), "a1b2c3d4").agent["key"] == sub["key"]
    for forged in ("ffff", "../x", "", "A1B2C3D4~"):
        with pytest.raises(Refused):
            sender.as_subagent(home.root, Speaker(alpha), forged)
    with pytest.raises(Refused):
        sender.as_subagent(home.root, Speaker(home.agent("beta")), "a1b2c3d4")


def test_a_command_is_known_by_the_shell_that_runs_it(
    home: FakeHome, alpha: Agent, sub: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = alpha["key"]
    command = "turnpost send parent 'it'\"'\"'s done'"
    shell = ["/bin/bash", "-c", "eval '" + command.replace("'", "'\"'\"'") + "' < /dev/null && pwd -P"]
    lines = {11: shell, 12: ["turnpost", "send", "parent", "it's done"]}
    monkeypatch.setattr(procs, "command", lambda pid: lines.get(pid, []))
    assert subagents.speaking(home.root, owner, [12, 11]) is None
    subagents.speak(home.root, owner, "a1b2c3d4", command)
    found = subagents.speaking(home.root, owner, [12, 11])
    assert found is not None
    assert found["key"] == sub["key"]
    lines[11] = ["/bin/bash", "-c", "eval 'turnpost send person hello'"]
    assert subagents.speaking(home.root, owner, [12, 11]) is None
    lines[11] = shell
    subagents.speak(home.root, owner, "", command)
    assert subagents.speaking(home.root, owner, [12, 11]) is None


def test_an_ended_one_is_forgotten_after_a_while_and_not_before(
    home: FakeHome, alpha: Agent, sub: Agent
) -> None:
    state = store.load_state(home.root, sub["key"])
    assert state is not None
    with Mailbox(home.root, sub["key"]).lock():
        subagents.end(home.root, sub["key"], state)
    subagents.forget(home.root, sub["key"], older_than=60.0)
    assert subagents.every(home.root, alpha["key"]) == [sub["key"]]
    subagents.forget(home.root, sub["key"], older_than=-1.0)
    assert subagents.every(home.root, alpha["key"]) == []


def test_giving_up_names_the_subagent(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    sent = sending.send(home.root, [sub["name"]], "x", speaker=Speaker(alpha))
    giving_up.give_up(home.root, sub["key"], [sent.id], "why")
    (entry,) = Mailbox(home.root, alpha["key"]).waiting()
    assert "alpha/a1b2c3d4" in sending.original(home.root, entry[11:41])["body"]


def test_a_tool_call_that_bears_a_stamp_is_the_subagents(home: FakeHome, alpha: Agent, sub: Agent) -> None:
    def use(**given: object) -> calls.Answer:
        return calls.answer(home.root, "send", {"body": "found it", **given}, lambda: None, Speaker(alpha))

    sent = use(to="parent", subagent="a1b2c3d4")
    assert not sent.failed
    assert sending.original(home.root, sent.document["id"])["sender"]["name"] == "alpha/a1b2c3d4"
    assert use(to="person", subagent="a1b2c3d4").document["error"]["rule"] == "not-allowed"
    assert use(to="person", subagent="ffff").document["error"]["rule"] == "not-allowed"
    assert use(to="alpha, person", subagent="ffff").document["error"]["rule"] == "not-allowed"
    assert refusals(home) == [
        ("send", "alpha/a1b2c3d4", "person", "subagent → person"),
        ("send", "alpha", "person", "agent → person"),
        ("send", "alpha", "alpha, person", "agent → agent, agent → person"),
    ]
    unstamped = use(to="person")
    assert sending.original(home.root, unstamped.document["id"])["sender"]["name"] == "alpha"


def test_the_list_for_people_shows_it_under_its_agent(home: FakeHome, sub: Agent) -> None:
    shown = views.view(agents.agents(home.root)).splitlines()
    assert shown[1].startswith("alpha ")
    assert shown[2].split() == ["/a1b2c3d4", "working", "0", "subagent", "Explore"]


def test_a_subagent_sees_its_own_thread_and_its_agent_sees_that_too(
    home: FakeHome, alpha: Agent, sub: Agent
) -> None:
    sending.send(home.root, [sub["name"]], "count again", speaker=Speaker(alpha))
    sending.send(home.root, ["person"], "not the subagent's", speaker=Speaker(alpha))
    for speaker in (Speaker(sub), Speaker(alpha)):
        found = conversations.search(home.root, Query("count"), speaker=speaker).messages
        assert [message.body for message in found] == ["count again"]
    assert len(conversations.search(home.root, Query(), speaker=Speaker(sub)).messages) == 1
    assert conversations.thread(home.root, "alpha", speaker=Speaker(sub)).name == f"alpha+{sub['name']}"
