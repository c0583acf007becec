"""The closed environment: everything a process in the laboratory may know, and nothing of the caller's."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

# A dummy: the model on loopback asks nobody. Claude Code names an approved key by its last 20 characters.
API_KEY = "sk-ant-lab-0000000000-dummy-key-of-the-laboratory"
API_KEY_TAIL = API_KEY[-20:]

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")


def closed_env(home: Path, *, path_first: tuple[Path, ...] = ()) -> dict[str, str]:
    """Variables for a process at home in `home`; `path_first` stands before the system's folders in PATH."""
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, path_first), *_SYSTEM_PATH]),
        "SHELL": shutil.which("bash", path=os.pathsep.join(_SYSTEM_PATH)) or "/bin/sh",
        "TERM": "xterm-256color",
        # macOS has no C.UTF-8.
        "LANG": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # Lets Claude Code run as root with permissive modes, as in a container.
        "IS_SANDBOX": "1",
    }
