"""Broken surroundings: whatever is wrong with ours, Claude goes on in silence, soon, and nothing is lost."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core import spool
from tests.hooks.driver import FakeSession, Ran
from turnpost.core import bell, clock, files, home, mailbox

pytestmark = pytest.mark.process

SOON = 5.0
"""Seconds. The hook's own limit is half a second; the rest is for a machine under load."""
EVENTS: dict[str, dict[str, Any]] = {
    "UserPromptSubmit": {"prompt": "x"},
    "PostToolBatch": {},
    "PermissionRequest": {},
    "Notification": {"notification_type": "permission_prompt"},
    "Stop": {},
    "StopFailure": {},
    "SessionEnd": {"reason": "other"},
    "SessionStart": {"source": "resume"},
}


def goes_on(session: FakeSession, events: dict[str, dict[str, Any]] = EVENTS) -> None:
    """Every hook lets Claude go on, in silence and soon. A start may still tell the agent who it is."""
    for event, payload in events.items():
        ran = session.hook(event, waiter=False, **payload)
        assert ran.silent or (event == "SessionStart" and ran.briefs), (event, ran)
        assert ran.seconds < SOON, (event, ran)
    waiters = [session.arm("Stop"), session.arm("SessionStart")]
    clock.sleep(0.3)
    for waiter in waiters:
        waiter.terminate()
        assert waiter.communicate(timeout=10) == (b"", b"")
        assert waiter.returncode != 2
        session.waiters.remove(waiter)


def deliverable(session: FakeSession, sent: list[str]) -> None:
    """After the mend the session starts anew and reads everything once, in order."""
    with FakeSession(session.root, session.folder, session_id=session.session_id) as again:
        again.start("resume")
        while len(again.read) < len(sent):
            again.wake()
            again.stop()
        again.stop()
        assert again.read == sent


@pytest.fixture
def working(session: FakeSession) -> FakeSession:
    """A session in the middle of a turn."""
    session.prompt()
    session.end_waiters()
    return session


