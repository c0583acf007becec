"""Sessions that may be killed at any instant, and a `claude` through which the coordinator stops and resumes them.

What Claude Code does is done here: a dead process writes no transcript and takes no hook's answer; its waiters live on
and wake nobody; one that was killed comes back by itself and goes on with the turn it was in, with all that had entered.
"""

from __future__ import annotations

import json
import queue
import random
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.hooks.driver import FakeSession, Ran
from tests.load.traffic import Read, messages
from turnpost.core import clock, mailbox

BACK = (0.05, 0.5)
"""Seconds until a killed session is back. The real service takes ten; a thousand kills would take hours."""
THOUGHT = (0.0, 0.2)
"""Seconds until the model has answered."""
BLOCKS = 8
"""Stop blocks in a row that Claude Code takes."""
_CLIENT = """\
import json, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as line:
    text = sys.stdin.read() if "--resume" in sys.argv else ""
    line.sendall(json.dumps([*sys.argv[1:], text]).encode() + b"\\n")
    code, _, said = line.makefile().read().partition(" ")
print(said)
sys.exit(int(code))
"""


class Killed(Exception):
    """The session's process is gone."""


class Session(FakeSession):
    """A session with a life of its own, in a thread: `live` until `over` is set."""

    def __post_init__(self) -> None:
        self._pen = threading.Lock()
        self._orders: queue.Queue[tuple[str, str, Future[str]]] = queue.Queue()
        self._orphans: list[subprocess.Popen[bytes]] = []
        self._hooks: list[subprocess.Popen[bytes]] = []
        self._blocks = 0
        self._busy = False
        self._ended = False
        self._chance = random.Random(self.session_id)
        self.fault: BaseException | None = None
        super().__post_init__()
        settings = self.project / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": self._block}))

    # What a test does to it, from its own thread.

    def give_order(self, word: str, text: str = "") -> str:
        """Let Claude Code's command do something to the session; what it says."""
        answer: Future[str] = Future()
        self._orders.put((word, text, answer))
        return answer.result(60.0)

    def kill_process(self, *, aimed: bool) -> bool:
        """kill -9 of the session; False when it is dead already, or when it is `aimed` and no message is on its way."""
        if not self.alive or (aimed and not mailbox.Mailbox(self.root, self.key).in_flight()):
            return False
        self.kill()
        return True

    def kill_hook(self, *, aimed: bool) -> bool:
        """kill -9 of a hook that runs; False when none does, or when it is `aimed` and none has claimed a message."""
        return self._kill_one(self._hooks, aimed)

    def kill_waiter(self, *, aimed: bool) -> bool:
        """kill -9 of a waiter; False when there is none, or when it is `aimed` and none has claimed a message."""
        return self._kill_one(self.waiters, aimed)

    def _kill_one(self, processes: Sequence[subprocess.Popen[bytes]], aimed: bool) -> bool:
        running = [one for one in processes if one.poll() is None]
        if not running:
            return False
        victim = self._chance.choice(running)
        if aimed:
            victim.send_signal(signal.SIGSTOP)  # it stands still while it is looked at
            if not self._has_claimed(victim.pid):
                victim.send_signal(signal.SIGCONT)
                return False
        victim.kill()
        return True

    def _has_claimed(self, pid: int) -> bool:
        claims = [one.get("claim") for one in mailbox.Mailbox(self.root, self.key).waiting_receipts()]
        return any(claim is not None and claim["by"] == str(pid) for claim in claims)

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def listed(self) -> dict[str, Any]:
        """The session as `claude agents --json` lists it."""
        found: dict[str, Any] = {
            "id": self.session_id[:8],
            "sessionId": self.session_id,
            "cwd": str(self.project),
        }
        if self.alive:
            found |= {"pid": self.pid, "status": "busy" if self._busy else "idle"}
        return found

    def conversation(self) -> list[Read]:
        """The messages in the conversation as its transcript has it, up to the last answer of the model."""
        found: list[Read] = []
        asked = 0
        for line in self.transcript.read_bytes().splitlines():
            entry = json.loads(line)
            attachment = entry.get("attachment", {})
            if entry["type"] == "assistant":
                asked = len(found)
            elif entry["type"] == "user" and isinstance(entry["message"]["content"], str):
                found += messages(entry["message"]["content"])
            elif attachment.get("type") == "hook_additional_context":
                found += [one for text in attachment["content"] for one in messages(text)]
            elif attachment.get("type") == "queued_command":
                found += messages(attachment["prompt"])
        return found[:asked]

    # Its life.

    def live(self, over: threading.Event) -> None:
        """Turn after turn, until `over`; then it ends its turn and has one more, in which all it knows is asked about."""
        try:
            while not over.is_set() or self._busy or not self.alive:
                try:
                    if self.alive:
                        self._live_on()
                    else:
                        self._come_back(over)
                except Killed:
                    pass
            self.turn()
        except BaseException as error:
            self.fault = error
            raise

    def _live_on(self) -> None:
        self._obey()
        self._reap()
        if self._busy:
            self._go_on()
        elif (woken := self._woken()) is not None:
            self.woken(woken)
        elif self._chance.random() < 0.002:
            self.prompt()
        else:
            clock.sleep(0.005)

    def _go_on(self) -> None:
        """The model has answered: it calls a tool, or ends its turn."""
        if (woken := self._woken()) is not None:
            self._held(woken)
        elif self._chance.random() < 0.3:
            self.tool_batch()
        else:
            self._end_turn()

    def _end_turn(self) -> None:
        ran = self.stop()
        if not self.alive:
            raise Killed
        if ran.code == 0 and ran.reason:
            self._blocks += 1
            assert self._blocks <= BLOCKS, "Claude Code would have ignored this block"
        else:
            self._busy = False
            self._blocks = 0

    def _held(self, woken: str) -> None:
        """A wake in the middle of a turn: its text enters with the next request."""
        self._write("queue-operation", operation="enqueue", content=woken)
        self._attach(type="queued_command", prompt=woken)
        self._request([woken])

    def _obey(self) -> None:
        try:
            word, text, answer = self._orders.get_nowait()
        except queue.Empty:
            return
        try:
            if word == "stop":
                self._ended = True
                self.hook("SessionEnd", reason="other")
                self.kill()
                self.end_waiters()
                answer.set_result("0 stopped")
            elif self.alive:
                answer.set_result("1 already running")
            else:
                self._begin_again()
                answer.set_result(f"0 backgrounded · {self.session_id[:8]}")
                self.prompt(text)
        finally:
            if not answer.done():
                answer.set_result("1 it failed")

    def _come_back(self, over: threading.Event) -> None:
        """Killed, it is brought back by its service; ended, by whoever resumes it."""
        end = clock.monotonic() + self._chance.uniform(*BACK)
        while (self._ended or clock.monotonic() < end) and not self.alive and not over.is_set():
            self._obey()
            clock.sleep(0.005)
        if not self.alive:
            self._begin_again()
            if self._busy:
                self._request([])  # it goes on with its turn

    def _begin_again(self) -> None:
        self._orphans += self.waiters
        self.waiters = []
        self._ended = False
        self._blocks = 0
        self.respawn(waiter=True)

    def _reap(self) -> None:
        """Collect what ended without a wake."""
        for kept in (self.waiters, self._orphans):
            for one in [one for one in kept if one.poll() is not None]:
                if kept is self._orphans or one.returncode != 2:
                    one.communicate()
                    kept.remove(one)

    # What a dead process does not do.

    def tool_batch(self, **payload: Any) -> Ran:
        self._blocks = 0
        return super().tool_batch(**payload)

    def end_waiters(self) -> None:
        self.waiters += self._orphans
        self._orphans = []
        super().end_waiters()

    def _spawn(self, entry: dict[str, Any], data: bytes) -> subprocess.Popen[bytes]:
        process = super()._spawn(entry, data)
        if not entry.get("asyncRewake"):
            self._hooks = [*(one for one in self._hooks if one.poll() is None), process]
        return process

    def _request(self, texts: list[str]) -> None:
        # Killed meanwhile, it has the texts in its conversation, and no answer.
        clock.sleep(self._chance.uniform(*THOUGHT))
        super()._request(texts)

    def kill(self) -> None:
        with self._pen:
            super().kill()

    def _write(self, kind: str, **entry: object) -> None:
        with self._pen:  # nothing is written after the death, not even what was begun before
            if not self.alive:
                raise Killed
            super()._write(kind, **entry)
        self._busy = self._busy or kind in ("user", "attachment")


class FakeClaude:
    """The `claude` of these sessions, as a program that the coordinator runs; a context manager."""

    def __init__(self, folder: Path, sessions: Sequence[Session]) -> None:
        self._sessions = {one.session_id[:8]: one for one in sessions}
        this = self

        class Call(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(this._answer(*json.loads(self.rfile.readline())).encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Call)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.path = folder / "claude"
        self.path.write_text(f"#!{sys.executable} -IS\n{_CLIENT.format(port=self._server.server_address[1])}")
        self.path.chmod(0o700)

    def __enter__(self) -> FakeClaude:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, *words: str) -> str:
        """The exit code and what it prints."""
        if words[0] == "agents":
            return "0 " + json.dumps([one.listed() for one in self._sessions.values()])
        if words[0] == "stop":
            return self._sessions[words[1]].give_order("stop")
        if words[:2] == ("--bg", "--resume"):
            return self._sessions[words[2][:8]].give_order("resume", words[-1])
        return f"1 what is {words}?"
