"""What turnpost does, one scenario each: to be hit at each of its points. A new one is a function or two and an entry here."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from tests.actions.fakes import PERSON
from tests.crash import points
from tests.crash.case import Case, Scenario
from tests.crash.points import Outcome
from tests.hooks.driver import Ran
from turnpost.actions import agents, holding, installing, launching, missions, receipts, sending, stopping
from turnpost.config import Config
from turnpost.core import (
    archive,
    clock,
    files,
    giving_up,
    home,
    ids,
    mailbox,
    outbox,
    registry,
    reporting,
    rules,
    store,
    threads,
)
from turnpost.core.errors import Refused
from turnpost.core.sender import Speaker
from turnpost.service.loop import Coordinator
from turnpost.service.reports import send_all
from turnpost.service.resume import Resumer

QUICK = Config(resume_confirm_seconds=5.0, resume_backoff_seconds=1.0)


def two(case: Case) -> None:
    """Two idle agents; the first has two messages waiting, the second one."""
    case.start("alpha", "beta")
    case.send("first", "alpha")
    case.send("second", "alpha", "beta")


def settle(case: Case, name: str = "alpha") -> None:
    box = case.box(name)
    with box.lock():
        box.settle(store.load_state(case.root, box.key))


def refused_by(rule: str, act: Callable[[Case], object], case: Case) -> bool:
    """Whether it was refused, which it may be by this rule only."""
    try:
        act(case)
    except Refused as refused:
        if refused.rule != rule:
            raise
        return True
    return False


# Sending.


def send(case: Case, *names: str, **more: Any) -> str:
    return sending.send(case.root, names, "third", speaker=PERSON, **more).id


def ask(case: Case) -> None:
    """A question of the agent's to the person and another agent, in a thread of its own."""
    sending.send(
        case.root, ["beta"], "third", kind="question", options=["yes", "no"], thread="the plan", urgent=True,
        refs=["README.md"], speaker=PERSON,
    )  # fmt: skip


def ask_the_person(case: Case) -> str:
    return sending.send(
        case.root, ["person"], "which?", kind="question", options=["yes", "no"], speaker=Speaker(case.agent("alpha"))
    ).id  # fmt: skip


def asked(case: Case) -> None:
    """The person has been asked."""
    two(case)
    case.ids["asked"] = ask_the_person(case)


def pinned(case: Case, outcome: Outcome) -> None:
    """A question to the person is in the inbox and open, or neither."""
    ids = [receipt["id"] for receipt in case.box("person").waiting_receipts()]
    assert [message["id"] for message in threads.open_questions(case.root)] == ids
    assert len(ids) == 1 or outcome.killed or outcome.error


def closed(case: Case, outcome: Outcome) -> None:
    """A question is open as long as its answer has not come."""
    is_open = [message["body"] for message in threads.open_questions(case.root)]
    assert is_open == ([] if "yes" in case.read("alpha") else ["which?"])


def left_by_a_killed_send(case: Case) -> None:
    """A record in the outbox and nothing in the queues."""
    two(case)
    for at in range(1, 200):
        points.struck(lambda: send(case, "alpha", "beta"), "kill", at)
        if files.names(home.outbox(case.root)):
            case.sent.append(("third", ("alpha", "beta")))
            files.sweep(home.outbox(case.root), -60.0)
            return
    raise AssertionError("a send has no record of its own")


# Delivering.


def working(case: Case) -> None:
    """The first agent is in a turn when its messages come."""
    case.start("alpha", "beta")
    case.talks["alpha"].prompt()
    case.send("first", "alpha")
    case.send("second", "alpha", "beta")


def urgent(case: Case) -> None:
    case.start("alpha", "beta")
    case.talks["alpha"].prompt()
    case.send("first", "alpha", urgent=True)
    case.send("second", "alpha", "beta", urgent=True)


def hook(event: str, **payload: Any) -> Any:
    return lambda case: case.talks["alpha"].hook(event, **payload)


def stopped(case: Case, ran: Ran) -> None:
    talk = case.talks["alpha"]
    talk.result = ran
    while talk.stop().goes_on:
        pass


def prompted(case: Case, ran: Ran) -> None:
    case.talks["alpha"].result = ran
    case.talks["alpha"].prompt()


def batched(case: Case, ran: Ran) -> None:
    case.talks["alpha"].result = ran
    case.talks["alpha"].tool_batch()


