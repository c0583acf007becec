"""The laboratory without Claude Code: what the model records and answers, and how a command is detached."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnpost.lab import processes
from turnpost.lab.detach import Detached, run
from turnpost.lab.env import closed_env
from turnpost.lab.errors import LabError, LabTimeout
from turnpost.lab.model import Blocks, Fail, Hang, ModelRequest, Say, ScriptedModel, Slow, Tool
from turnpost.lab.world import World

TOOLS = [{"name": "Bash"}]


def _request(messages: list[dict[str, Any]], system: Any = None, **headers: str) -> ModelRequest:
    body = {"messages": messages, "system": system, "tools": TOOLS}
    return ModelRequest(0, 0.0, 0.0, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _post(model: ScriptedModel, prompt: str, session: str = "s1", **more: Any) -> Any:
    body = {"model": "m", "messages": [_user(prompt)], "tools": TOOLS} | more
    request = urllib.request.Request(
        f"{model.url}/v1/messages?beta=true",
        data=json.dumps(body).encode(),
        headers={"X-Claude-Code-Session-Id": session},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        raw = answer.read().decode()
    return raw if more.get("stream") else json.loads(raw)


def _said(answer: Any) -> str:
    return str(answer["content"][0]["text"])


# What a request shows


def test_texts_hold_every_text_in_order_with_its_role() -> None:
    """Tool results are opened, however deep; what the model passed to a tool is no text."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "echo secret"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "four"}]}
    plain = {"type": "tool_result", "tool_use_id": "u", "content": "five"}
    request = _request(
        [
            _user("two"),
            {"role": "assistant", "content": [{"type": "text", "text": "three"}, call]},
            _user([result, plain, {"type": "text", "text": "six"}]),
            {"role": "system", "content": [{"type": "text", "text": "seven"}]},
        ],
        system=[{"type": "text", "text": "one"}],
    )
    assert request.texts == (
        ("system", "one"),
        ("user", "two"),
        ("assistant", "three"),
        ("tool", "four"),
        ("tool", "five"),
        ("user", "six"),
        ("system", "seven"),
    )
    assert request.last_user_texts == ("four", "five", "six")


def test_count_adds_up_all_texts() -> None:
    """A text that stands twice in one block counts twice."""
    request = _request([_user("x-mark x-mark"), _user([{"type": "tool_result", "content": "x-mark"}])])
    assert request.count("x-mark") == 3
    assert request.has("x-mark")
    assert not request.has("y-mark")


def test_the_tag_is_the_first_one_given_to_the_conversation() -> None:
    """A subagent's tag in the parent's tool result, or one in a later message, does not rename it."""
    result = {"type": "tool_result", "content": "[[lab:sub]] said"}
    assert _request([_user([result]), _user("[[lab:alpha]] a"), _user("[[lab:beta]] b")]).tag == "alpha"
    assert _request([_user("none")]).tag is None


def test_the_session_comes_from_the_header_or_the_metadata() -> None:
    """Either is enough; metadata that is no JSON is no session."""
    assert _request([], x_claude_code_session_id="s1").session_id == "s1"
    user_id = json.dumps({"session_id": "s2"})
    assert ModelRequest(0, 0.0, 0.0, {}, {"metadata": {"user_id": user_id}}).session_id == "s2"
    assert ModelRequest(0, 0.0, 0.0, {}, {"metadata": {"user_id": "plain"}}).session_id is None


def test_a_request_without_tools_is_a_side_call() -> None:
    """Titles and summaries offer no tools."""
    assert ModelRequest(0, 0.0, 0.0, {}, {"messages": []}).side
    assert not _request([]).side


# What the model answers


def test_steps_are_answered_in_order_then_the_default(model: ScriptedModel) -> None:
    """A used-up script says ok."""
    model.script("a", [Say("one"), lambda request: Say(f"index {request.index}")])
    assert [_said(_post(model, "[[lab:a]]")) for _ in range(3)] == ["one", "index 1", "ok"]


def test_a_side_call_takes_no_step(model: ScriptedModel) -> None:
    """Claude Code makes them whenever it likes, and they quote the conversation."""
    model.script("a", [Say("one")])
    assert _said(_post(model, "title of [[lab:a]]", tools=[])) == "ok"
    assert _said(_post(model, "[[lab:a]]")) == "one"
    assert [request.index for request in model.requests("a")] == [1]


