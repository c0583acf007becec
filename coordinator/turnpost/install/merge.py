"""Which hooks turnpost puts into settings, and how they join and leave what is there. Pure functions.

Shape of a settings file's hooks (source: Claude Code's settings documentation)::

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "args": […]}]}]}}

An entry of turnpost's is known by its last argument, the word ``turnpost`` after a hook script's path, whatever
interpreter and folder an older install wrote. A stranger's ``hooks/stop.py`` lacks that word.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from turnpost.data import hooks_dir, import_root, templates_dir
from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import is_list, is_object

MARKER = "turnpost"
# An entry ends with: the interpreter, -I -S -c, the guard, the package's folder, the script, the marker.
_INTERPRETER = -8
_SCRIPT = re.compile(r"[/\\]hooks[/\\]\w+\.py$")

# What stands before the interpreter. Claude Code shows the person an error for each hook whose program is gone, turn after
# turn; the shell is never gone, and costs a tenth of the interpreter's start.
_FRONT = '[ ! -x "$0" ] || exec "$0" "$@"'
# The waiter of a prompt is wanted at the turn's end: its interpreter would start beside the model request of the turn,
# and hold it back. `claude -p`, which is no agent, waits for each of its hooks to end.
_LATER = f'[ "$CLAUDE_CODE_ENTRYPOINT" != cli ] || sleep 1; {_FRONT}'
# `home.home` as the shell says it. Where the two differ the interpreter is started, and knows better.
_HOME = "${TURNPOST_HOME:-%s/turnpost}" % (
    "$HOME/Library/Application Support"
    if sys.platform == "darwin"
    else "${XDG_STATE_HOME:-$HOME/.local/state}"
)
# The prompt hook of a wake has nothing to do but to take a flag away (hooks/user_prompt_submit.py). It stands between a
# message and its model request, and an interpreter's start is a tenth of the way. `read` fails at a file without a newline,
# and has read it; at a FIFO or a device it would never end.
_WOKEN = f"""\
[ "$CLAUDE_CODE_ENTRYPOINT" != cli ] || {{
    home={_HOME}; at=$home/sessions/$CLAUDE_CODE_SESSION_ID; key=
    [ -L "$at" ] || [ ! -f "$at" ] || [ ! -O "$at" ] || read -r key < "$at"
    case $key in */*) key= ;; esac
    woken=$home/agents/$key/woken
    [ ! -e "$woken" ] || ! /bin/rm "$woken" || exit 0
}} 2> /dev/null
{_FRONT}"""
# What a hook's interpreter runs, with two arguments: the folder of the package and the script.
# Python ends with 2 when its script is missing, and 2 is what makes a Stop hook block and a waiter wake its agent,
# again and again: a deleted environment would run an agent in circles. So the script is opened by these lines, which
# end with 0 and in silence whatever happens; only the waiter's own `os._exit(2)` goes past them. A hook buffers nothing,
# so at its end there is nothing to put in order, which takes Python a tenth of the time.
_GUARD = """\
import posix, sys
try:
    del sys.argv[0]; sys.path.append(sys.argv.pop(0)); __file__ = sys.argv[0]
    exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))
except BaseException:
    pass
posix._exit(0)"""


def hooks_block(python: Path, hooks: Path | None = None) -> dict[str, Any]:
    """The ``hooks`` object of the template, with the interpreter and the scripts' folder (default: this install's)."""
    text = (templates_dir() / "hooks.json").read_text(encoding="utf-8")
    values = {
        "{front}": _FRONT,
        "{later}": _LATER,
        "{woken}": _WOKEN,
        "{python}": str(python),
        "{guard}": _GUARD,
        "{package}": str(import_root()),
        "{hooks}": str(hooks or hooks_dir()),
    }
    block: dict[str, Any] = _filled(json.loads(text), values)["hooks"]
    return block


def merge(settings: dict[str, Any], hooks: dict[str, Any]) -> dict[str, Any]:
    """*settings* with turnpost's *hooks* (as from `hooks_block`) in it, once, and all else as it was, in its order.

    Entries of an older install are replaced in their place. Raises SettingsRefused when a part that hooks must go
    into is of another kind than Claude Code reads.
    """
    present = _events(settings)
    merged: dict[str, Any] = {}
    for event, groups in present.items():
        wanted = hooks.get(event)
        if wanted is not None:
            merged[event] = _joined(event, groups, wanted)
        elif not _only_ours(groups):
            merged[event] = _without_ours(groups)
    for event, wanted in hooks.items():
        merged.setdefault(event, wanted)
    return {**settings, "hooks": merged}


def remove(settings: dict[str, Any]) -> dict[str, Any]:
    """*settings* without turnpost's hooks; what only they had filled goes too. Raises SettingsRefused like `merge`."""
    present = _events(settings)
    kept = {event: _without_ours(groups) for event, groups in present.items() if not _only_ours(groups)}
    if kept or not present:
        return {**settings, "hooks": kept} if "hooks" in settings else dict(settings)
    return {key: value for key, value in settings.items() if key != "hooks"}


def is_ours(entry: object) -> bool:
    """Whether a hook entry was written by turnpost, by this install or another."""
    command = command_of(entry)
    return len(command) > 2 and command[-1] == MARKER and _SCRIPT.search(command[-2]) is not None


def command_of(entry: object) -> tuple[str, ...]:
    """The words a hook entry runs; empty for what is no command hook or cannot be read as one."""
    if not is_object(entry) or entry.get("type") != "command" or not isinstance(entry.get("command"), str):
        return ()
    args = entry.get("args")
    if args is None:
        try:
            # A plugin may write the same as one shell line.
            return tuple(shlex.split(entry["command"]))
        except ValueError:
            return ()
    if not is_list(args) or not all(isinstance(word, str) for word in args):
        return ()
    return (entry["command"], *args)


def interpreter_of(command: tuple[str, ...]) -> str:
    """The interpreter that a hook entry of ours runs (`command_of`), with or without a shell before it."""
    return command[_INTERPRETER] if len(command) >= -_INTERPRETER else command[0]


def apart_from_interpreter(command: tuple[str, ...]) -> tuple[str, ...]:
    """A hook entry's words without the interpreter, which a person can choose."""
    return command[:_INTERPRETER] + command[_INTERPRETER + 1 :]


def entries(settings: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each (event, hook entry) of turnpost's in *settings*, in order; broken parts hold none."""
    found = settings.get("hooks")
    if not is_object(found):
        return []
    return [
        (event, entry)
        for event, groups in found.items()
        if is_list(groups)
        for group in groups
        for entry in _ours_in(group)
    ]


def _filled(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, str):
        for mark, text in values.items():
            # Only where the mark begins the text: a path that holds a mark itself is not filled again.
            if value.startswith(mark):
                return text + value.removeprefix(mark)
        return value
    if is_list(value):
        return [_filled(item, values) for item in value]
    if is_object(value):
        return {key: _filled(item, values) for key, item in value.items()}
    return value


def _events(settings: dict[str, Any]) -> dict[str, Any]:
    found = settings.get("hooks", {})
    if not is_object(found):
        raise SettingsRefused('"hooks" is no object')
    return found


def _joined(event: str, groups: object, wanted: list[Any]) -> list[Any]:
    if not is_list(groups):
        raise SettingsRefused(f'"hooks.{event}" is no list')
    present = [entry for group in groups for entry in _ours_in(group)]
    if present == [entry for group in wanted for entry in _ours_in(group)] and not any(
        _narrowed(group, wanted) for group in groups
    ):
        return groups
    result: list[Any] = []
    place: int | None = None
    for group in groups:
        result += _rest_of(group)
        if place is None and _ours_in(group):
            place = len(result)
    at = len(result) if place is None else place
    return result[:at] + wanted + result[at:]


def _narrowed(group: object, wanted: list[Any]) -> bool:
    """Whether entries of ours stand under a matcher that is not theirs, and so lets other calls through."""
    return is_object(group) and bool(_ours_in(group)) and _matcher(group) not in map(_matcher, wanted)


def _matcher(group: dict[str, Any]) -> object:
    return group.get("matcher") or "*"


def _only_ours(groups: object) -> bool:
    """Whether an event's value has nothing but our entries; one that is empty or broken is the person's."""
    return is_list(groups) and bool(groups) and not any(_rest_of(group) for group in groups)


def _without_ours(groups: object) -> object:
    return [rest for group in groups for rest in _rest_of(group)] if is_list(groups) else groups


def _rest_of(group: object) -> list[object]:
    """The group without our entries, as a list of one, or an empty list when it had no others."""
    if not is_object(group) or not _ours_in(group):
        return [group]
    rest = [entry for entry in group["hooks"] if not is_ours(entry)]
    return [{**group, "hooks": rest}] if rest else []


def _ours_in(group: object) -> list[dict[str, Any]]:
    if not is_object(group) or not is_list(group.get("hooks")):
        return []
    return [entry for entry in group["hooks"] if is_ours(entry)]
