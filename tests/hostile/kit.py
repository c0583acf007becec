"""A spool with one of everything in it, and everything that is ever done with one: the hooks, the commands, the coordinator."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tests.actions.fakes import PERSON, FakeHome
from tests.core import spool
from turnpost.actions import courier, holds, inbox, receipts, sending
from turnpost.cli import main
from turnpost.core import (
    bell,
    clock,
    commands,
    files,
    finals,
    home,
    mailbox,
    outbox,
    reporting,
    sender,
    store,
    subagents,
    waiter,
)
from turnpost.core.errors import TurnpostError
from turnpost.core.records import TYPE_CHECKING
from turnpost.data import hooks_dir
from turnpost.doctor import mail
from turnpost.doctor import spool as looking
from turnpost.doctor.results import Check
from turnpost.service import loop
from turnpost.service.loop import Coordinator

if TYPE_CHECKING:
    from turnpost.core.records import Agent

HOOKS = {
    "SessionStart": "session_start", "UserPromptSubmit": "user_prompt_submit", "PostToolBatch": "post_tool_batch",
    "PreToolUse": "pre_tool_use", "PermissionRequest": "permission_request", "Notification": "notification",
    "SubagentStart": "subagent_start", "SubagentStop": "subagent_stop", "Stop": "stop", "StopFailure": "stop_failure",
    "SessionEnd": "session_end", "Waiter": "waiter",
}  # fmt: skip
BUGS = (
    "TypeError", "KeyError", "AttributeError", "IndexError", "ValueError", "OverflowError", "RecursionError", "UnicodeError",
    "UnicodeDecodeError", "UnicodeEncodeError", "AssertionError", "UnboundLocalError", "ZeroDivisionError", "MemoryError",
)  # fmt: skip
"""What only a bug lets out: what is wrong with a file has an error of its own."""


class Ran(NamedTuple):
    """How a hook ended: 0, or 2 for a waiter that wakes."""

    code: int
    out: bytes
    err: bytes


class _Deaf:
    """In the place of the coordinator's file watcher, of which a system has only so many."""

    def __init__(self, _folder: str) -> None:
        self.rung = threading.Event()


class _Woken(BaseException):
    """In the place of the waiter's `os._exit(2)`."""


@dataclass
class Rich:
    """A home in which everything that can lie there does. `copy` gives one to be damaged."""

    template: FakeHome = field(repr=False)
    root: str = ""
    ids: dict[str, str] = field(default_factory=dict, repr=False)
    agents: dict[str, Agent] = field(default_factory=dict, repr=False)

    def copy(self, folder: Path) -> Rich:
        """The same home in another place: a copy that nothing done to it reaches back from."""
        root = str(folder / "home")
        shutil.copytree(self.template.root, root)
        made = Rich(self.template, root, self.ids, self.agents)
        files.fifo(bell.fifo(root, self.key("alpha"), "1-1"))
        return made

    def key(self, name: str) -> str:
        return self.agents[name]["key"]

    def session(self, name: str) -> str:
        return self.agents[name]["sessions"][-1]

    def transcript(self, name: str) -> str:
        return str(self.template.folder / f"{name}.jsonl")

    def payload(self, name: str, event: str, **more: Any) -> dict[str, Any]:
        """What Claude Code would tell this agent's hook."""
        return {
            "session_id": self.session(name), "transcript_path": self.transcript(name), "cwd": str(self.template.folder),
            "permission_mode": "default", "hook_event_name": event, **more,
        }  # fmt: skip

    def environment(self, name: str, **more: str) -> dict[str, str]:
        state = store.load_state(self.template.root, self.key(name))
        assert state is not None
        return {
            "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ID": self.session(name), "CLAUDE_PID": str(state["pid"]),
            "TURNPOST_HOME": self.root, "HOME": str(self.template.folder), **more,
        }  # fmt: skip

    def hook(self, name: str, event: str, **more: Any) -> Ran:
        """A hook as Claude Code runs it, in this process."""
        data = json.dumps(self.payload(name, event, **more)).encode()
        return run_hook(event, data, self.environment(name))

    def known(self) -> set[str]:
        """The messages that are somewhere: in a queue, on their way, final, or in the outbox."""
        found = set()
        for _, _, names in os.walk(self.root):
            found |= {name[11:41] for name in names if name[10:15] == "-msg-"}
        return found


