"""Launching a managed agent. The name is reserved first, so that mail can be sent to it before it has a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnpost import config, policy, redaction
from turnpost.actions import courier, missions, people, permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Launched
from turnpost.core import audit, clock, files, finals, registry, reporting, store, subagents, text
from turnpost.core.errors import HarnessError, TurnpostError, UsageError
from turnpost.core.mailbox import Mailbox, entry_id
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent
    from turnpost.harness import Claude
    from turnpost.redaction import Secrets

FIRST_PROMPT = (
    "You are {name}, started by turnpost. There is nothing to do yet: say that you are ready and end your turn. "
    "Messages will come to you by themselves."
)
START_SECONDS = 30.0
"""How long a session may take to report in: it must load, and its SessionStart hook must run."""
POLL = 0.05


@refusals("launch")
def launch(
    root: str,
    name: str,
    prompt: str | None = None,
    *,
    cwd: str | None = None,
    instructions: str | None = None,
    parent: str | None = None,
    mission: str | None = None,
    worktree: bool = False,
    report: bool = True,
    hold_final: bool = False,
    options: Sequence[str] = (),
    speaker: Speaker | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> Launched:
    """Start a background session under a name and wait until it has reported in.

    An agent's launch makes it the parent, to whom each of the child's turns is reported unless `report` is off. With
    `hold_final` its own last answer waits for its children's. `options` go to `claude` as they are; `on_wait` is told the seconds waited.
    Raises UsageError, Refused (`taken`, `not-allowed`, `mission-over`), NotFound for the parent or the mission, and HarnessError with what Claude
    Code printed; then nothing of the agent is left.
    """
    from turnpost.harness import Claude

    secrets = policy.load(root).secrets
    redaction.refuse("agent's name", name, secrets, "name")
    voice = permits.acting(root, speaker)
    first, instructions, redacted = _told(name, prompt, instructions, secrets)
    folder = _folder(cwd)
    mother = _parent(root, parent, voice)
    mission = missions.joinable(root, mission, voice) if mission else None
    claude = Claude.find()
    registry.prepare(root)
    step = config.load(root).hold_step_seconds
    agent = _reserve(root, name, folder, mother, mission, instructions)
    try:
        if report and mother:
            reporting.switch_on(root, agent["key"])
        if hold_final:
            finals.switch_on(root, agent["key"], step)
        settings = _settings(root, agent["key"])
        words = _options(agent["name"], instructions, worktree, options)
        session_id = _start(root, claude, agent, first, settings, words, on_wait)
    except BaseException:
        _take_back(root, agent)
        raise
    audit.acted(root, "launch", voice.agent, agent, session=session_id)
    return Launched(
        agent["name"],
        session_id,
        folder,
        people.name_of(root, agent["parent"]),
        mission,
        worktree,
        (*_warned(redacted), *courier.ensure(root)),
        redacted,
    )


def _told(
    name: str, prompt: str | None, instructions: str | None, secrets: Secrets
) -> tuple[str, str | None, int]:
    """The first prompt and the instructions without their secrets, and how many there were."""
    fixed = redaction.redact(_first_prompt(prompt), secrets)
    added = redaction.redact(instructions or "", secrets)
    first = FIRST_PROMPT.format(name=name) if prompt is None else fixed.text
    return first, added.text or None, fixed.taken + added.taken


def _first_prompt(prompt: str | None) -> str:
    if prompt is None:
        return ""
    fixed, _ = text.clean(prompt)
    if not fixed.strip():
        raise UsageError("the prompt has no text; leave it out to launch an agent that waits for messages")
    return fixed


def _warned(redacted: int) -> tuple[str, ...]:
    if not redacted:
        return ()
    return (f"{text.taken_out(redacted)} of what the agent was told; it works without",)


def _folder(cwd: str | None) -> str:
    folder = os.path.abspath(os.path.expanduser(cwd) if cwd else ".")
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {text.visible(folder)}")
    return folder


def _parent(root: str, parent: str | None, voice: Speaker) -> str | None:
    if voice.is_person:
        return people.agent(root, parent)["key"] if parent else None
    own = subagents.owner_of(voice.agent["key"])
    if parent and people.agent(root, parent)["key"] != own:
        raise people.not_allowed(voice, "an agent launches children of its own only")
    return own


def _reserve(
    root: str, name: str, folder: str, parent: str | None, mission: str | None, instructions: str | None
) -> Agent:
    with files.Lock(root + "/registry.lock", 5.0):
        agent = registry.create_agent(
            root, name, kind="managed", cwd=folder, project=registry.main_checkout(folder), background=True
        )
        agent["parent"], agent["mission"], agent["instructions"] = parent, mission, instructions
        registry.save_agent(root, agent)
    return agent


def _settings(root: str, key: str) -> dict[str, Any]:
    """What the session is told, and keeps when it is resumed: which agent it is, and our hooks.

    Also where its project brings the hooks: equal ones run once, and the project's may be gone at the next resume.
    """
    from turnpost import install

    return {"env": {"TURNPOST_AGENT": key, "TURNPOST_HOME": root}, **install.settings_for_launch()}


def _options(name: str, instructions: str | None, worktree: bool, extra: Sequence[str]) -> list[str]:
    from turnpost import install

    words = install.tools_for_launch()
    words += ["--append-system-prompt", instructions] if instructions else []
    return [*words, *(["--worktree", name] if worktree else []), *extra]


def _start(
    root: str, claude: Claude, agent: Agent, prompt: str, settings: dict[str, Any], options: Sequence[str],
    on_wait: Callable[[float], None] | None,
) -> str:  # fmt: skip
    started = claude.launch(prompt, cwd=agent["cwd"], settings=settings, name=agent["name"], options=options)
    try:
        return _reported(root, agent, started.output, on_wait)
    except BaseException:
        _end(claude, started.short_id)
        raise


def _reported(root: str, agent: Agent, output: str, on_wait: Callable[[float], None] | None) -> str:
    """The id of the session that its SessionStart hook has linked to the agent."""
    begin = clock.monotonic()
    while (waited := clock.monotonic() - begin) < START_SECONDS:
        state = store.load_state(root, agent["key"])
        if state is not None:
            return state["session_id"]
        if on_wait:
            on_wait(waited)
        clock.sleep(POLL)
    raise HarnessError(
        f"the session of {agent['name']} did not report in within {START_SECONDS:g} s and was stopped; claude said: "
        f"{text.one_line(output)}; `turnpost doctor` looks into why its hooks did not run",
        seconds=START_SECONDS, output=output[-2000:],
    )  # fmt: skip


def _end(claude: Claude, short_id: str) -> None:
    try:
        claude.stop(short_id)
    except TurnpostError:
        pass  # the failure to be told is that it never started


def _take_back(root: str, agent: Agent) -> None:
    """Free the name. Mail that came meanwhile is kept as undeliverable, and its senders are told."""
    waiting = [entry_id(name) for name in Mailbox(root, agent["key"]).waiting()]
    if waiting:
        from turnpost.core import giving_up

        giving_up.give_up(root, agent["key"], waiting, f"the launch of {agent['name']} failed")
    registry.forget(root, agent)
