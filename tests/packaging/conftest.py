"""What is built of this tree, and where the tests' own packages come from: no index is asked, and no network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    clean = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR") if key in os.environ}
    done = subprocess.run(
        command, cwd=cwd, env=clean | env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A source archive from the tree, and a wheel from that archive: what is missing there is missing in both."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of each package that is installed here: an index without an index."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in metadata.distributions():
        if package.metadata["Name"] != "turnpost" and package.read_text("WHEEL"):
            _packed(package, folder)
    return folder


def _packed(package: metadata.Distribution, folder: Path) -> None:
    """An installed package as the wheel it came from, without the programs that the install made."""
    tag = next(line for line in str(package.read_text("WHEEL")).splitlines() if line.startswith("Tag:"))
    name = str(package.metadata["Name"]).replace("-", "_").replace(".", "_")
    with zipfile.ZipFile(folder / f"{name}-{package.version}-{tag.split()[1]}.whl", "w") as wheel:
        for file in package.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts and file.name not in _MADE:
                wheel.write(str(file.locate()), str(file))


_MADE = ("INSTALLER", "REQUESTED", "direct_url.json")
