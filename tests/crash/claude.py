"""The program that stands for `claude --bg` in a crash test: it must be up quickly, so it imports little."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

from tests.hooks.inside import InsideSession
from turnpost.core import clock, registry


def main(folder: str, words: list[str]) -> None:
    """`claude --bg`: starts or resumes a session in the background, which takes its mail."""
    ahead, real = float(Path(folder, "ahead").read_text()), clock.now
    clock.now = lambda: real() + ahead
    prompt, root = sys.stdin.read(), f"{folder}/state"
    process = subprocess.Popen(
        ["sleep", "3600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    Path(folder, f"session-{process.pid}").touch()
    if words[1] == "--resume":
        source, session_id = "resume", words[2]
        name = registry.find(root, session_id)["name"]
        environment = {}
    else:
        source, session_id, name = "startup", str(uuid.uuid4()), words[words.index("--name") + 1]
        environment = json.loads(words[words.index("--settings") + 1])["env"]
    talk = InsideSession(
        root, Path(folder, "claude", name), session_id, background=True, pid=process.pid, env=environment
    )  # fmt: skip
    talk.start(source)
    talk.prompt(prompt)
    while talk.stop().goes_on:
        pass
    sys.stdout.write(f"backgrounded · {session_id[:8]}\n")
