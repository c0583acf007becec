"""Any record on disk is damaged in any way: nothing breaks, and what is whole beside it gets through."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import kit
from tests.hostile.kit import Rich
from tests.hostile.test_links import pairs, pattern
from tests.long import scale
from turnpost.core import home, mailbox, registry, store

ODD: list[Any] = [
    None, True, "", "x", "\0", "\ud800", "../../..", 0, -1, 1.5, 10**400, 1e308, float("nan"), float("inf"), [], [[]], {}, {"a": 1},
    ["x"], "x" * 100_000,
]  # fmt: skip
GARBAGE = [
    b"", b"{", b"null", b"[]", b"\xff\xfe\x00", b"{}", b"[" * 50_000, b'{"v":' * 20_000, b"\0" * 4096, b'{"v":1}' * 2,
    b"\xef\xbb\xbf{}",
]  # fmt: skip
SKIPPED = ("lock", "turnpost.log", "turnpost.log.1")


def records(rich: Rich) -> list[str]:
    """One file of each pattern, relative to the home."""
    found: dict[str, str] = {}
    for folder, _, names in os.walk(rich.root):
        for name in sorted(names):
            path = f"{folder}/{name}"
            if os.path.isfile(path) and not name.endswith(SKIPPED) and os.path.getsize(path):
                found.setdefault(pattern(os.path.relpath(path, rich.root)), os.path.relpath(path, rich.root))
    return sorted(found.values())


def fields(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a record."""
    if path:
        yield path
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        yield from fields(inner, (*path, key))


def changed(record: Any, path: tuple[Any, ...], value: object) -> Any:
    """The record with another value at one place."""
    made = copy.deepcopy(record)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


@st.composite
def damages(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Which record, which way, which field, which value: as numbers, for the home differs from run to run."""
    return draw(st.tuples(*(st.integers(0, 10_000) for _ in range(4))))


def damaged(data: bytes, way: int, place: int, value: int) -> bytes:
    try:
        record = json.loads(data)
    except ValueError:
        record = None
    ways = list(fields(record)) if isinstance(record, dict) else []
    if ways and way % 4:
        return json.dumps(changed(record, ways[place % len(ways)], ODD[value % len(ODD)])).encode()
    return data[: place % len(data)] if way % 8 == 0 else GARBAGE[value % len(GARBAGE)]


@pytest.mark.timeout(600)
@settings(
    deadline=None, max_examples=scale(40, 3000),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(one=damages())
def test_a_damaged_record_breaks_nothing_and_holds_up_nobody_elses_mail(
    template: Rich, tmp_path_factory: pytest.TempPathFactory, one: tuple[int, int, int, int]
) -> None:
    rich = template.copy(tmp_path_factory.mktemp("damaged"))
    names = records(rich)
    name = names[one[0] % len(names)]
    path = Path(rich.root, name)
    path.write_bytes(damaged(path.read_bytes(), *one[1:]))
    before = {
        key: where for key, where in pairs(rich).items() if key[1] not in name and key[1] != rich.ids["half"]
    }
    with pytest.MonkeyPatch.context() as patch:
        kit.everything(rich, patch)
    lost = [where for key, where in before.items() if key not in pairs(rich)]
    assert not lost, name
    left = [one for one in kit.queued(rich, "alpha") if (f"agents/{rich.key('alpha')}", one) in before]
    # The session's own link is mended by its next start, which was the last of the hooks.
    if left and not name.startswith("sessions/"):
        rich.hook("alpha", "UserPromptSubmit", prompt="x")
        rich.hook("alpha", "Stop")
        left = [one for one in kit.queued(rich, "alpha") if one in left]
        assert not left, name


@pytest.mark.parametrize("data", GARBAGE)
def test_a_damaged_message_is_kept_where_the_doctor_finds_it(rich: Rich, data: bytes) -> None:
    path = Path(mailbox.message_folder(rich.root, rich.ids["waits"]), "message.json")
    path.write_bytes(data)
    said = rich.hook("alpha", "Stop")
    assert rich.ids["waits"] not in said.out.decode()
    assert path.read_bytes() == data
    assert rich.ids["waits"] in repr(kit.doctor_of(rich))
    kit.no_bug(rich)


def test_a_message_with_a_field_of_another_kind_holds_up_nobody_elses(rich: Rich) -> None:
    path = Path(mailbox.message_folder(rich.root, rich.ids["waits"]), "message.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "body": 7}))
    said = rich.hook("alpha", "Stop").out.decode()
    assert rich.ids["urgent"] in said
    assert rich.ids["waits"] not in said
    kit.no_bug(rich)


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (int, 1, True), (int, True, False), (int, 1.0, False), (float, 1, True), (float, float("nan"), False),
        (float, float("inf"), False), (float, -1.0, False), (int, 10**30, False), (str, "x", True), (str, None, False),
        ((str, None), None, True), ([str], ["a"], True), ([str], ["a", 1], False), ([str], "a", False),
        (frozenset({"a"}), "a", True), (frozenset({"a"}), "b", False), (frozenset({"a"}), [], False),
        ({"a": int}, {"a": 1, "b": 2}, True), ({"a": int}, {}, False), ({"a?": int}, {}, True), ({"a?": int}, {"a": "x"}, False),
        ({"a": {"b": [int]}}, {"a": {"b": [1, None]}}, False), ({}, [], False),
    ],
)  # fmt: skip
def test_what_fits_a_kind(kind: object, value: object, fits: bool) -> None:
    assert store.fits(value, kind) is fits


@pytest.mark.parametrize("field", ["key", "name"])
@pytest.mark.parametrize("value", ["../../../tmp/x", "x/y", "", "person", "ag-" + "0" * 26])
def test_a_damaged_agent_leads_to_no_other_folder(rich: Rich, field: str, value: str) -> None:
    path = Path(home.agent(rich.root, rich.key("alpha")), "agent.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), field: value}))
    found = registry.load_agent(rich.root, rich.key("alpha"))
    assert found is None or (found["key"], found["name"]) == (rich.key("alpha"), value)
    assert found is None or "/" not in value


@pytest.mark.parametrize(
    "word", ["..", "../..", "person", "x" * 29, "ag-" + "." * 26, "ag-../../../../../../../../x/y"]
)
def test_a_damaged_link_of_a_session_leads_to_no_other_folder(rich: Rich, word: str) -> None:
    Path(home.session(rich.root, rich.session("alpha"))).write_text(word)
    before = kit.tree(rich.root)
    for event in ("Stop", "PostToolBatch", "UserPromptSubmit", "PermissionRequest"):
        assert rich.hook("alpha", event) == (0, b"", b"")
    assert kit.tree(rich.root) == before
