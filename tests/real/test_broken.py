"""Broken surroundings, on the real program: a person's turns go on as if there were no turnpost, and no mail is lost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, Post, until
from turnpost.actions import agents
from turnpost.core import home
from turnpost.core.render import mark
from turnpost.data import hooks_dir, import_root
from turnpost.install.merge import command_of, interpreter_of
from turnpost.lab.model import Say
from turnpost.lab.world import write_json

pytestmark = [pytest.mark.real, pytest.mark.slow]

SOON = 5.0
"""Seconds from a turn's last word to its end. Ours may take one of them; the rest is for a machine under load."""
FAILURES = re.compile(r"hook (failed|reported)|Traceback|turnpost|ENOENT")
"""What a person would see of a hook of ours that failed. Other words about hooks tell that they run, or of an earlier block."""


class Sitting:
    """A person at a session of the agent alpha, whose turns end whatever is broken."""

    def __init__(self, post: Post, terminal: Terminal) -> None:
        self.post = post
        self.terminal = terminal
        terminal.ready(PATIENCE)
        until(lambda: [one.name for one in agents.agents(post.root).agents] == ["alpha"], "alpha registers")
        post.wait_idle("alpha")
        self._prompts = 0
        self.ask("[[lab:alpha]] begin")
        post.wait_idle("alpha")

    def ask(self, prompt: str = "") -> float:
        """Type a prompt and wait until its turn is over; the seconds from its answer to its end."""
        prompt, answer = self._next(prompt)
        self.post.model.script("alpha", [Say(answer)])
        self.terminal.submit(prompt)
        return self._over(answer)

    def goes_on(
        self,
        broken: contextlib.AbstractContextManager[object],
        *,
        delivers: bool = False,
    ) -> None:
        """Break something in the middle of a turn in which a message came, and mend it two turns later.

        `delivers`: the message comes at that turn's end all the same.
        """
        post = self.post
        prompt, answer = self._next()
        gate = post.gate(Say(answer))
        post.model.script("alpha", [gate])
        self.terminal.submit(prompt)
        gate.wait_reached()
        sent = post.send("alpha", f"sent before {prompt}").id
        before = len(post.requests("alpha"))
        with broken:
            gate.open()
            assert self._over(answer) < SOON
            self._nothing_shown(prompt, sent)
            assert self.ask() < SOON
            time.sleep(1.0)  # for a wake that should not be
            # One of the person's turns, and the message's, which a live waiter may bring all the same. A loop of wakes
            # makes a dozen requests a second.
            requests = post.requests("alpha")
            shown = [one.last_user_texts[-1][-200:] for one in requests[before - 1 :]]
            assert before + 1 + delivers <= len(requests) <= before + 3, shown
            self._nothing_shown(f"prompt-{self._prompts}", sent)
        self.ask()
        post.assert_read_once("alpha", sent)
        assert errors(post) == []

    def _next(self, prompt: str = "") -> tuple[str, str]:
        self._prompts += 1
        return prompt or f"prompt-{self._prompts}", f"answer-{self._prompts}."

    def _over(self, answer: str) -> float:
        self.terminal.wait_screen(answer, PATIENCE)
        began = time.monotonic()
        self.terminal.wait_gone("esc to interrupt", PATIENCE)
        return time.monotonic() - began

    def _nothing_shown(self, prompt: str, sent: str) -> None:
        shown = self.terminal.screen().rpartition(prompt)[2]
        brought = any(one.has(mark(sent)) for one in self.post.requests("alpha"))
        assert brought or not FAILURES.search(shown), shown


@pytest.fixture
def own(post: Post) -> Path:
    """The project's hooks run from copies of interpreter, package and scripts: a folder that can be broken."""
    own = post.world.root / "own"
    shutil.copytree(
        import_root() / "turnpost", own / "lib" / "turnpost", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(hooks_dir(), own / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    (own / "bin").mkdir()
    path = post.shop / ".claude" / "settings.json"
    settings = json.loads(path.read_text())
    for groups in settings["hooks"].values():
        for entry in (entry for group in groups for entry in group["hooks"]):
            words = entry["args"]
            python = words.index(interpreter_of(command_of(entry)))
            if not (own / "bin" / "python").exists():
                (own / "bin" / "python").symlink_to(words[python])
            words[python] = str(own / "bin" / "python")
            words[-3] = str(own / "lib")
            words[-2] = str(own / "hooks" / Path(words[-2]).name)
    write_json(path, settings)
    return own


@pytest.fixture
def disk(post: Post) -> Iterator[Path]:
    """The spool on a small disk of its own."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(post.world.state)]
    post.world.state.mkdir(mode=0o700, exist_ok=True)
    able = sys.platform.startswith("linux") and os.geteuid() == 0
    if not able or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("NO SMALL DISK: only root on Linux can mount one")
    yield post.world.state
    post.world.close()
    subprocess.run(["umount", "-l", post.world.state], capture_output=True)
    shutil.rmtree(post.world.root, ignore_errors=True)


def test_an_installation_that_is_gone(post: Post, own: Path) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        sitting = Sitting(post, terminal)
        sitting.goes_on(away(own / "lib"))
        sitting.goes_on(away(own / "hooks"))
        sitting.goes_on(away(own / "bin" / "python"))


def test_a_spool_in_disorder(post: Post) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        sitting = Sitting(post, terminal)
        folder = Path(home.agent(post.root, post.key("alpha")))
        sitting.goes_on(held(folder / "lock"))
        sitting.goes_on(file_in_the_way(post.world.state))
        sitting.goes_on(file_in_the_way(folder / "queue"))
        sitting.goes_on(no_coordinator(post), delivers=True)
        for record in ("state.json", "waiter.json"):  # mended by the hooks themselves
            sitting.goes_on(damaged(folder / record), delivers=True)
        agent = (folder / "agent.json").read_bytes()
        sitting.goes_on(damaged(folder / "agent.json", agent), delivers=True)


def test_a_disk_that_is_full_or_read_only(post: Post, disk: Path) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        sitting = Sitting(post, terminal)
        sitting.goes_on(full(disk))
        sitting.goes_on(read_only(disk))


def errors(post: Post) -> list[str]:
    """What the transcripts hold of hooks that failed."""
    lines = [
        line for path in post.world.home.rglob("projects/*/*.jsonl") for line in path.read_text().splitlines()
    ]
    return [line for line in lines if re.search(r'"type":"hook_(non_blocking_error|error|cancelled)', line)]


@contextlib.contextmanager
def away(path: Path) -> Iterator[None]:
    aside = path.with_name(path.name + "-aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextlib.contextmanager
def file_in_the_way(folder: Path) -> Iterator[None]:
    with away(folder):
        folder.write_text("")
        yield
        folder.unlink()


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def damaged(path: Path, mended: bytes | None = None) -> Iterator[None]:
    path.write_bytes(b'{"v": 1, ')
    yield
    if mended is not None:
        path.write_bytes(mended)


@contextlib.contextmanager
def no_coordinator(post: Post) -> Iterator[None]:
    pid = post.coordinator_pid()
    os.kill(pid, signal.SIGKILL)
    yield


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    yield
    ballast.unlink()


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,bind,rw", folder], check=True)
