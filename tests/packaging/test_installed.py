"""turnpost as users install it: each way in a home of its own, from the install to the mail and back to the bytes of before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.driver import FakeSession
from tests.packaging.conftest import ROOT
from turnpost import __version__

pytestmark = [pytest.mark.slow, pytest.mark.process]

SETTINGS = b'{ "permissions": {"allow": ["Bash(ls:*)"]},\n\t"hooks": {} }\r\n'
HERE = (sys.executable, "-m", "turnpost")
"""Another installation: the one that the tests run in."""


class User:
    """Somebody's home with a project in it, and nothing of the caller's environment but the way to programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.settings = self.project / ".claude" / "settings.json"
        self.state = str(folder / "state")
        self.settings.parent.mkdir(parents=True)
        self.home.mkdir()
        self.settings.write_bytes(SETTINGS)
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(self.home),
            "TURNPOST_HOME": self.state, "TURNPOST_CLAUDE": str(folder / "no-claude"),
        }  # fmt: skip

    def run(self, *words: str | Path, code: int = 0, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            words, cwd=self.project, env=self.environment | (env or {}), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=110,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def session(self) -> FakeSession:
        """A session of the project, with the hooks that are in its settings now."""
        return FakeSession(self.state, self.folder / "session", settings=self.settings)

    def findings(self, *turnpost: str | Path) -> dict[str, tuple[str, str]]:
        """What the doctor says, by name: whether it is fine, and the mend. Claude Code is missing, so it ends with 3."""
        told: dict[str, Any] = json.loads(self.run(*turnpost, "doctor", "--json", code=3))
        # Of several findings of a name, the worst.
        order = sorted(told["checks"], key=lambda check: ("ok", "warn", "fail").index(check["status"]))
        return {check["name"]: (check["status"], check["mend"]) for check in order}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    made = User(tmp_path / "somebody's home")
    try:
        yield made
    finally:
        made.run(*HERE, "coordinator", "stop")


def environment(folder: Path) -> Path:
    """A virtual environment that finds turnpost's dependencies where the tests have theirs; its Python."""
    venv.create(folder, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def by_pip(user: User, *what: str | Path) -> Path:
    python = environment(user.folder / "environment")
    words = ("install", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    user.run(sys.executable, "-m", "pip", "--python", python, *words, *what)
    return python.parent / "turnpost"


def from_wheel(user: User, built: dict[str, Path], _wheels: Path) -> Path:
    return by_pip(user, built["wheel"])


def from_sdist(user: User, built: dict[str, Path], _wheels: Path) -> Path:
    return by_pip(user, built["sdist"])


def editable(user: User, _built: dict[str, Path], _wheels: Path) -> Path:
    return by_pip(user, "--editable", ROOT)


def by_uv_tool(user: User, built: dict[str, Path], wheels: Path) -> Path:
    words = ("--offline", "--no-index", "--find-links", wheels, "--python", sys.executable)
    user.run("uv", "tool", "install", *words, built["wheel"])
    return user.home / ".local" / "bin" / "turnpost"


def by_pipx(user: User, built: dict[str, Path], wheels: Path) -> Path:
    env = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(wheels),
    }
    user.run("pipx", "install", "--python", sys.executable, built["wheel"], env=env | {"UV_OFFLINE": "1"})
    return user.home / ".local" / "bin" / "turnpost"


Way = Callable[[User, dict[str, Path], Path], Path]


@pytest.mark.parametrize(
    "way", [from_wheel, from_sdist, editable, by_uv_tool, by_pipx], ids=lambda way: str(way.__name__)
)
def test_each_way_of_installing_gives_the_whole_product(
    user: User, built: dict[str, Path], wheels: Path, way: Way
) -> None:
    turnpost = way(user, built, wheels)
    assert turnpost.is_relative_to(user.folder)
    assert user.run(turnpost, "--version") == f"turnpost, version {__version__}\n"
    where = Path(
        user.run(
            turnpost.resolve().parent / "python", "-c", "import turnpost; print(turnpost.__file__)"
        ).strip()
    )
    assert where.is_relative_to(ROOT if way is editable else user.folder.resolve())
    user.run(turnpost, "install")
    hooks = user.settings.read_bytes()
    user.run(turnpost, "install")
    assert user.settings.read_bytes() == hooks
    with user.session() as session:
        assert session.hook("SessionStart", source="startup", session_title="alpha", waiter=False).briefs
        sent = json.loads(user.run(turnpost, "send", "alpha", "hello", "--json"))["id"]
        assert session.stop(waiter=False).goes_on
        assert session.stop(waiter=False).silent
        assert session.read == [sent]
        shown = json.loads(user.run(turnpost, "show", sent, "--json"))
        assert shown["receipts"]["alpha"]["state"] == "read"
        assert json.loads(user.run(turnpost, "coordinator", "start", "--json"))["running"]
        found = user.findings(turnpost)
        for name in ("installed", "programs", "version", "tools", "spool", "coordinator"):
            assert found[name][0] == "ok", (name, found[name])
        assert {name for name, (status, _) in found.items() if status == "fail"} == {"claude"}
    user.run(turnpost, "uninstall")
    assert user.settings.read_bytes() == SETTINGS
    assert not (user.home / ".claude.json").exists()


def with_hooks(user: User, built: dict[str, Path], *, own_python: bool) -> tuple[Path, FakeSession]:
    """An environment whose turnpost is installed in the project, and a session that runs with its hooks; its folder."""
    turnpost = by_pip(user, built["wheel"])
    chosen = ("--python", turnpost.parent / "python") if own_python else ()
    user.run(turnpost, "install", *chosen)
    session = user.session()
    assert session.hook("SessionStart", source="startup", session_title="alpha", waiter=False).briefs
    return turnpost.parents[1], session


def waits(user: User, session: FakeSession) -> str:
    """Hooks whose installation is gone do nothing, at once; a message that is sent meanwhile waits."""
    sent: str = json.loads(user.run(*HERE, "send", "alpha", "meanwhile", "--json"))["id"]
    for event in ("UserPromptSubmit", "PostToolBatch", "Stop", "SessionStart", "SessionEnd"):
        ran = session.hook(event, waiter=False)
        assert ran.silent, (event, ran)
        assert ran.seconds < 5, (event, ran)
    assert session.arm("Stop").wait(20) == 0
    assert session.read == []
    return sent


def test_an_environment_that_is_moved_is_told_of_and_mended_by_an_install_from_its_new_place(
    user: User, built: dict[str, Path]
) -> None:
    folder, session = with_hooks(user, built, own_python=False)
    with session:
        moved = folder.rename(user.folder / "moved")
        turnpost = (moved / "bin" / "python", "-m", "turnpost")
        sent = waits(user, session)
        found = user.findings(*turnpost)
        for name in ("package", "script"):
            assert found[name] == ("fail", "run `turnpost install --scope project` again")
        user.run(*turnpost, "install")
        session.reload()
        found = user.findings(*turnpost)
        assert {name for name, (status, _) in found.items() if status == "fail"} == {"claude"}
        assert session.stop(waiter=False).goes_on
        assert session.stop(waiter=False).silent
        assert session.read == [sent]
    user.run(*turnpost, "uninstall")
    assert user.settings.read_bytes() == SETTINGS


def test_an_environment_that_is_deleted_is_told_of_and_another_installation_takes_its_hooks_out(
    user: User, built: dict[str, Path]
) -> None:
    folder, session = with_hooks(user, built, own_python=True)
    with session:
        shutil.rmtree(folder)
        sent = waits(user, session)
        found = user.findings(*HERE)
        for name in ("interpreter", "package", "script"):
            assert found[name] == ("fail", "run `turnpost install --scope project` again")
        user.run(*HERE, "uninstall")
        assert user.settings.read_bytes() == SETTINGS
        assert not (user.home / ".claude.json").exists()
        # What waited is not lost with it.
        user.run(*HERE, "install")
        session.reload()
        assert session.stop(waiter=False).goes_on
        assert session.read == [sent]
