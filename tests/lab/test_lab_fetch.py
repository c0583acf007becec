"""Where the binary comes from, with a stand-in for npm and for Claude Code."""

from __future__ import annotations

import io
import platform
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from turnpost.lab import fetch, npm
from turnpost.lab.errors import FetchError
from turnpost.lab.progress import Progress

VERSION = "9.8.7"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and no program on PATH but the system's."""
    monkeypatch.setenv("TURNPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def _program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _claude(path: Path, version: str) -> Path:
    return _program(path, f'echo "{version} (Claude Code)"')


def _npm(tmp_path: Path, version: str = VERSION) -> Path:
    """A stand-in that "downloads" a package whose claude says `version`, and notes that it ran."""
    _claude(tmp_path / "package" / "claude", version)
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    runs = tmp_path / "runs"
    script = f'echo "$2" >> {runs}\nsleep 0.2\ncp {tmp_path}/package.tgz "$4"/'
    _program(tmp_path / "bin" / "npm", script)
    return runs


def test_a_new_enough_claude_on_path_is_taken(tmp_path: Path) -> None:
    """Versions compare by number, not by letter."""
    own = _claude(tmp_path / "bin" / "claude", "2.1.1000")
    assert fetch.find_claude("2.1.319") == own.resolve()


@pytest.mark.parametrize("version", ["2.1.318", "unreadable"])
def test_an_older_or_broken_claude_on_path_is_passed_over(tmp_path: Path, cache: Path, version: str) -> None:
    """The tested version from the cache is taken instead."""
    _claude(tmp_path / "bin" / "claude", version)
    ready = _claude(cache / "claude" / fetch.NEWEST / "claude", fetch.NEWEST)
    assert fetch.find_claude("2.1.319") == ready


def test_the_version_is_asked_in_a_closed_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's home and variables stay unseen."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-caller")
    seen = tmp_path / "seen"
    binary = _program(tmp_path / "claude", f"env > {seen}; echo 2.1.400")
    assert fetch.claude_version(binary) == "2.1.400"
    assert "of-the-caller" not in seen.read_text()
    assert f"HOME={Path.home()}\n" not in seen.read_text()


def test_a_version_is_fetched_once_then_cached(tmp_path: Path, cache: Path) -> None:
    """The package is the platform's own, and nothing but the version and its lock is left in the cache."""
    runs = _npm(tmp_path)
    assert fetch.fetch_claude(VERSION) == fetch.fetch_claude(VERSION) == cache / "claude" / VERSION / "claude"
    assert runs.read_text() == f"@anthropic-ai/claude-code-{npm.platform_name()}@{VERSION}\n"
    assert sorted(path.name for path in (cache / "claude").iterdir()) == [f".{VERSION}.lock", VERSION]


def test_two_runs_at_once_download_once(tmp_path: Path) -> None:
    """The second waits for the first and takes what it left."""
    runs = _npm(tmp_path)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(fetch.fetch_claude(VERSION))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert len(found) == 2
    assert len(runs.read_text().splitlines()) == 1


def test_what_a_killed_run_left_is_removed(tmp_path: Path, cache: Path) -> None:
    """A part of a download is never taken for the whole."""
    _npm(tmp_path)
    part = cache / "claude" / f".{VERSION}.part-old"
    part.mkdir(parents=True)
    fetch.fetch_claude(VERSION)
    assert not part.exists()


def test_a_binary_of_another_version_is_refused(tmp_path: Path, cache: Path) -> None:
    """It leaves nothing in the cache."""
    _npm(tmp_path, version="1.0.0")
    with pytest.raises(FetchError, match=r"does not run here \(it says 1\.0\.0\)"):
        fetch.fetch_claude(VERSION)
    assert [path.name for path in (cache / "claude").iterdir()] == [f".{VERSION}.lock"]


def test_a_missing_npm_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says what to do."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(FetchError, match="npm is not on PATH; install Node") as caught:
        fetch.fetch_claude(VERSION)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("npm error code ETARGET", r"no such version \(ETARGET\)"),
        ("npm error code ENOTFOUND", r"no network, .* \(ENOTFOUND\)"),
        ("npm error odd thing", "odd thing"),
        ("", "did not say why"),
    ],
)
def test_npm_failures_are_explained_in_one_line(tmp_path: Path, said: str, meaning: str) -> None:
    """The code npm gives is kept for who wants to look it up."""
    _program(tmp_path / "bin" / "npm", f'echo "{said}" >&2; exit 1')
    with pytest.raises(FetchError, match=meaning) as caught:
        fetch.fetch_claude(VERSION)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["latest", "../2.1", "2", ""])
def test_only_a_version_names_a_folder(version: str) -> None:
    """Anything else could leave the cache."""
    with pytest.raises(FetchError, match="is not a version"):
        fetch.fetch_claude(version)


def test_a_tarball_cannot_write_outside(tmp_path: Path) -> None:
    """Paths that lead out are refused by the unpacker."""
    with tarfile.open(tmp_path / "evil.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("../escaped")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(FetchError, match=r"cannot unpack evil\.tgz"):
        npm.unpack(tmp_path / "evil.tgz", tmp_path / "target")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("linux", "x86_64", "linux-x64"),
        ("linux", "aarch64", "linux-arm64"),
        ("darwin", "arm64", "darwin-arm64"),
        ("darwin", "x86_64", "darwin-x64"),
    ],
)
def test_platforms_have_npm_names(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, name: str
) -> None:
    """As in the names of the packages."""
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(npm, "_is_musl", lambda: False)
    assert npm.platform_name() == name


def test_musl_has_a_package_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only on Linux."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(npm, "_is_musl", lambda: True)
    monkeypatch.setattr(sys, "platform", "linux")
    assert npm.platform_name() == "linux-x64-musl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert npm.platform_name() == "darwin-x64"


def test_an_unknown_platform_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a package that does not exist."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(FetchError, match=r"no Claude Code binary for .* on riscv64"):
        npm.platform_name()


class _Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def test_progress_in_a_pipe_is_plain_lines_now_and_then() -> None:
    """The first update shows, those that follow at once do not, a last word does."""
    stream = _Stream(terminal=False)
    progress = Progress(stream, every=60.0)
    for text in ("1 MB", "2 MB"):
        progress.update(text)
    progress.say("done")
    assert stream.getvalue() == "1 MB\ndone\n"


def test_progress_on_a_terminal_rewrites_its_line() -> None:
    """A shorter text covers a longer one."""
    stream = _Stream(terminal=True)
    progress = Progress(stream)
    progress.update("100 MB")
    progress.update("1 s")
    progress.say("done")
    assert stream.getvalue() == "\r100 MB\r1 s   \r   \rdone\n"
