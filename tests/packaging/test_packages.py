"""The wheel, the source archive and the editable install hold what an install needs, and work without a network."""

import json
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, run
from turnpost.install import settings_for_launch
from turnpost.install.merge import command_of, entries

PACKAGE = ROOT / "coordinator" / "turnpost"
REPORT = """
import json, turnpost, turnpost.data as data
print(json.dumps([turnpost.__file__, str(data.hooks_dir()), str(data.templates_dir())]))
"""

pytestmark = pytest.mark.slow


def files_of(folder: str, ending: str) -> set[str]:
    return {f"{folder}/{path.name}" for path in (ROOT / folder).glob(f"*{ending}")}


DATA = files_of("hooks", ".py") | files_of("settings-templates", ".json")


def test_the_wheel_holds_the_hooks_the_templates_and_the_types(built: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(built["wheel"]).namelist())
    assert {f"turnpost/_data/{name}" for name in DATA} <= names
    modules = {path.relative_to(ROOT / "coordinator").as_posix() for path in PACKAGE.rglob("*.py")}
    assert {"turnpost/py.typed"} | modules <= names
    assert not [name for name in names if "__pycache__" in name]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"turnpost"}


def test_the_source_archive_is_complete(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "requirements-dev.lock",
        "hatch_build.py",
        "tests/tier_times.py",
    }
    assert needed | DATA <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "dist"))]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with pip and nothing else."""
    folder = tmp_path / "envi ronment"
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def test_an_installed_wheel_finds_its_data_and_its_hooks_run(
    built: dict[str, Path], environment: Path, tmp_path: Path
) -> None:
    run(environment, "-m", "pip", "install", "--no-index", "--no-deps", built["wheel"], cwd=tmp_path)
    package, hooks, templates = json.loads(run(environment, "-I", "-c", REPORT, cwd=tmp_path))
    inside = environment.parents[1].resolve()
    assert all(Path(path).is_relative_to(inside) for path in (package, hooks, templates))
    assert (Path(templates) / "hooks.json").is_file()
    ask = "import json; from turnpost.install import settings_for_launch as s; print(json.dumps(s()))"
    launched = json.loads(run(environment, "-I", "-c", ask, cwd=tmp_path))
    home = tmp_path / "state"
    for event, entry in entries(launched):
        command = command_of(entry)
        assert Path(command[-2]).is_relative_to(inside), event
        # A session that turnpost does not know: every hook lets Claude go on and says nothing.
        assert run(*command, cwd=tmp_path, TURNPOST_HOME=str(home)) == "", event
    assert not home.exists()


def test_this_tree_is_used_where_it_is() -> None:
    for _, entry in entries(settings_for_launch()):
        assert Path(command_of(entry)[-2]).parent == ROOT / "hooks"


def test_the_lock_files_name_no_place_to_fetch_from() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        assert text.count("--hash=sha256:") > 10