def build(folder: Path, patch: pytest.MonkeyPatch) -> Rich:
    """Make the home that is copied."""
    made = FakeHome(folder)
    patch.setenv("TURNPOST_HOME", made.root)
    patch.setattr(courier, "ensure", lambda _root: ())
    root = made.root
    alpha = made.agent("alpha")
    beta = made.agent("beta", "working", parent=alpha)
    gamma = made.agent("gamma", "stopped")
    made.team(alpha, beta)
    rich = Rich(made, root, {}, {"alpha": alpha, "beta": beta, "gamma": gamma})
    say = sending.send
    read = say(root, ["alpha"], "this was read", speaker=PERSON).id
    made.enters(alpha, made.claim(alpha))
    receipts.show(root, read, speaker=PERSON)
    cancelled = say(root, ["alpha"], "this was taken back", speaker=PERSON).id
    receipts.cancel(root, cancelled, speaker=PERSON)
    asked = say(
        root, ["person"], "which one?", kind="question", options=["this", "that"], speaker=made.speaker(beta)
    ).id
    noted = say(root, ["person"], "for the record", speaker=made.speaker(beta)).id
    seen = say(root, ["person"], "an old one", speaker=made.speaker(beta)).id
    inbox.mark_read(root, [seen], speaker=PERSON)
    say(root, ["person"], "one more question?", kind="question", speaker=made.speaker(beta))
    flying = say(root, ["beta"], "on its way", speaker=made.speaker(alpha)).id
    made.claim(beta, "next-request")
    waits = say(root, ["alpha", "gamma"], "first", thread="plans", refs=["a.py:3"], speaker=PERSON).id
    sending.reply(root, waits, "an answer", speaker=made.speaker(gamma))
    urgent = say(root, ["alpha"], "second", urgent=True, speaker=PERSON).id
    say(root, ["alpha"], "third", speaker=made.speaker(beta))
    holds.put(root, gamma["key"], "hold")
    reporting.switch_on(root, beta["key"])
    reporting.leave(root, beta["key"], {"last_assistant_message": "all done"})
    finals.switch_on(root, alpha["key"], 0.1)
    state = store.load_state(root, alpha["key"])
    assert state is not None
    state["resume"] = {"at": 1.0, "tries": 1, "next": 2.0, "error": "none", "pending": False}
    state["mode"] = "default"
    store.save_state(root, alpha["key"], state)
    sub = subagents.key_of(alpha["key"], "a1b2c3d4e5")
    subagents.start(root, sub, about="Explore", state=state, transcript=str(folder / "sub.jsonl"))
    outbox.send(
        root,
        spool.message("for the subagent", *[one for one in [subagents.load(root, sub)] if one]),
        [one for one in [subagents.load(root, sub)] if one],
    )
    commands.note(home.agent(root, sub), "ls", lasting=False)
    commands.note(home.agent(root, sub), "sleep 1", lasting=True)
    files.touch(home.subcommands(root, alpha["key"]))
    for flag in ("woken", "blocked", "plan"):
        files.touch(f"{home.agent(root, beta['key'])}/{flag}")
    half = spool.message("half sent", alpha)
    files.write(f"{home.outbox(root)}/{half['id']}.json", store.pack({**half, "sent": 1.0}))
    record = {
        "v": 1,
        "id": "1-1",
        "pid": 1,
        "token": "1",
        "session_id": alpha["sessions"][-1],
        "harness_pid": 1,
        "since": 1.0,
    }
    files.write(home.agent(root, alpha["key"]) + "/waiter.json", store.pack(record))
    files.mkdir(home.agent(root, alpha["key"]) + "/damaged")
    files.write(f"{home.agent(root, alpha['key'])}/damaged/0000000009-{half['id']}", b"{")
    files.write(root + "/coordinator.json", store.pack({"v": 1, "pid": 1, "token": "1", "since": 1.0}))
    files.write(root + "/coordinator-stopped.json", store.pack({"v": 1, "at": 1.0}))
    files.mkdir(root + "/reports")
    files.write(home.report(root, half["id"]), b"a long report")
    files.write(root + "/turnpost.log.1", b'{"at":"2026-01-01T00:00:00.000Z","action":"send"}\n')
    files.write(root + "/config.toml", b"mailbox_size = 64\n")
    files.write(root + "/policy.toml", b'[[rule]]\nfrom = "gamma"\nto = "*"\nverdict = "allow"\n')
    rich.ids = {
        "read": read, "cancelled": cancelled, "asked": asked, "noted": noted, "flying": flying, "waits": waits,
        "urgent": urgent, "half": half["id"],
    }  # fmt: skip
    return rich