@pytest.fixture
def ordinary() -> tuple[str, ...]:
    """What takes root's right to read everything from a hook, so that modes count as for anybody else."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        reason = "RUNNING AS ROOT WITHOUT setpriv: modes mean nothing here"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return (
        "setpriv",
        "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search",
    )


@pytest.mark.parametrize(
    ("path", "mode"),
    [("", 0o000), ("/agents", 0o000), ("/agents/KEY", 0o000), ("/agents/KEY", 0o500), ("/agents/KEY/queue", 0o000),
     ("/agents/KEY/queue", 0o500), ("/agents/KEY/claimed", 0o500), ("/sessions", 0o000)],
)  # fmt: skip
def test_a_folder_that_cannot_be_read_or_written(
    working: FakeSession, ordinary: tuple[str, ...], path: str, mode: int
) -> None:
    sent = [spool.send(working.root, "one", working.agent)]
    folder = working.root + path.replace("KEY", working.key)
    working.prefix = ordinary
    os.chmod(folder, mode)
    goes_on(working)
    os.chmod(folder, 0o700)
    assert spool.receipt(working.root, working.agent, sent[0])["attempts"] == 0
    working.prefix = ()
    working.kill()
    deliverable(working, sent)


DAMAGE = [b"", b"{}", b'{"v":1,"id":7,"key":[],"name":{},"session_id":0}', b"[" * 50_000]


@pytest.mark.parametrize("damage", DAMAGE, ids=["empty", "blank", "odd", "deep"])
@pytest.mark.parametrize("record", ["agent.json", "state.json", "waiter.json", "queue"])
def test_a_damaged_record_of_an_agent_costs_no_message(
    working: FakeSession, record: str, damage: bytes
) -> None:
    sent = [spool.send(working.root, body, working.agent) for body in ("one", "two")]
    agent, folder = working.agent, home.agent(working.root, working.key)
    names = [f"queue/{name}" for name in files.names(folder + "/queue")] if record == "queue" else [record]
    for name in names:
        files.write(
            f"{folder}/{name}", damage
        )  # another file: an entry can be the message itself by another name
    working.stop()
    assert working.read == sent
    assert not working.stop().goes_on
    assert working.settled(1)
    sent.append(spool.send(working.root, "three", agent))
    working.wake()
    assert working.read == sent


@pytest.mark.parametrize("damage", DAMAGE, ids=["empty", "blank", "odd", "deep"])
def test_a_damaged_message_is_set_aside_and_costs_nobody_elses(working: FakeSession, damage: bytes) -> None:
    one, two = (spool.send(working.root, body, working.agent) for body in ("one", "two"))
    Path(f"{mailbox.message_folder(working.root, one)}/message.json").write_bytes(damage)
    working.stop()
    assert working.read == [two]
    (kept,) = files.names(home.agent(working.root, working.key) + "/damaged")
    assert mailbox.entry_id(kept) == one


@pytest.mark.parametrize("damage", [b"", b"../../..", b"\xff\x00", b"ag-unknown", b"x" * 300])
def test_a_damaged_session_link_is_mended_by_the_next_start(working: FakeSession, damage: bytes) -> None:
    key, sent = working.key, [spool.send(working.root, "one", working.agent)]
    Path(home.session(working.root, working.session_id)).write_bytes(damage)
    goes_on(working, {event: payload for event, payload in EVENTS.items() if event != "SessionStart"})
    assert files.names(f"{working.root}/agents") == [key]
    working.start("resume")
    assert working.key == key
    working.wake()
    assert working.read == sent


def test_a_damaged_agent_is_not_replaced_by_a_new_one_at_a_start(working: FakeSession) -> None:
    sent = [spool.send(working.root, "one", working.agent)]
    path = Path(home.agent(working.root, working.key) + "/agent.json")
    whole = path.read_bytes()
    path.write_bytes(b"{")
    key = working.key
    assert working.hook("SessionStart", source="resume", waiter=False).silent
    assert working.key == key
    assert files.names(f"{working.root}/agents") == [key]
    path.write_bytes(whole)
    working.kill()
    deliverable(working, sent)


def test_a_lock_that_another_process_holds(working: FakeSession) -> None:
    sent = [spool.send(working.root, "one", working.agent)]
    with Path(home.agent(working.root, working.key) + "/lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = working.hook("Stop", waiter=False)
        assert ran.silent
        assert 0.5 <= ran.seconds < SOON
        assert working.hook("UserPromptSubmit", prompt="x").silent
    assert "LockBusy" in spool.log(working.root)
    working.stop()
    assert working.read == sent


@pytest.mark.slow
def test_a_lock_that_is_held_for_30_seconds_delays_what_waits_and_nothing_else(working: FakeSession) -> None:
    """Turns begin and end meanwhile, each hook within the half second that it waits for the lock."""
    sent = [spool.send(working.root, "one", working.agent), spool.send(working.root, "two", working.agent)]
    turns = 0
    with Path(home.agent(working.root, working.key) + "/lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = clock.monotonic() + 30.0
        while clock.monotonic() < end:
            for ran in (working.tool_batch(), working.stop(), working.prompt()):
                assert ran.silent
                assert ran.seconds < SOON
            working.stop()
            turns += 1
            with pytest.raises(TimeoutError):
                working.wake(4.0)
    assert working.read == []
    busy = [json.loads(line) for line in spool.log(working.root).splitlines()]
    assert [one["hook"] for one in busy].count("at_stop") == 2 * turns
    assert all(
        "was held by another process for 0.5 s" in one["error"] for one in busy if one["hook"] != "waiter"
    )
    working.wake()
    working.stop()
    assert working.read == sent
    assert working.settled(1)
    assert [spool.receipt(working.root, working.agent, one)["attempts"] for one in sent] == [1, 1]
    with pytest.raises(TimeoutError):
        working.wake(1.0)


def test_a_lock_that_is_held_while_the_waiter_is_rung_only_delays_it(session: FakeSession) -> None:
    with Path(home.agent(session.root, session.key) + "/lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = spool.message("one", session.agent)
        spool.put(session.root, message, session.agent)
        bell.ring_waiter(session.root, session.key)
        with pytest.raises(TimeoutError):
            session.wake(1.5)
    session.wake()
    assert session.read == [message["id"]]


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    with FakeSession(str(tmp_path / "state"), tmp_path / "claude") as session:
        goes_on(session)
    assert (tmp_path / "state").read_text() == "not a folder"


def test_a_home_that_is_gone(working: FakeSession) -> None:
    shutil.rmtree(working.root)
    goes_on(working, {event: payload for event, payload in EVENTS.items() if event != "SessionStart"})


@pytest.mark.parametrize("gone", ["package", "hooks", "hook", "interpreter's library"])
def test_an_installation_that_is_gone(working: FakeSession, tmp_path: Path, gone: str) -> None:
    sent = [spool.send(working.root, "one", working.agent)]
    entries = {event: working.entries(event) for event in EVENTS}
    for entry in (entry for found in entries.values() for entry in found):
        package, script = entry["args"].index("turnpost") - 2, entry["args"].index("turnpost") - 1
        if gone == "package":
            entry["args"][package] = str(tmp_path / "gone")
        elif gone == "hooks":
            entry["args"][script] = str(tmp_path / "gone" / Path(entry["args"][script]).name)
        elif gone == "hook":
            empty = tmp_path / Path(entry["args"][script]).name
            empty.write_text("raise SystemExit(2)\n")
            entry["args"][script] = str(empty)
        else:
            broken = tmp_path / "turnpost"
            broken.mkdir(exist_ok=True)
            (broken / "__init__.py").write_text("def broken(:\n")
            entry["args"][package] = str(tmp_path)
    goes_on(working)
    working.kill()
    deliverable(working, sent)


@pytest.mark.parametrize(
    "stdin",
    [b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff\xfe\x00", b"{}", b'{"session_id": {}}', b"[" * 100_000, b'{"x":"' + b"y" * 20_000_000],
    ids=["empty", "half", "list", "null", "number", "text", "bytes", "object", "odd", "deep", "huge"],
)  # fmt: skip
def test_garbage_for_input(working: FakeSession, stdin: bytes) -> None:
    sent = [spool.send(working.root, "one", working.agent, urgent=True)]
    for event in EVENTS:
        ran = working.hook(event, stdin=stdin, waiter=False)
        assert ran.silent, (event, ran)
        assert ran.seconds < SOON
    working.stop()
    assert working.read == sent


def test_a_huge_input_that_is_whole_is_answered(working: FakeSession) -> None:
    sent = [spool.send(working.root, "one", working.agent)]
    working.stop(last_assistant_message="x" * 8_000_000)
    assert working.read == sent


def test_a_reader_that_is_gone_costs_nothing(working: FakeSession) -> None:
    sent = spool.send(working.root, "one", working.agent)
    (entry, _) = working.entries("Stop")
    process = subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=working.environment(),
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    payload = {
        "session_id": working.session_id,
        "transcript_path": str(working.transcript),
        "hook_event_name": "Stop",
    }
    process.stdin.write(json.dumps(payload).encode())
    process.stdin.close()
    assert process.wait(timeout=10) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert spool.receipt(working.root, working.agent, sent)["state"] == "claimed"  # its lease ends


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, 128 KiB large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        sys.platform.startswith("linux")
        and os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail("NO SMALL DISK: root may not mount a tmpfs here")
        pytest.skip("NO SMALL DISK: only root on Linux can mount one")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def _fill(folder: Path) -> Callable[[], None]:
    """Take all the room there is; what gives it back."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast.unlink


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    root = str(small_disk / "state")
    with FakeSession(root, tmp_path / "claude") as session:
        session.start()
        session.prompt()
        sent = [spool.send(root, "one", session.agent, urgent=True), spool.send(root, "two", session.agent)]
        empty = _fill(small_disk)
        goes_on(session)
        empty()
        session.kill()
        deliverable(session, sent)


def test_a_read_only_disk(small_disk: Path, tmp_path: Path) -> None:
    root = str(small_disk / "state")
    with FakeSession(root, tmp_path / "claude") as session:
        session.start()
        session.prompt()
        session.end_waiters()
        sent = [spool.send(root, "one", session.agent)]
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        goes_on(session)
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        session.kill()
        deliverable(session, sent)


def test_the_log_of_failures_says_which_hook_and_why(working: FakeSession) -> None:
    working.hook("Stop", stdin=b"{", waiter=False)
    (line,) = spool.log(working.root).splitlines()
    entry = json.loads(line)
    assert (entry["action"], entry["hook"]) == ("hook-failed", "at_stop")
    assert "JSONDecodeError" in entry["error"]


def test_what_a_silent_hook_looks_like_is_exact() -> None:
    assert Ran(0, b"", b"", 0.1).silent
    assert not any(ran.silent for ran in (Ran(1, b"", b"", 0), Ran(0, b"x", b"", 0), Ran(0, b"", b"x", 0)))