def test_a_session_keeps_its_name_when_the_tag_is_gone(model: ScriptedModel) -> None:
    """A compacted conversation no longer holds its first prompt."""
    model.script("a", [Say("one"), Say("two")])
    _post(model, "[[lab:a]]", session="s1")
    assert _said(_post(model, "compacted", session="s1")) == "two"


def test_a_script_can_be_given_to_a_session_id(model: ScriptedModel) -> None:
    """For a session whose prompt the test does not write."""
    model.script("s9", [Say("for s9")])
    assert _said(_post(model, "hello", session="s9")) == "for s9"


def test_a_stream_carries_text_and_tool_calls(model: ScriptedModel) -> None:
    """The input of a call comes as partial JSON, and the turn stops for the tool."""
    model.script("a", [Blocks((Say("first"), Tool("Bash", {"command": "date"})))])
    lines = _post(model, "[[lab:a]]", stream=True).splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in events] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "first"}
    assert json.loads(events[5]["delta"]["partial_json"]) == {"command": "date"}
    assert events[7]["delta"]["stop_reason"] == "tool_use"


def test_a_scripted_failure_has_its_status(model: ScriptedModel) -> None:
    """The body is an error as the API words it."""
    model.script("a", [Fail(529)])
    with pytest.raises(urllib.error.HTTPError) as caught:
        _post(model, "[[lab:a]]")
    with caught.value as error:
        assert (error.code, json.load(error)["error"]["type"]) == (529, "overloaded_error")


def test_other_paths_are_answered_harmlessly(model: ScriptedModel) -> None:
    """Token counts are a number; what the laboratory does not have is not found."""
    with urllib.request.urlopen(f"{model.url}/v1/messages/count_tokens", data=b"{}", timeout=10) as answer:
        assert json.load(answer)["input_tokens"] > 0
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        urllib.request.urlopen(f"{model.url}/v1/models", timeout=10)
    caught.value.close()
    assert model.requests() == ()


def test_a_slow_step_waits(model: ScriptedModel) -> None:
    """The request is recorded at once, the answer comes later."""
    model.script("a", [Slow(0.3, Say("late"))])
    begin = time.monotonic()
    assert _said(_post(model, "[[lab:a]]")) == "late"
    assert model.requests("a")[0].monotonic - begin < 0.3 <= time.monotonic() - begin


@pytest.mark.parametrize("step", [Hang(), Slow(600.0, Say("never"))])
def test_close_ends_a_request_that_waits(step: Hang | Slow) -> None:
    """The client sees its connection closed."""
    model = ScriptedModel()
    model.script("a", [step])
    failures: list[Exception] = []

    def ask() -> None:
        try:
            _post(model, "[[lab:a]]")
        except Exception as error:  # noqa: BLE001 - which error it is depends on the moment
            failures.append(error)

    client = threading.Thread(target=ask)
    client.start()
    model.wait_for(lambda request: request.name == "a", 5.0)
    model.close()
    client.join(5.0)
    assert not client.is_alive()
    assert len(failures) == 1


def test_wait_for_sees_past_and_coming_requests(model: ScriptedModel) -> None:
    """`after` leaves out what is already known."""
    _post(model, "one")
    assert model.wait_for(lambda request: request.has("one"), 0.0).index == 0
    later = threading.Timer(0.1, _post, (model, "one more"))
    later.start()
    assert model.wait_for(lambda request: request.has("one"), 5.0, after=0).index == 1
    later.join()


def test_wait_for_gives_up_and_says_what_came(model: ScriptedModel) -> None:
    """The message counts the requests of each agent."""
    _post(model, "[[lab:a]]")
    with pytest.raises(LabTimeout, match=r"within 0 s; so far 1 requests \(a: 1\)"):
        model.wait_for(lambda request: request.has("nothing"), 0.0)


def test_a_failing_script_is_told_to_who_waits(model: ScriptedModel) -> None:
    """It must not look like an agent that does nothing."""

    def broken(request: ModelRequest) -> Say:
        raise ValueError("broken")

    model.script("a", [broken])
    with pytest.raises(urllib.error.HTTPError) as caught:
        _post(model, "[[lab:a]]")
    caught.value.close()
    with pytest.raises(LabError, match=r"script of a failed: ValueError\('broken'\)"):
        model.wait_for(lambda request: request.index > 5, 1.0)