def run_hook(event: str, data: bytes, environ: dict[str, str]) -> Ran:
    """Run the script of an event with these bytes on stdin. Raises whatever the script lets out."""
    script = str(hooks_dir() / f"{HOOKS[event]}.py")
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch, _streams(data) as taken:
        patch.setattr(waiter, "REGISTRATION", 0.0)
        patch.setattr(os, "_exit", _leave)
        os.environ.clear()
        os.environ.update(environ)
        code = 0
        try:
            runpy.run_path(script)
        except _Woken:
            code = 2
        except OSError:
            pass  # from a look before there is work; the line that runs the installed script keeps it to itself
        finally:
            os.environ.clear()
            os.environ.update(before)
    return Ran(code, *taken())


def _leave(code: int) -> None:
    assert code == 2
    raise _Woken


@contextlib.contextmanager
def _streams(data: bytes) -> Iterator[Callable[[], tuple[bytes, bytes]]]:
    """Files in the place of this process's streams; afterwards what was written."""
    fds = [
        os.memfd_create(name) if hasattr(os, "memfd_create") else _unnamed() for name in ("in", "out", "err")
    ]
    os.write(fds[0], data)
    os.lseek(fds[0], 0, os.SEEK_SET)
    kept = [os.dup(number) for number in range(3)]
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    written: list[bytes] = []
    try:
        yield lambda: (written[0], written[1])
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)
        for fd in fds[1:]:
            os.lseek(fd, 0, os.SEEK_SET)
            written.append(os.read(fd, 1 << 24))
        for fd in fds:
            os.close(fd)


def _unnamed() -> int:
    import tempfile

    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def fine(event: str, ran: Ran) -> dict[str, Any]:
    """What a hook said, which must be nothing or one document; only a waiter may end with 2, and then says why on stderr."""
    if ran.code == 2:
        assert event == "Waiter"
        assert (ran.out, bool(ran.err)) == (b"", True)
        return {}
    assert (ran.code, ran.err) == (0, b""), (event, ran)
    document = json.loads(ran.out) if ran.out else {}
    assert isinstance(document, dict)
    assert set(document) <= {"decision", "reason", "hookSpecificOutput"}, document
    return document


def hooks_of(rich: Rich) -> list[Ran]:
    """Every hook of the sessions of alpha and beta, once."""
    sub = {"agent_id": "a1b2c3d4e5", "agent_type": "Explore"}
    ran = []
    for name, event, more in (
        ("alpha", "PostToolBatch", {}), ("alpha", "PreToolUse", {**sub, "tool_name": "Bash", "tool_input": {"command": "ls"}}),
        ("alpha", "PostToolBatch", sub), ("alpha", "Stop", {}), ("alpha", "SubagentStop", sub),
        ("beta", "UserPromptSubmit", {"prompt": "x"}), ("beta", "PermissionRequest", {}),
        ("beta", "PostToolBatch", {}), ("beta", "Stop", {"last_assistant_message": "and done"}),
        ("alpha", "SessionStart", {"source": "resume"}), ("beta", "StopFailure", {}),
    ):  # fmt: skip
        ran.append(rich.hook(name, event, **more))
        fine(event, ran[-1])
    return ran


