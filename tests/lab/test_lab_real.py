"""The laboratory on the real Claude Code: what every other test with the real program takes for granted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from turnpost.lab.model import ModelRequest, Say, ScriptedModel, Tool
from turnpost.lab.world import World

pytestmark = [pytest.mark.real, pytest.mark.slow]

PATIENCE = 30.0


def _short_id(printed: str) -> str:
    found = re.search(r"backgrounded · (\w+)", printed)
    assert found, printed
    return found[1]


def _has_result(text: str, request: ModelRequest) -> bool:
    return any(role == "tool" and text in said for role, said in request.texts)


def test_a_background_session_asks_the_model_and_is_listed(world: World, model: ScriptedModel) -> None:
    """Its request carries the launch prompt and the session's id."""
    launched = world.claude("--bg", "[[lab:alpha]] begin", cwd=world.project("shop")).check()
    request = model.wait_for(lambda request: request.name == "alpha" and not request.side, PATIENCE)
    assert request.session_id is not None
    assert request.session_id.startswith(_short_id(launched.stdout))
    assert "[[lab:alpha]] begin" in request.last_user_texts
    assert request.session_id in [agent["sessionId"] for agent in world.agents()]


def test_a_tool_step_runs_and_its_result_is_in_the_next_request(world: World, model: ScriptedModel) -> None:
    """The scripted call is a real call: its file is there, its output comes back."""
    folder = world.project("shop", git=True)
    model.script(
        "alpha", [Tool("Bash", {"command": "echo made > made.txt; echo out-$((40+2))"}), Say("done")]
    )
    world.claude("--bg", "[[lab:alpha]] begin", "--allowedTools", "Bash", cwd=folder).check()
    request = model.wait_for(
        lambda request: request.name == "alpha" and _has_result("out-42", request), PATIENCE
    )
    assert (folder / "made.txt").read_text() == "made\n"
    assert request.count("out-42") == 1
    assert len(model.requests("alpha")) == 2


def test_nothing_of_the_caller_reaches_a_session(
    world: World, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not its variables, not its home, and `turnpost` and `claude` are the world's own."""
    monkeypatch.setenv("CLAUDE_CODE_LEAK", "leaked")
    command = "env > env.txt; command -v turnpost claude; echo complete"
    model.script("alpha", [Tool("Bash", {"command": command})])
    folder = world.project("shop")
    world.claude("--bg", "[[lab:alpha]] begin", "--allowedTools", "Bash", cwd=folder).check()
    request = model.wait_for(
        lambda request: request.name == "alpha" and _has_result("complete", request), PATIENCE
    )
    environment = (folder / "env.txt").read_text()
    assert "leaked" not in environment
    assert f"HOME={world.home}\n" in environment
    assert request.has(f"{world.root}/bin/turnpost\n{world.root}/bin/claude\n")


def test_a_subagent_is_a_conversation_of_its_own(world: World, model: ScriptedModel) -> None:
    """It follows the script of the tag in its own prompt, and its parent keeps its own."""
    task = {"description": "work", "prompt": "[[lab:sub]] work", "subagent_type": "general-purpose"}
    model.script("alpha", [Tool("Agent", task | {"run_in_background": False}), Say("done")])
    model.script("sub", [Tool("Bash", {"command": "echo from-the-sub"}), Say("the-report")])
    folder = world.project("shop")
    world.claude("--bg", "[[lab:alpha]] begin", "--allowedTools", "Bash", "Agent", cwd=folder).check()
    parent = model.wait_for(lambda request: request.name == "alpha" and request.has("the-report"), PATIENCE)
    sub = model.requests("sub")[-1]
    assert sub.has("from-the-sub")
    assert not parent.has("from-the-sub")
    assert sub.session_id == parent.session_id
    assert sub.conversation != parent.conversation


def test_hooks_run_in_a_project_made_after_the_first_session(world: World, model: ScriptedModel) -> None:
    """The spare session that Claude Code keeps ready knows the trust of the projects folder."""
    world.claude("--bg", "[[lab:alpha]] begin", cwd=world.project("first")).check()
    model.wait_for(lambda request: request.name == "alpha", PATIENCE)
    hook = {"hooks": [{"type": "command", "command": "echo from-the-hook"}]}
    folder = world.project("second", settings={"hooks": {"UserPromptSubmit": [hook]}})
    world.claude("--bg", "[[lab:beta]] begin", cwd=folder).check()
    request = model.wait_for(lambda request: request.name == "beta" and not request.side, PATIENCE)
    assert request.has("from-the-hook")


def test_an_interactive_session_shows_the_answer_and_no_dialog(world: World, model: ScriptedModel) -> None:
    """Onboarding, trust and the API key are settled by the seeded home."""
    model.script("alpha", [Say("the-answer")])
    with Terminal(world, world.project("shop", git=True)) as terminal:
        terminal.ready(PATIENCE).submit("[[lab:alpha]] begin")
        terminal.wait_screen("the-answer", PATIENCE)
    assert len(model.requests("alpha")) == 1


def test_a_permission_prompt_opens_and_can_be_answered(world: World, model: ScriptedModel) -> None:
    """A command that is not allowed beforehand waits for the person."""
    folder = world.project("shop")
    model.script("alpha", [Tool("Bash", {"command": "touch made.txt && echo ran"}), Say("the-answer")])
    with Terminal(world, folder) as terminal:
        terminal.ready(PATIENCE).submit("[[lab:alpha]] begin")
        terminal.wait_screen("Do you want to proceed?", PATIENCE)
        assert not (folder / "made.txt").exists()
        terminal.answer()
        terminal.wait_screen("the-answer", PATIENCE)
    assert (folder / "made.txt").exists()


def test_close_leaves_no_process_and_no_folder(claude_binary: Path, model: ScriptedModel) -> None:
    """Also when the test fails in the middle of a turn."""
    model.script("alpha", [Tool("Bash", {"command": "sleep 300", "timeout": 400_000})])

    def fails_in_a_turn(world: World) -> None:
        world.claude(
            "--bg", "[[lab:alpha]] begin", "--allowedTools", "Bash", cwd=world.project("shop")
        ).check()
        model.wait_for(lambda request: request.name == "alpha", PATIENCE)
        assert world.leftovers()
        raise RuntimeError("in the middle")

    world = World(claude_binary, model.url)
    with pytest.raises(RuntimeError, match="in the middle"), world:
        fails_in_a_turn(world)
    assert world.leftovers() == []
    assert not world.root.exists()


def test_agents_are_listed_as_json(world: World) -> None:
    """An empty world lists nothing."""
    assert json.dumps(world.agents()) == "[]"
