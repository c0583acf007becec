"""A turnpost of some version, run as processes of its own beside the present one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RELEASED = sorted((FOLDER / "released").glob("*.whl"))
PRESENT = FOLDER.parents[1] / "coordinator"
# No coordinator is started by it: what a version leaves must be right without one.
_QUIET = """
import json, sys
from click.testing import CliRunner
from turnpost.actions import courier
from turnpost.cli import main
courier.ensure = lambda root: ()
ran = [CliRunner().invoke(main, [*words, "--json"], prog_name="turnpost") for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stdout] for one in ran]))
"""


@dataclass(frozen=True)
class Installation:
    """The folder of a turnpost package, and the home and Claude Code's home that it is run with."""

    packages: Path
    root: str
    user: Path

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.user), "TURNPOST_HOME": self.root,
            "TURNPOST_CLAUDE": "/no/claude", "PYTHONPATH": str(self.packages),
        }  # fmt: skip

    def run(self, *words: str) -> Any:
        """The document that a command prints."""
        return self.run_all([list(words)])[0]

    def run_all(self, commands: list[list[str]]) -> list[Any]:
        """The documents that commands print, which must all be done."""
        ran = json.loads(self._out("-c", _QUIET, json.dumps(commands)))
        for words, (code, out) in zip(commands, ran, strict=True):
            assert code == 0, (words, out)
        return [json.loads(out) for _, out in ran]

    def do(self, *steps: list[Any]) -> list[Any]:
        """Take steps of `steps.py`; what each answers."""
        found: list[Any] = json.loads(self._out(str(FOLDER / "steps.py"), json.dumps(steps)))
        return found

    def where(self) -> Path:
        """The folder that its package is really taken from."""
        return Path(self._out("-c", "import turnpost; print(turnpost.__file__)").strip()).parents[1]

    def _out(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.user,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def unpacked(wheel: Path, folder: Path) -> Path:
    """The package of a wheel, as an install lays it down."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def holds(new: Any, old: Any) -> bool:
    """Whether a newer version's document says all that an older one's did; it may say more.

    Not whether an agent is deaf: that is so after some seconds, and may begin between the two.
    """
    if isinstance(old, dict):
        names = [name for name in old if name != "deaf"]
        return isinstance(new, dict) and all(name in new and holds(new[name], old[name]) for name in names)
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)