def commands_of(rich: Rich, patch: pytest.MonkeyPatch) -> str:
    """What the person may ask of the home; all that was printed. No bug, and never a traceback."""
    patch.setenv("TURNPOST_HOME", rich.root)
    patch.setattr(courier, "ensure", lambda _root: ())
    patch.setattr(sender, "who", lambda _root, _pid=None: PERSON)
    patch.setenv("TURNPOST_CLAUDE", str(rich.template.folder / "no-claude"))
    shown = []
    for words in (
        ["agents"], *(["show", one] for one in rich.ids.values()), ["threads"], ["thread", "plans"],
        ["thread", "alpha+person"], ["search", "first"], ["log"], ["mission", "show", "team"], ["mission", "show"],
        ["policy", "check", "alpha", "beta"], ["coordinator", "status"], ["send", "alpha,beta", "hello"],
        ["send", "gamma", "hello"], ["reply", rich.ids["asked"], "2"], ["hold", "alpha"], ["release", "alpha"],
        ["cancel", rich.ids["urgent"]], ["wait", rich.ids["waits"], "--timeout", "0"], ["wait", "alpha", "--for", "idle", "--timeout", "0"],
        ["rename", "beta", "delta"], ["inbox"],
    ):  # fmt: skip
        done = CliRunner().invoke(main, [*words, "--json"], prog_name="turnpost")
        text = done.stdout + done.stderr
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exc_info)
        assert "Traceback" not in text
        document = json.loads(done.stdout)
        assert done.exit_code in (0, 1, 2, 3, 4, 5, 6), words
        if done.exit_code == 1:  # what is wrong with a file of the home has its own rule; 'bug' has none
            told = isinstance(document, dict) and document.get("error")
            failure = told["rule"] if told else "bug" if "bug: " in text else "io"
            assert failure in ("io", "bad-file"), (words, text)
        shown.append(text)
        plain = (
            CliRunner().invoke(main, words, prog_name="turnpost")
            if words[0] in ("agents", "show", "threads", "log", "mission")
            else done
        )
        assert "bug: " not in plain.stdout + plain.stderr, (words, plain.stderr)
        shown.append(plain.stdout + plain.stderr)
    return "\n".join(shown)


def round_of(rich: Rich, patch: pytest.MonkeyPatch) -> None:
    """A round of the coordinator, with all the slow steps that it begins."""
    patch.setenv("TURNPOST_CLAUDE", str(rich.template.folder / "no-claude"))
    patch.setattr(loop, "Bells", _Deaf)
    try:
        coordinator = Coordinator(rich.root)
    except TurnpostError:
        return  # it says what is wrong with the settings, and does not start
    try:
        coordinator.round()
        coordinator.round()
    finally:
        coordinator._pool.shutdown(wait=True)


def doctor_of(rich: Rich) -> list[Check]:
    """What the doctor finds in the home."""
    return [*looking.check_all(rich.root), *mail.check_all(rich.root)]


def no_bug(rich: Rich) -> None:
    """Nothing that went wrong was a bug: the log tells of what every hook and every round kept to itself."""
    for name in ("turnpost.log", "turnpost.log.1"):
        path = f"{rich.root}/{name}"
        if not os.path.lexists(path) or not stat.S_ISREG(os.lstat(path).st_mode):
            continue
        for line in Path(path).read_bytes().splitlines():
            if b'"hook-failed"' in line or b'"trouble"' in line:
                entry = json.loads(line)
                kind = entry.get("kind") or entry["error"].partition(":")[0]
                assert kind not in BUGS, entry


def everything(rich: Rich, patch: pytest.MonkeyPatch) -> str:
    """All of it once; what was said. No traceback, no bug, no hook that ends otherwise than it may."""
    said = [repr(ran) for ran in hooks_of(rich)]
    said.append(commands_of(rich, patch))
    round_of(rich, patch)
    said.append(repr(doctor_of(rich)))
    no_bug(rich)
    return "\n".join(said)


def tree(folder: str) -> dict[str, tuple[int, bytes]]:
    """Every file under a folder with its mode and bytes; folders with their names."""
    found: dict[str, tuple[int, bytes]] = {}
    for path, folders, names in os.walk(folder):
        found[path] = (os.lstat(path).st_mode, "\n".join(sorted([*folders, *names])).encode())
        for name in names:
            info = os.lstat(f"{path}/{name}")
            data = Path(path, name).read_bytes() if stat.S_ISREG(info.st_mode) else b""
            found[f"{path}/{name}"] = (info.st_mode, data)
    return found


def queued(rich: Rich, name: str) -> list[str]:
    """The ids of what waits for an agent and was never handed over."""
    box = mailbox.Mailbox(rich.root, rich.key(name))
    return [one["id"] for one in box.waiting_receipts() if not one["attempts"]]


def waiting(rich: Rich, name: str) -> list[str]:
    """The ids of what waits for an agent or is on its way to it."""
    box = mailbox.Mailbox(rich.root, rich.key(name))
    return [mailbox.entry_id(one) for one in [*box.waiting(), *box.in_flight()]]


def moment() -> float:
    return clock.monotonic()
