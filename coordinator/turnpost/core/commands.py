"""Which shell commands are a subagent's: a record of each, in its folder, and how a shell's command line shows it again.

A record is made before the command runs and goes when its batch of tools is over; that of a background command, which
runs on after that, goes with the subagent.
"""

from __future__ import annotations

import hashlib
import os

from turnpost.core import files, procs, store

_SHORT = "command-"
_LASTING = "background-command-"


def note(folder: str, command: str, *, lasting: bool) -> None:
    """Remember a command that is about to run; `lasting` is one in the background."""
    name = (_LASTING if lasting else _SHORT) + _digest(command)
    files.write(f"{folder}/{name}", store.pack({"v": 1, "command": command}), durable=False)


def forget(folder: str, command: str) -> None:
    """Somebody else is about to run the very same command."""
    for kind in (_SHORT, _LASTING):
        files.unlink(f"{folder}/{kind}{_digest(command)}")


def drop(folder: str, *, lasting: bool = False) -> None:
    """Remove the records whose batch is over; with `lasting` those of the background too."""
    for name in files.names(folder):
        if name.startswith((_SHORT, _LASTING) if lasting else _SHORT):
            files.unlink(f"{folder}/{name}")


def pending(folder: str) -> bool:
    """Whether there are records that the end of a batch has to remove."""
    return any(name.startswith(_SHORT) for name in files.names(folder))


def shown(folder: str, words: list[str]) -> bool:
    """Whether a process that was started with these words is the shell of one of the commands."""
    names = [name for name in files.names(folder) if name.startswith((_SHORT, _LASTING))]
    if not names:
        return False
    found = [(store.load(f"{folder}/{name}") or {}).get("command") for name in names]
    return any(isinstance(command, str) and runs(words, command) for command in found)


def runs(words: list[str], command: str) -> bool:
    """Whether a shell with these words runs exactly this command.

    Claude Code starts a shell with `-c` and a text with `eval 'COMMAND'` in it. A shell that is given the command
    itself counts too. In a text that cannot be taken apart the command must stand after `eval` as the one quoted word.
    """
    import shlex

    wanted = _plain(command)
    if any(_plain(word) == wanted for word in words[2:]):
        return True
    # Where the platform tells no words, the text is all of the line.
    text = next((word for word in words if "eval " in word), " ".join(words))
    try:
        parts = shlex.split(text)
    except ValueError:
        quoted = "'" + command.replace("'", "'\"'\"'") + "'"
        return b" eval " + _plain(quoted) + b" " in b" " + _plain(text) + b" "
    places = [place for place, part in enumerate(parts[:-1]) if part == "eval"]
    return any(_plain(parts[place + 1]) == wanted for place in places)


def _plain(text: str) -> bytes:
    """A text as it can be compared: Claude Code writes /dev/null for `nul`, and `ps` shows white space in its own way."""
    import re

    text = re.sub(r"(>\s*)nul(?=[\s|&;)']|$)", r"\1/dev/null", text, flags=re.IGNORECASE)
    if not procs.LINUX:
        text = " ".join(text.replace("\\012", " ").replace("\\011", " ").split())
    try:
        return os.fsencode(text)  # as the kernel has it, whatever the locale of who looks
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _digest(command: str) -> str:
    return hashlib.sha256(command.encode(errors="replace")).hexdigest()[:24]