# How a command is detached


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home folder; what was started in it is ended."""
    yield tmp_path
    processes.end_all(tmp_path)


def _ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        found.append(pid)
        shown = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True
        )
        pid = int(shown.stdout)
    return found


def test_a_detached_command_has_no_ancestor_of_ours(home: Path) -> None:
    """Neither the test runner nor what started it."""
    command = Detached(("sleep", "60"), cwd=home, env=closed_env(home))
    try:
        assert not set(_ancestors(command.pid)) & set(_ancestors(os.getpid()))
    finally:
        command.kill()


def test_a_detached_command_gives_its_output_and_exit_code(home: Path) -> None:
    """Input goes in, both streams and the code come out."""
    script = "read word; echo out-$word; echo err-$word >&2; exit 3"
    finished = run(("sh", "-c", script), cwd=home, env=closed_env(home), input="x\n", timeout=10)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("out-x\n", "err-x\n", 3)
    with pytest.raises(LabError, match="exit 3: err-x"):
        finished.check()


def test_a_service_that_keeps_the_output_open_does_not_hold_the_caller(home: Path) -> None:
    """A background service inherits the streams of the command that started it."""
    begin = time.monotonic()
    run(("sh", "-c", "sleep 60 & echo started"), cwd=home, env=closed_env(home), timeout=10).check()
    assert time.monotonic() - begin < 5.0


def test_a_command_that_takes_too_long_is_killed(home: Path) -> None:
    """And nothing of it is left."""
    with pytest.raises(LabTimeout, match=r"still running after 0\.2 s"):
        run(("sleep", "60"), cwd=home, env=closed_env(home), timeout=0.2)
    assert processes.in_home(home) == []


def test_a_command_that_does_not_exist_is_an_error(home: Path) -> None:
    """Not a silent exit code."""
    with pytest.raises(LabError, match=r"cannot start no-such-command: .*No such file"):
        run(("no-such-command",), cwd=home, env=closed_env(home), timeout=5)


def test_a_running_command_can_be_watched_and_signalled(home: Path) -> None:
    """Its exit code is then the signal's number, negative."""
    command = Detached(("sh", "-c", "echo begun; exec sleep 60"), cwd=home, env=closed_env(home))
    while "begun" not in command.so_far():
        time.sleep(0.01)
    assert command.poll() is None
    command.signal(signal.SIGTERM)
    assert command.wait(5.0).returncode == -signal.SIGTERM


def test_end_all_ends_also_what_ignores_the_first_signal(home: Path) -> None:
    """It finds processes by their HOME alone."""
    run(("sh", "-c", "trap '' TERM; sleep 60 & sleep 0.1"), cwd=home, env=closed_env(home), timeout=10)
    assert len(processes.in_home(home)) == 1
    processes.end_all(home, patience=0.1)
    assert processes.in_home(home) == []


def test_a_process_listing_shows_the_processes_of_a_home_and_their_descendants() -> None:
    """A home whose name only begins like ours is another's."""
    listing = """\
      1     0 /sbin/launchd
     20     1 claude daemon HOME=/tmp/tp-a/home LANG=C
     21    20 /bin/sleep 60
     30     1 claude daemon HOME=/tmp/tp-a/home2
     31    30 /bin/sleep 60
    """
    found = processes.parse_ps(listing.rstrip(" "), Path("/tmp/tp-a/home"))
    assert [process.pid for process in found] == [20, 21]


# The world without its program


def test_a_world_shows_only_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the caller does not come through; a project has what it was given."""
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of the caller")
    with World(Path(sys.executable), "http://127.0.0.1:9") as world:
        assert "ANTHROPIC_AUTH_TOKEN" not in world.env()
        assert {"HOME", "TURNPOST_HOME", "TURNPOST_CLAUDE"} <= world.env().keys()
        folder = world.project("shop", git=True, settings={"hooks": {}})
        assert json.loads((folder / ".claude" / "settings.json").read_text()) == {"hooks": {}}
        assert (folder / ".git").is_dir()
        trusted = json.loads((world.home / ".claude.json").read_text())["projects"]
        assert trusted[str(folder)]["hasTrustDialogAccepted"] is True
    assert not world.root.exists()


def test_a_kept_world_leaves_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """And says where it is."""
    world = World(Path(sys.executable), "http://127.0.0.1:9", keep=True)
    world.close()
    try:
        assert world.home.is_dir()
        assert str(world.root) in capsys.readouterr().err
    finally:
        subprocess.run(["rm", "-rf", str(world.root)], check=True)
