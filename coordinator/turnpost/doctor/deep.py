"""What the installed Claude Code honours, tried in a short session with a scripted model on loopback.

Every way in which a message enters a conversation is used once, by a hook that is none of turnpost's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnpost.doctor.results import Check, fail, ok
from turnpost.lab.errors import LabError
from turnpost.lab.model import ModelRequest, Say, ScriptedModel, Tool
from turnpost.lab.world import World

NAME = "honours"
PATIENCE = 30.0
_PROBE = Path(__file__).with_name("probe.py")


class Way(NamedTuple):
    """One way in: what it is, the text that must have come, what does not work without it."""

    what: str
    text: str
    without: str


WAYS = (
    Way("UserPromptSubmit context", "probe-prompt", "messages to a stopped agent"),
    Way("PostToolBatch context", "probe-batch", "urgent messages to a working agent"),
    Way("Stop context", "probe-context", "messages to a working agent"),
    Way("a Stop block", "probe-block", "messages that have no room in context"),
    Way("asyncRewake", "probe-rewake", "messages to an idle agent"),
)


def check_ways(seen: dict[str, int], trouble: str = "") -> list[Check]:
    """One check for each way in; `seen` counts each text in the session's last request."""
    checks: list[Check] = []
    for way in WAYS:
        if seen.get(way.text, 0):
            checks.append(ok(NAME, f"{way.what} reaches the model"))
        else:
            line = f"{way.what} did not reach the model" + (f": {trouble}" if trouble else "")
            checks.append(
                fail(NAME, line, f"{way.without} need it: use a version of Claude Code that has it")
            )
    return checks


def try_out(claude: Path) -> list[Check]:
    """Run the session; takes some seconds and leaves nothing."""
    try:
        return check_ways(*_session(claude))
    except LabError as error:
        return [
            fail(NAME, f"the trial session did not run: {error}", "run `claude --bg hello` by hand and see")
        ]


def _session(claude: Path) -> tuple[dict[str, int], str]:
    trouble = ""
    with ScriptedModel() as model, World(claude, model.url) as world:
        notes = world.root / "notes"
        notes.mkdir()
        project = world.project("probe", settings=_settings(notes))
        model.script("probe", [Tool("Bash", {"command": "true"}), *map(Say, ("one", "two", "three", "four"))])
        world.claude("--bg", cwd=project, input="[[lab:probe]] begin").check()
        try:
            _wait(model, "probe-block")
            (notes / "wake").touch()
            _wait(model, "probe-rewake")
        except LabError as error:
            trouble = str(error)
        last = _requests(model)[-1:]
        return {way.text: request.count(way.text) for request in last for way in WAYS}, trouble


def _wait(model: ScriptedModel, text: str) -> ModelRequest:
    return model.wait_for(lambda one: one.name == "probe" and not one.side and one.has(text), PATIENCE)


def _requests(model: ScriptedModel) -> Sequence[ModelRequest]:
    return model.requests("probe")


def _settings(notes: Path) -> dict[str, Any]:
    def hook(what: str, **more: Any) -> dict[str, Any]:
        words = ["-I", "-S", str(_PROBE), str(notes), what]
        return {
            "hooks": [{"type": "command", "command": sys.executable, "args": words, "timeout": 90, **more}]
        }

    return {
        "permissions": {"allow": ["Bash"]},
        "hooks": {
            "UserPromptSubmit": [hook("prompt")],
            "PostToolBatch": [hook("batch")],
            "Stop": [hook("stop"), hook("rewake", asyncRewake=True)],
        },
    }