def woken(case: Case, entering: str) -> None:
    if not entering:
        return  # it could not note the claim, and sleeps
    talk = case.talks["alpha"]
    with mock.patch.object(talk, "_woken", return_value=entering):
        talk.wake()


def silent(case: Case, outcome: Outcome) -> None:
    """Whatever fails, a hook ends with 0: the error would have come out of its guard."""
    assert outcome.error is None


# What becomes of a claim.


def answered(case: Case) -> None:
    """Two messages were delivered and answered, and nobody has looked since."""
    two(case)
    case.talks["alpha"].prompt()


def all_read(case: Case, outcome: Outcome) -> None:
    box = case.box("alpha")
    found = [box.receipt(case.ids[body]) for body in ("first", "second")]
    assert [receipt["state"] for receipt in found if receipt] == ["read", "read"]


def dropped(case: Case) -> None:
    """Two messages were claimed, and what the hook printed never entered."""
    working(case)
    case.talks["alpha"].hook("Stop")


def expire(case: Case) -> bool:
    case.ahead += rules.LEASE + 1
    settle(case)
    return not case.box("alpha").in_flight()


def expired(case: Case, back: bool) -> None:
    assert back or case.ahead < 0.0, "nothing went back to the queue"


def cancel(case: Case) -> None:
    receipts.cancel(case.root, case.ids["second"], speaker=PERSON)


def cancel_again(case: Case) -> None:
    refused_by("too-late", cancel, case)


def give_up(case: Case) -> None:
    giving_up.give_up(case.root, case.agent("alpha")["key"], [case.ids["second"]], "nobody is there")


def told(case: Case, outcome: Outcome) -> None:
    """Whoever wrote what was given up knows it, once."""
    receipt = case.box("alpha").receipt(case.ids["second"])
    assert receipt is not None
    alerts = [mailbox.load_message(case.root, one["id"]) for one in case.box("person").waiting_receipts()]
    about = [alert["body"] for alert in alerts if alert and case.ids["second"] in alert["body"]]
    assert len(about) == (receipt["state"] == "undeliverable"), about


def acknowledged_and_cleared(case: Case) -> None:
    """What proved a read is gone, but was seen."""
    settle(case)
    case.talks["alpha"].become(str(uuid.uuid4()), copied=False)
    case.talks["alpha"].start("clear")


# Sessions that change.


def gone(case: Case) -> None:
    """The first agent is a background session that has ended, with mail, and `claude` would resume it."""
    case.start("alpha", "beta")
    agent = case.agent("alpha")
    agent["kind"], agent["background"], agent["cwd"], agent["root"] = (
        "managed", True, str(case.project), str(case.project),
    )  # fmt: skip
    registry.save_agent(case.root, agent)
    case.stop("alpha")
    case.send("first", "alpha")
    case.send("second", "alpha", "beta")
    case.claude()


def resume(case: Case) -> None:
    Resumer(case.root, QUICK).resume(case.agent("alpha")["key"])


def cleared(case: Case) -> None:
    """A message stands unanswered in a conversation, another waits; then the conversation is cleared."""
    case.start("alpha", "beta")
    case.send("first", "alpha")
    talk = case.talks["alpha"]
    talk.answers = False
    talk.prompt()
    talk.answers = True
    case.send("second", "alpha", "beta")
    talk.become(str(uuid.uuid4()), copied=False)


def copied(case: Case) -> None:
    """A message stands unanswered in a conversation, one is answered, another waits; it goes on under another id elsewhere."""
    case.start("alpha", "beta")
    case.send("zeroth", "alpha")
    talk = case.talks["alpha"]
    talk.prompt()
    case.send("first", "alpha")
    talk.answers = False
    talk.stop()
    talk.answers = True
    case.send("second", "alpha", "beta")
    case.kill("alpha")
    case.new_process("alpha", "--resume", talk.session_id)
    talk.become(str(uuid.uuid4()), copied=True)


def forked(case: Case) -> None:
    """A fork of an ended session, an agent of its own until its first turn shows whose it is."""
    copied(case)
    case.new_process("alpha")
    case.talks["alpha"].start("fork")


def start(source: str) -> Any:
    return lambda case: case.talks["alpha"].start(source)


def typed(case: Case) -> None:
    """The person types something."""
    case.talks["alpha"].prompt()


# What a command changes.


