"""Build hook: puts the hook scripts and the settings templates into wheels.

In a source tree and in an editable install both folders are found at the repository's root, so that an
edited hook is live at once. A standard wheel has no root, so they go into the package as ``turnpost/_data``.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_DATA_FOLDERS = ("hooks", "settings-templates")


class DataFoldersHook(BuildHookInterface[Any]):
    """Adds the data folders to standard wheels only."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a target is built; *version* is ``standard`` or ``editable``."""
        if version != "standard":
            return
        for name in _DATA_FOLDERS:
            for source in sorted((Path(self.root) / name).rglob("*")):
                # Listed file by file: force_include takes whole folders with their caches.
                if source.is_file() and "__pycache__" not in source.parts:
                    relative = source.relative_to(self.root).as_posix()
                    build_data["force_include"][str(source)] = f"turnpost/_data/{relative}"
