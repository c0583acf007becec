"""Merging hooks into settings and taking them out: the pure part, by example and by property."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from turnpost.data import templates_dir
from turnpost.install.errors import SettingsRefused
from turnpost.install.json_text import NotJson, load, render, rewrite
from turnpost.install.merge import command_of, entries, hooks_block, interpreter_of, is_ours, merge, remove

BLOCK = hooks_block(Path("/usr/bin/python3"), Path("/opt/turn post/hooks"))
OLDER = hooks_block(Path("/home/é/.venv/bin/python"), Path("/home/é/.venv/lib/turnpost/_data/hooks"))
EVENTS = [
    "SessionStart",
    "UserPromptSubmit",
    "Stop",
    "StopFailure",
    "PostToolBatch",
    "PreToolUse",
    "SubagentStart",
    "SubagentStop",
    "PermissionRequest",
    "Notification",
    "SessionEnd",
]
FOREIGN = {"type": "command", "command": "python3 /home/me/hooks/stop.py"}

texts = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
foreign_entries = st.fixed_dictionaries(
    {"type": st.just("command"), "command": texts},
    optional={"args": st.lists(texts, max_size=3), "timeout": st.integers(), "new": values},
)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(foreign_entries, min_size=1, max_size=3)}, optional={"matcher": texts}
)
hooks_objects = st.dictionaries(
    st.sampled_from([*EVENTS, "PostToolUse"]) | texts,
    st.lists(groups | scalars, min_size=1, max_size=3),
    min_size=1,
)
settings_objects = st.builds(
    lambda rest, hooks: rest | ({"hooks": hooks} if hooks else {}),
    st.dictionaries(texts.filter(lambda key: key != "hooks"), values, max_size=4),
    st.none() | hooks_objects,
)


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(settings_objects)
def test_merging_twice_is_once(settings: dict[str, Any]) -> None:
    once = merge(settings, BLOCK)
    assert json.dumps(merge(once, BLOCK)) == json.dumps(once)
    assert json.dumps(merge(merge(once, BLOCK), BLOCK)) == json.dumps(once)


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(settings_objects)
def test_removing_undoes_merging_and_keeps_the_order(settings: dict[str, Any]) -> None:
    assert json.dumps(remove(merge(settings, BLOCK))) == json.dumps(settings)


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(settings_objects)
def test_an_older_install_is_replaced_whole(settings: dict[str, Any]) -> None:
    merged = merge(merge(settings, OLDER), BLOCK)
    assert json.dumps(merged) == json.dumps(merge(settings, BLOCK))


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(settings_objects)
def test_the_arguments_are_not_changed(settings: dict[str, Any]) -> None:
    before = copy.deepcopy(settings)
    remove(merge(settings, BLOCK))
    assert settings == before


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(settings_objects, st.sampled_from([None, 0, 1, 2, 4, "\t"]), st.booleans())
def test_a_rewritten_text_holds_the_new_value_and_every_old_letter_of_the_rest(
    settings: dict[str, Any], indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    merged = merge(settings, BLOCK)
    changed = rewrite(text, merged)
    assert json.dumps(load(changed)) == json.dumps(merged)
    back = rewrite(changed, remove(load(changed)))
    assert json.dumps(load(back)) == json.dumps(settings)
    for key, value in settings.items():
        if key != "hooks" and indent is None:
            assert json.dumps(value, ensure_ascii=ascii_only) in changed


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values.filter(lambda value: isinstance(value, dict)), settings_objects)
def test_any_object_can_be_rewritten_to_any_other(old: Any, new: dict[str, Any]) -> None:
    for indent in (None, 3):
        assert json.dumps(load(rewrite(json.dumps(old, indent=indent), new))) == json.dumps(new)


def test_the_template_has_every_event_and_a_waiter_at_every_end_of_idleness() -> None:
    assert list(BLOCK) == EVENTS
    waiters = [(event, hook) for event, hook in entries({"hooks": BLOCK}) if hook.get("asyncRewake")]
    assert [event for event, _ in waiters] == ["SessionStart", "UserPromptSubmit", "Stop"]
    for event, hook in entries({"hooks": BLOCK}):
        assert is_ours(hook), event
        # A Stop that waits for children takes up to a step of that, and must not be killed in it.
        longest = 60 if command_of(hook)[-2].endswith("/stop.py") else 10
        assert hook["timeout"] == (604800 if hook.get("asyncRewake") else longest)
        assert command_of(hook)[:2] == ("/bin/sh", "-c")
        assert interpreter_of(command_of(hook)) == "/usr/bin/python3"
        assert command_of(hook)[-2].startswith("/opt/turn post/hooks/")


def test_no_placeholder_is_left_and_a_path_that_looks_like_one_is_kept() -> None:
    block = hooks_block(Path("/a/{hooks}/python"), Path("/b/{python}/hooks"))
    command = command_of(entries({"hooks": block})[0][1])
    assert interpreter_of(command) == "/a/{hooks}/python"
    assert command[-2] == "/b/{python}/hooks/session_start.py"


def test_the_template_is_indented_json() -> None:
    text = (templates_dir() / "hooks.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "hooks"')


@pytest.mark.parametrize(
    "entry",
    [
        FOREIGN,
        {"type": "command", "command": "python3", "args": ["/home/me/hooks/stop.py"]},
        {"type": "command", "command": "python3", "args": ["/home/me/stop.py", "turnpost"]},
        {"type": "command", "command": "turnpost", "args": ["send", "turnpost"]},
        {"type": "command", "command": "turnpost"},
        {"type": "prompt", "prompt": "/hooks/stop.py turnpost"},
        {"type": "command", "command": "echo 'unclosed"},
        {"type": "command", "command": 7, "args": ["/x/hooks/stop.py", "turnpost"]},
        {"type": "command", "command": "x", "args": "turnpost"},
        None,
        [],
        "turnpost",
    ],
)
def test_a_strangers_entry_is_not_ours(entry: object) -> None:
    assert not is_ours(entry)


def test_a_plugins_shell_line_is_ours_too() -> None:
    line = 'python3 -I -S "${CLAUDE_PLUGIN_ROOT}/hooks/stop.py" turnpost'
    assert is_ours({"type": "command", "command": line})


def test_an_entry_moved_into_a_persons_group_stays_and_leaves_alone() -> None:
    ours = BLOCK["Notification"][0]["hooks"]
    settings = merge({"hooks": {"Notification": [{"hooks": [FOREIGN, *ours]}]}}, BLOCK)
    assert settings["hooks"]["Notification"] == [{"hooks": [FOREIGN, *ours]}]
    assert remove(settings) == {"hooks": {"Notification": [{"hooks": [FOREIGN]}]}}


def test_an_entry_that_was_put_under_a_matcher_is_put_right() -> None:
    narrowed = [{"matcher": "startup", "hooks": BLOCK["SessionStart"][0]["hooks"]}]
    settings = merge({"hooks": {"SessionStart": narrowed}}, BLOCK)
    assert settings["hooks"]["SessionStart"] == BLOCK["SessionStart"]


def test_a_matcher_of_our_own_is_kept_and_a_missing_one_put_back() -> None:
    assert BLOCK["PreToolUse"][0]["matcher"] == "Bash|mcp__turnpost__.*"
    assert merge({"hooks": dict(BLOCK)}, BLOCK)["hooks"] == BLOCK
    widened = {"PreToolUse": [{"hooks": BLOCK["PreToolUse"][0]["hooks"]}]}
    assert merge({"hooks": widened}, BLOCK)["hooks"]["PreToolUse"] == BLOCK["PreToolUse"]


def test_an_event_that_is_no_longer_used_is_left() -> None:
    settings = {"hooks": {"PreCompact": BLOCK["Stop"], "PostToolUse": [{"hooks": [FOREIGN]}]}}
    merged = merge(settings, BLOCK)
    assert "PreCompact" not in merged["hooks"]
    assert merged["hooks"]["PostToolUse"] == [{"hooks": [FOREIGN]}]


@pytest.mark.parametrize(
    "settings", [{"hooks": []}, {"hooks": None}, {"hooks": {"Stop": {}}}, {"hooks": {"Stop": None}}]
)
def test_a_part_of_the_wrong_kind_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsRefused, match="hooks"):
        merge(settings, BLOCK)


def test_a_wrong_part_that_is_not_needed_is_kept() -> None:
    settings = {"hooks": {"PostToolUse": "odd"}}
    assert remove(merge(settings, BLOCK)) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("{", "line 1"),
        ('{"a": 1,}', "line 1"),
        ('{\n// no\n"a": 1}', "line 2"),
        ('{"a": NaN}', "NaN"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "'b' twice"),
        ("[" * 200_000, "deeply"),
        ("[]", "object"),
    ],
)
def test_what_is_no_safe_json_object_is_named(text: str, said: str) -> None:
    with pytest.raises(NotJson, match=said):
        rewrite(text, {"hooks": {}})


def test_only_the_added_lines_differ() -> None:
    text = '{\n    "permissions": {"allow": ["Bash(ls:*)", "Read"]},\n    "n": 1e3,\n    "e": "\\u00e9"\n}\n'
    changed = rewrite(text, load(text) | {"hooks": {"Stop": []}})
    assert changed == text.replace('"\\u00e9"\n}', '"\\u00e9",\n    "hooks": {\n        "Stop": []\n    }\n}')


def test_line_ends_and_tabs_are_kept() -> None:
    text = '{\r\n\t"a": 1\r\n}\r\n'
    assert (
        rewrite(text, {"a": 1, "b": {"c": 2}}) == '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 2\r\n\t}\r\n}\r\n'
    )


def test_a_one_line_file_gets_lines() -> None:
    assert rewrite('{"a": [1,2]}', {"a": [1, 2], "b": {}}) == '{\n  "a": [1,2],\n  "b": {}\n}'
    assert rewrite("{ }", {"b": 1}) == '{\n  "b": 1\n}'


def test_a_taken_member_takes_its_comma() -> None:
    text = '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}'
    assert rewrite(text, {"b": 2, "c": 3}) == '{\n  "b": 2,\n  "c": 3\n}'
    assert rewrite(text, {"a": 1, "b": 2}) == '{\n  "a": 1,\n  "b": 2\n}'
    assert rewrite(text, {}) == "{}"


def test_a_new_file_ends_with_a_newline() -> None:
    assert render({"a": 1}) == '{\n  "a": 1\n}\n'
