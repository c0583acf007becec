"""Where the hook scripts and the settings templates lie.

A wheel carries them inside the package; in a source tree and an editable install they are at the root of the
repository, so that an edited hook is live at once.
"""

from pathlib import Path

from turnpost.core.errors import TurnpostError

_PACKAGE = Path(__file__).resolve().parent


def hooks_dir() -> Path:
    """The folder of the hook scripts, absolute. Raises TurnpostError when the installation lacks it."""
    return _folder("hooks")


def templates_dir() -> Path:
    """The folder of the settings templates, absolute. Raises TurnpostError when the installation lacks it."""
    return _folder("settings-templates")


def import_root() -> Path:
    """The folder that holds the package: what a bare interpreter needs on its path to import turnpost."""
    return _PACKAGE.parent


def _folder(name: str) -> Path:
    # The wheel's copy first: beside an installed package a stranger's folder of that name may lie two levels up.
    for folder in (_PACKAGE / "_data" / name, _PACKAGE.parents[1] / name):
        if folder.is_dir():
            return folder
    raise TurnpostError(f"this installation of turnpost has no {name} folder; install turnpost again")
