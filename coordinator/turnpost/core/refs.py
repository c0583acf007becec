"""What a message can point at: a file and its lines, a commit, a pull request, a page.

Only the form is judged: what it points at may lie in another worktree, or not be pushed yet.
"""

from __future__ import annotations

import re

LIMIT = 500
FORMS = "a file (src/a.py, src/a.py:12, src/a.py:12-20), a commit (7 to 64 hex digits), a pull request (#12, owner/repo#12), or a page (https://…)"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PAGE = re.compile(r"https?://([^\s/?#@]*@)?[^\s/?#@]+([/?#]\S*)?", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_PULL_REQUEST = re.compile(r"([\w.-]+/[\w.-]+)?#[1-9][0-9]{0,9}", re.ASCII)
_LINES = re.compile(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?", re.ASCII)


def kind(ref: str) -> str:
    """What a reference is: `page`, `pull request`, `commit` or `file`. A file called like a commit is written `./cafe123`."""
    if _SCHEME.match(ref):
        return "page"
    if _PULL_REQUEST.fullmatch(ref):
        return "pull request"
    return "commit" if _COMMIT.fullmatch(ref) else "file"


def fault(ref: str) -> str | None:
    """Why a text is no reference; None when it is one."""
    if not ref.strip() or len(ref) > LIMIT or not ref.isprintable() or ref != ref.strip():
        return f"a reference is one printable line of 1 to {LIMIT} characters, without spaces around it"
    if _SCHEME.match(ref):
        return None if _PAGE.fullmatch(ref) else "a page is http:// or https:// and a host"
    if "#" in ref and not _PULL_REQUEST.fullmatch(ref) and ref.rpartition("#")[2].isdigit():
        return "a pull request is #12 or owner/repo#12"
    return _file_fault(ref) if kind(ref) == "file" else None


def _file_fault(ref: str) -> str | None:
    path, colon, lines = ref.rpartition(":")
    if not colon:
        return None
    found = _LINES.fullmatch(lines)
    if not path or path[-1] in ":/" or not found:
        return "after a file's ':' comes a line (12) or lines (12-20)"
    if found[2] and int(found[2]) < int(found[1]):
        return f"lines {lines} run backwards"
    return None