def settings(case: Case) -> Path:
    return case.project / ".claude" / "settings.json"


OLD = '{\n  "model": "opus",\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}\n'


def configured(case: Case) -> None:
    two(case)
    settings(case).parent.mkdir()
    settings(case).write_text(OLD)


def installed(case: Case) -> None:
    configured(case)
    install(case)


def install(case: Case) -> None:
    for scope in ("project", "user"):
        installing.install(case.root, scope, str(case.project), speaker=PERSON)


def uninstall(case: Case) -> None:
    for scope in ("project", "user"):
        installing.uninstall(case.root, scope, str(case.project), speaker=PERSON)


def whole(then: Any) -> Any:
    """Right after the blow each file is the old one or the new one, whole; and doing it again finishes it."""

    def again(case: Case) -> None:
        case.ahead += 20.0  # after which a lock of Claude Code's kind counts as left behind
        text = settings(case).read_text()
        assert text == OLD or ("turnpost" in text and json.loads(text)["model"] == "opus")
        for path in (case.folder / "config" / "settings.json", case.folder / "config" / ".claude.json"):
            assert not path.exists() or "turnpost" in json.dumps(json.loads(path.read_text()))
        then(case)
        if then is install:
            assert "turnpost" in settings(case).read_text()
            assert "turnpost" in (case.folder / "config" / ".claude.json").read_text()
        else:
            assert settings(case).read_text() == OLD
            assert not (case.folder / "config" / "settings.json").exists()

    return again


def rename(case: Case) -> None:
    agents.rename(case.root, "alpha", "omega", speaker=PERSON)


def renamed(case: Case) -> None:
    """Whatever became of it, the agent has a name, and a rename once more finishes it."""
    now = registry.load_agent(case.root, case.agents["alpha"])
    assert now is not None
    if now["name"] == "alpha":
        assert registry.key_of_name(case.root, "alpha") == now["key"]
    agents.rename(case.root, now["name"], "omega", speaker=PERSON)
    assert registry.find(case.root, "omega")["key"] == now["key"]
    case.restart()
    assert registry.key_of_name(case.root, "alpha") is None
    agents.rename(case.root, "omega", "alpha", speaker=PERSON)


def launch(case: Case) -> None:
    launching.launch(case.root, "gamma", "begin", cwd=str(case.project), speaker=PERSON)


def launch_again(case: Case) -> None:
    """One that was killed keeps the name for a while, unless its session began."""
    case.ahead += 700.0
    case.restart()
    if refused_by("taken", launch, case):
        assert case.agent("gamma")["sessions"]


def launched(case: Case) -> None:
    two(case)
    case.claude()


def hold(case: Case) -> None:
    holding.hold(case.root, "alpha", speaker=PERSON)
    holding.release(case.root, "alpha", speaker=PERSON)


def release(case: Case) -> None:
    holding.release(case.root, "alpha", speaker=PERSON)


def lost(case: Case) -> None:
    gone(case)
    state = store.load_state(case.root, case.agent("alpha")["key"])
    assert state is not None
    store.save_state(case.root, case.agent("alpha")["key"], store.change_state(state, "working"))


def stop(case: Case) -> None:
    stopping.stop(case.root, "alpha", speaker=PERSON)


def stop_and_release(case: Case) -> None:
    stop(case)
    holding.release(case.root, "alpha", speaker=PERSON)


def begin(case: Case) -> None:
    missions.start(case.root, "plan", "win", members=["alpha"], speaker=PERSON)


def begun(case: Case) -> None:
    """A mission that was begun and has not got its member gets it by `add`."""
    if refused_by("taken", begin, case):
        missions.add(case.root, "plan", ["alpha"], speaker=PERSON)
    assert [seat.name for seat in missions.show(case.root, "plan").members] == ["alpha"]


def running(case: Case) -> None:
    case.start("alpha", "beta")
    case.send("second", "beta")
    begin(case)


def finish(case: Case) -> None:
    missions.finish(case.root, "plan", speaker=PERSON)


def over(case: Case) -> None:
    refused_by("mission-over", finish, case)
    assert missions.show(case.root, "plan").state == "finished"


# What the coordinator does.


