"""The environment that `claude` and the coordinator are started with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_INHERITED = (
    "CLAUDECODE", "CLAUDE_PID", "CLAUDE_JOB_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SSE_PORT",
    "TURNPOST_AGENT",
)  # fmt: skip
_INHERITED_PREFIXES = ("CLAUDE_CODE_MESSAGING_", "CLAUDE_CODE_BG_", "CLAUDE_CODE_REMOTE_")


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what marks its owner as a child of a Claude session."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _INHERITED and not name.startswith(_INHERITED_PREFIXES)
    }
