"""Broken surroundings, on the real program: a person's turns go on as if there were no turnpost, and no mail is lost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import statistics
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
from turnpost.data import hooks_dir, import_root
from turnpost.install.merge import command_of, interpreter_of
from turnpost.lab.fetch import NEWEST
from turnpost.lab.model import Say
from turnpost.lab.world import write_json

pytestmark = [pytest.mark.real, pytest.mark.slow]

LONGER = 1.0
"""Seconds from a turn's last word to its end that something broken may add to what they are when all is whole."""
FAILURES = re.compile(r"hook (failed|reported|error(?! occurred ·))|Traceback|turnpost|ENOENT")
"""What a person would see of a hook of ours that failed. Other words about hooks tell that they run, or stay below for an
earlier block."""
DELIVERED = re.compile(r"Stop hook (says|feedback): turnpost: .*?</message>")
"""How Claude Code shows a message that comes at a turn's end, spaces and line ends being one."""


class Sitting:
    """A person at a session of the agent alpha, whose turns end whatever is broken."""

    def __init__(self, post: Post, terminal: Terminal) -> None:
        self.post = post
        self.terminal = terminal
        terminal.ready(PATIENCE)
        until(lambda: [one.name for one in agents.agents(post.root).agents] == ["alpha"], "alpha registers")
        post.wait_idle("alpha")
        self._prompts = 0
        self._whole = [self.ask("[[lab:alpha]] begin")]
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
        named: tuple[str, str] | None,
        delivers: bool = False,
        seconds: float = 0.0,
    ) -> None:
        """Break something in the middle of a turn in which a message came, and mend it two turns later.

        `named`: the check of `doctor` that tells of it, and a word of what it says. `delivers`: the message comes at that
        turn's end all the same. `seconds`: how long it stays broken, in which more turns end.
        """
        post = self.post
        prompt, answer = self._next()
        gate = post.gate(Say(answer))
        post.model.script("alpha", [gate])
        self.terminal.submit(prompt)
        gate.wait_reached()
        sent = post.send("alpha", f"sent to {self._prompts}").id
        before = len(post.requests("alpha"))
        began = time.monotonic()
        with broken:
            if named is not None:
                assert_named(post, *named)
            gate.open()
            ends = [self._over(answer)]
            self._nothing_shown(prompt)
            while len(ends) < 2 or time.monotonic() < began + seconds:
                ends.append(self.ask())
                time.sleep(1.0)  # for a wake that should not be
                self._nothing_shown(f"prompt-{self._prompts}")
            # The person's turns, and the message's, which a live waiter may bring all the same. A loop of wakes makes a
            # dozen requests a second.
            requests = post.requests("alpha")
            shown = [one.last_user_texts[-1][-200:] for one in requests[before - 1 :]]
            turns = before - 1 + len(ends)
            assert turns + delivers <= len(requests) <= turns + 2, shown
        # A machine under load adds to a turn what it likes: the quickest is what the hooks make it.
        assert min(ends) <= statistics.median(self._whole) + LONGER, (ends, self._whole)
        self._whole.append(self.ask())
        post.assert_read_once("alpha", sent)
        self._whole.append(self.ask())
        assert errors(post) == []

    def _next(self, prompt: str = "") -> tuple[str, str]:
        self._prompts += 1
        return prompt or f"prompt-{self._prompts}", f"answer-{self._prompts}."

    def _over(self, answer: str) -> float:
        self.terminal.wait_screen(answer, PATIENCE)
        began = time.monotonic()
        self.terminal.wait_gone("esc to interrupt", PATIENCE)
        return time.monotonic() - began

    def _nothing_shown(self, prompt: str) -> None:
        time.sleep(0.3)  # for what it still writes
        shown = " ".join(self.terminal.screen().rpartition(prompt)[2].split())
        assert not FAILURES.search(DELIVERED.sub("", shown)), shown


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
        sitting.goes_on(away(own / "lib"), named=("package", str(own / "lib")))
        sitting.goes_on(away(own / "hooks"), named=("script", str(own / "hooks" / "stop.py")))
        sitting.goes_on(away(own / "bin" / "python"), named=("interpreter", str(own / "bin" / "python")))


@pytest.mark.timeout(240)
def test_a_spool_in_disorder(post: Post, claude_version: str) -> None:
    lock_seconds = 30.0 if claude_version == NEWEST else 0.0
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        sitting = Sitting(post, terminal)
        folder = Path(home.agent(post.root, post.key("alpha")))
        sitting.goes_on(
            held(folder / "lock"), named=("locks", f"{folder}/lock has been held"), seconds=lock_seconds
        )
        sitting.goes_on(file_in_the_way(post.world.state), named=("spool", "is no folder"))
        sitting.goes_on(file_in_the_way(folder / "queue"), named=("records", "/queue"))
        sitting.goes_on(
            no_coordinator(post), named=("coordinator", "does not run; it was killed"), delivers=True
        )
        # These the hooks mend themselves, and a waiter its own at once.
        sitting.goes_on(damaged(folder / "state.json"), named=("records", "/state.json"), delivers=True)
        sitting.goes_on(damaged(folder / "waiter.json"), named=None, delivers=True)
        agent = (folder / "agent.json").read_bytes()
        sitting.goes_on(
            damaged(folder / "agent.json", agent), named=("records", "/agent.json"), delivers=True
        )


def test_a_disk_that_is_full_or_read_only(post: Post, disk: Path) -> None:
    with Terminal(post.world, post.shop, "--name", "alpha") as terminal:
        sitting = Sitting(post, terminal)
        sitting.goes_on(full(disk), named=("disk", "the disk is full"))
        sitting.goes_on(read_only(disk), named=("disk", "is read-only"))


def assert_named(post: Post, name: str, words: str) -> None:
    """`doctor` of an installation that works tells of it, and what to do."""
    done = post.world.turnpost("doctor", "--project", str(post.shop), "--json")
    wrong = [one for one in json.loads(done.stdout)["checks"] if one["status"] != "ok"]
    assert [one for one in wrong if one["name"] == name and words in one["line"] and one["mend"]], wrong


def errors(post: Post) -> list[str]:
    """What the transcripts hold of hooks that failed."""
    lines = [
        line
        for path in post.world.home.glob(".claude/projects/*/*.jsonl")
        for line in path.read_text().splitlines()
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
