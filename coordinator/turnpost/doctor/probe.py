"""A hook that tries what Claude Code honours. A script, run by `deep` only, with the bare standard library.

Arguments: a folder for its notes, what to do. `stop` keeps the first turn going, by context and then by a block, `batch` adds
to the next request, `rewake` sleeps until the file `wake` is there and then wakes the session, once.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    """Do what the arguments say, once."""
    folder, what = sys.argv[1:3]
    sys.stdin.buffer.read()
    if what == "rewake":
        _wait(folder)
    if not _first(folder, what):
        if what != "stop" or not _first(folder, "block"):
            return
        what = "block"
    if what == "rewake":
        os.write(2, b"probe-rewake")
        os._exit(2)
    if what == "stop":
        event = {"hookEventName": "Stop", "additionalContext": "probe-context"}
        print(json.dumps({"hookSpecificOutput": event}))  # noqa: T201
    if what == "block":
        print(json.dumps({"decision": "block", "reason": "probe-block"}))  # noqa: T201
    if what == "batch":
        event = {"hookEventName": "PostToolBatch", "additionalContext": "probe-batch"}
        print(json.dumps({"hookSpecificOutput": event}))  # noqa: T201
    if what == "prompt":
        event = {"hookEventName": "UserPromptSubmit", "additionalContext": "probe-prompt"}
        print(json.dumps({"hookSpecificOutput": event}))  # noqa: T201


def _wait(folder: str) -> None:
    end = time.monotonic() + 60
    while not os.path.exists(f"{folder}/wake"):
        if time.monotonic() > end:
            os._exit(0)
        time.sleep(0.05)


def _first(folder: str, what: str) -> bool:
    """Whether this is the first call: exclusive creation decides between hooks that run at once."""
    try:
        os.close(os.open(f"{folder}/{what}", os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


main()
