"""Stuck and given-up messages, deaf and lost agents, the coordinator, the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.actions.fakes import FakeHome
from tests.core import spool as mailing
from tests.doctor.kit import found, odd
from turnpost.core import clock, rules
from turnpost.core import home as paths
from turnpost.doctor import mail, service
from turnpost.doctor.mail import Mail
from turnpost.doctor.service import Facts, Trouble

if TYPE_CHECKING:
    from turnpost.core.records import Receipt

NOW = 1_000_000.0
IDLE = Mail("alpha", "idle", True, True, False, False, ())
DOWN = Facts(False, None, None, record=False, locked=False)


def receipt(age: float, **changed: Any) -> Receipt:
    made: Receipt = {
        "v": 1, "id": "msg-1", "state": "queued", "queued_at": NOW - age, "claimed_at": None, "delivered_at": None,
        "read_at": None, "boundary": None, "session_id": None, "attempts": 0,
    }  # fmt: skip
    made.update(changed)  # type: ignore[typeddict-item]
    return made


@pytest.mark.parametrize("doing", ["idle", "working", "stopped", "blocked"])
def test_a_fresh_message_is_not_stuck(doing: Any) -> None:
    assert mail.check_stuck(IDLE._replace(doing=doing, receipts=(receipt(5),)), NOW) == []


@pytest.mark.parametrize("doing", ["idle", "stopped", "lost", "starting"])
def test_a_message_that_could_have_been_read_is_stuck(doing: Any) -> None:
    old = receipt(mail.STUCK + 60, attempts=2)
    (check,) = mail.check_stuck(IDLE._replace(doing=doing, receipts=(old,), last_error="no folder"), NOW)
    assert check.status == "fail"
    assert "msg-1 for 2 min, queued, attempt 2; its resume failed: no folder" in check.line
    assert "turnpost wake alpha" in check.mend


@pytest.mark.parametrize(
    ("doing", "mend"), [("working", "turn has to end"), ("blocked", "permission prompt")]
)
def test_behind_a_long_turn_a_message_only_waits(doing: Any, mend: str) -> None:
    waits = IDLE._replace(doing=doing, receipts=(receipt(mail.STUCK + 60),))
    assert mail.check_stuck(waits, NOW) == []
    (check,) = mail.check_stuck(waits._replace(receipts=(receipt(mail.LONG + 1),)), NOW)
    assert check.status == "warn"
    assert mend in check.mend


def test_held_mail_is_not_stuck_but_told() -> None:
    held = IDLE._replace(held=True, receipts=(receipt(mail.LONG),))
    assert mail.check_stuck(held, NOW) == []
    (check,) = mail.check_agent(held)
    assert (check.name, check.status) == ("held", "warn")
    assert mail.check_agent(held._replace(receipts=()))[0].status == "ok"


@pytest.mark.parametrize(("background", "mend"), [(True, "turnpost wake alpha"), (False, "type anything")])
def test_a_deaf_agent_is_told(background: bool, mend: str) -> None:
    assert mail.check_agent(IDLE) == []
    (check,) = mail.check_agent(IDLE._replace(deaf=True, listening=False, background=background))
    assert (check.name, check.status) == ("deaf", "warn")
    assert mend in check.mend


def test_a_lost_agent_is_told() -> None:
    (check,) = mail.check_agent(IDLE._replace(doing="lost"))
    assert (check.name, check.status) == ("lost", "warn")
    assert "next message" in check.line


@pytest.mark.parametrize("how", [{"doing": "lost"}, {"deaf": True, "listening": False}])
def test_what_waits_for_a_lost_or_deaf_agent_is_not_said_to_be_still_to_come(how: dict[str, Any]) -> None:
    waiting = IDLE._replace(**how, receipts=(receipt(1.0), receipt(2.0)))
    assert "for the 2 messages that wait" in mail.check_agent(waiting)[0].line


def test_mail_to_a_deaf_terminal_waits_for_its_person() -> None:
    deaf = IDLE._replace(background=False, listening=False, receipts=(receipt(mail.STUCK + 60),))
    (check,) = mail.check_stuck(deaf, NOW)
    assert check.status == "warn"
    assert "terminal" in check.mend


def test_what_is_there_is_seen(home: FakeHome) -> None:
    """An idle agent without a waiter, one that was killed, and mail for a stopped one."""
    home.agent("deaf", ago=rules.DEAF_GRACE + 5)
    gone = home.agent("gone", "working")
    asleep = home.agent("asleep", "stopped")
    assert odd(mail.check_all(home.root)) == ["deaf"]
    home.kill(gone)
    mailing.send(home.root, "hello", asleep)
    assert odd(mail.check_all(home.root)) == ["deaf", "lost"]
    assert mail.needs_coordinator(mail.look(home.root)) == ["asleep"]


def test_a_message_that_was_given_up_is_told_with_its_reason(home: FakeHome) -> None:
    agent = home.agent("alpha", "stopped")
    message_id = mailing.send(home.root, "hello", agent)
    assert mail.check_given_up(mail.given_up(home.root)) == []
    box = home.box(agent)
    with box.lock():
        box.end(message_id, "undeliverable", "the folder is gone")
    (check,) = mail.check_given_up(mail.given_up(home.root))
    assert check.status == "warn"
    assert message_id in check.line
    assert "the folder is gone" in check.line


def test_a_running_coordinator_is_fine() -> None:
    assert odd(service.check_coordinator(DOWN._replace(running=True, pid=7, since=NOW - 60), NOW)) == []


def test_a_coordinator_that_nobody_needs_may_be_down() -> None:
    assert odd(service.check_coordinator(DOWN, NOW)) == []


@pytest.mark.parametrize(
    ("facts", "status", "says"),
    [
        (DOWN._replace(needed_by=("alpha",)), "fail", "alpha"),
        (DOWN._replace(locked=True), "fail", "lock"),
        (DOWN._replace(record=True), "warn", "stale"),
    ],
)
def test_a_coordinator_that_is_missed(facts: Facts, status: str, says: str) -> None:
    (check,) = service.check_coordinator(facts, NOW)
    assert check.status == status
    assert says in check.line


def test_the_facts_of_a_killed_coordinator(home: FakeHome) -> None:
    home.agent("alpha")
    record = {"v": 1, "pid": 1, "token": "never", "since": NOW}
    Path(home.root, "coordinator.json").write_text(json.dumps(record))
    assert service.look(home.root, []) == DOWN._replace(record=True)


@pytest.mark.process
def test_a_lock_whose_holder_has_no_record_is_seen(home: FakeHome) -> None:
    import fcntl

    home.agent("alpha")
    with open(home.root + "/coordinator.lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert service.look(home.root, []).locked
    assert not service.look(home.root, []).locked


def test_failures_of_the_last_day_are_told_once_for_each_kind(home: FakeHome) -> None:
    home.agent("alpha")
    now = clock.now()
    lines = [
        {
            "at": clock.rfc3339(now - 3600),
            "action": "hook-failed",
            "hook": "at_stop",
            "error": "OSError: full",
        },
        {"at": clock.rfc3339(now - 60), "action": "hook-failed", "hook": "at_stop", "error": "OSError: busy"},
        {"at": clock.rfc3339(now - 60), "action": "read", "agent": "x"},
        {"at": clock.rfc3339(now - 30), "action": "resume-failed", "agent": "x", "error": "no folder"},
    ]
    log = Path(paths.log(home.root))
    log.write_text("cut off}\n" + "".join(json.dumps(line) + "\n" for line in lines))
    checks = service.check_log(service.troubles(home.root), now)
    assert [check.status for check in checks] == ["warn", "warn"]
    assert "2 times" in checks[0].line
    assert "OSError: busy" in checks[0].line
    assert "no folder" in checks[1].line


@pytest.mark.parametrize("error", ["JSONDecodeError: Expecting value", "BrokenPipeError: [Errno 32]"])
def test_a_hook_that_was_cut_off_with_its_session_is_no_failure(error: str) -> None:
    """The session was killed, or its terminal closed, while the hook ran."""
    assert service.check_log([Trouble(NOW, "hook-failed", error)], NOW) == []
    assert len(service.check_log([Trouble(NOW, "trouble", error)], NOW)) == 1


def test_old_failures_are_forgotten() -> None:
    old = Trouble(NOW - 2 * 86_400, "hook-failed", "x")
    assert service.check_log([old], NOW) == []


def test_all_is_well_in_one_line(home: FakeHome) -> None:
    home.agent("alpha", "working")
    assert "none stuck" in found(mail.check_all(home.root), "mail").line