def reported(case: Case) -> None:
    """A child's last words wait to be sent to its parent."""
    two(case)
    agent = case.agent("beta")
    agent["parent"] = case.agent("alpha")["key"]
    registry.save_agent(case.root, agent)
    reporting.switch_on(case.root, agent["key"])
    talk = case.talks["beta"]
    talk.prompt()
    talk.stop(last_assistant_message="done")
    assert reporting.waiting(case.root, agent["key"])
    case.sent.append(("done", ("alpha",)))


def report(case: Case) -> None:
    send_all(case.root, case.agent("beta"))


def day_over(case: Case) -> None:
    """Two messages are read by all, and their day is long over."""
    two(case)
    for name in ("alpha", "beta"):
        case.talks[name].prompt()
        settle(case, name)
    case.ahead += 9 * 86_400.0


def pack(case: Case) -> None:
    archive.pack(case.root, ids.day(case.ids["first"]), archive.last_over(clock.now(), 7))


def packed(case: Case) -> None:
    """The same day, packed."""
    day_over(case)
    pack(case)


def drop(case: Case) -> None:
    if (day := ids.day(case.ids["first"])) in archive.sizes(case.root):
        archive.drop(case.root, day)


def dropped_whole(case: Case, outcome: Outcome) -> None:
    assert archive.sizes(case.root) == {}


def busy(case: Case) -> None:
    """Something of everything: a killed send, a report, a claim that was lost and one that was answered."""
    reported(case)
    case.talks["alpha"].hook("UserPromptSubmit", prompt="go on")


def coordinate(case: Case) -> None:
    case.ahead += 20.0
    Coordinator(case.root).round()


ALL = (
    Scenario("send to one", two, lambda case: send(case, "alpha"), adds={"alpha": ["third"]}, how="core"),
    Scenario(
        "send to many", two, lambda case: send(case, "alpha", "beta"), adds={"alpha": ["third"], "beta": ["third"]},
        how="core",
    ),
    Scenario("ask in a thread", two, ask, adds={"beta": ["third"]}),
    Scenario("ask the person", two, ask_the_person, check=pinned),
    Scenario(
        "answer", asked, lambda case: sending.reply(case.root, case.ids["asked"], "1", speaker=PERSON).id, check=closed,
        adds={"alpha": ["yes"]}, leaves=("state/agents/person/asked/ID",),
    ),
    Scenario("recover", left_by_a_killed_send, lambda case: outbox.recover(case.root, 0.0)),
    Scenario("deliver at a stop", working, hook("Stop"), stopped, check=silent, how="core"),
    Scenario("deliver at a prompt", two, hook("UserPromptSubmit", prompt="go on"), prompted, check=silent, how="core"),
    Scenario("deliver at a tool batch", urgent, hook("PostToolBatch"), batched, check=silent),
    Scenario("deliver by the waiter", two, lambda case: case.talks["alpha"].take(), woken),
    Scenario("acknowledge", answered, settle, check=all_read, how="core"),
    Scenario("expire", dropped, expire, expired, how="core"),
    Scenario("cancel", two, cancel, again=cancel_again, takes={"alpha": ["second"], "beta": ["second"]}),
    Scenario("acknowledge before a clear", answered, settle, again=acknowledged_and_cleared, check=all_read),
    Scenario("give up", two, give_up, takes={"alpha": ["second"]}, check=told),
    Scenario("resume", gone, resume, how="slow"),
    Scenario("relink by clear", cleared, start("clear"), again=start("clear"), check=silent),
    Scenario("relink a copy", copied, start("fork"), again=start("fork"), check=silent),
    Scenario("relink a fork", forked, hook("UserPromptSubmit", prompt="go on"), prompted, again=typed, check=silent),
    Scenario("install", configured, install, again=whole(install)),
    Scenario("uninstall", installed, uninstall, again=whole(uninstall)),
    Scenario("rename", two, rename, again=renamed),
    Scenario("launch", launched, launch, again=launch_again, how="slow"),
    Scenario("hold", two, hold, again=release),
    Scenario("stop", lost, stop_and_release, again=stop_and_release, how="slow"),
    Scenario("begin a mission", two, begin, again=begun),
    Scenario("end a mission", running, finish, again=over, last=("beta",)),
    Scenario("report", reported, report),
    Scenario("pack a day", day_over, pack, again=pack, check=all_read),
    Scenario("drop a day", packed, drop, again=drop, check=dropped_whole, takes={"alpha": ["first", "second"], "beta": ["second"]}),
    Scenario("a coordinator's round", busy, coordinate),
)  # fmt: skip
