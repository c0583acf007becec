"""The quick reader and writer do what the standard library's package does, also where that is not loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnpost.core import fastjson

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_it_writes_and_reads_as_the_package_does(value: object) -> None:
    written = fastjson.dumps(value)
    assert written == json.dumps(value, separators=(",", ":"))
    assert fastjson.loads(written.encode()) == value
    assert fastjson.loads(b" \n" + json.dumps(value, indent=1).encode() + b"\r\n") == value


@given(st.text('{}[],:"\\ \n0123-+.eEtrufalsn', max_size=12))
def test_it_reads_and_refuses_the_same_texts(text: str) -> None:
    try:
        wanted = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match="char"):
            fastjson.loads(text.encode())
    else:
        assert fastjson.loads(text.encode()) == wanted


def test_what_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(RecursionError):
        fastjson.loads(b"[" * 200_000)


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError):
        fastjson.dumps({1, 2})


@pytest.mark.process
@pytest.mark.parametrize(
    "broken", ["", " ", "{", "[1,]", "1 2", '{"a":}', "nul", '"a', '"\\q"', '{"a":1}x', "[[{]]"]
)
def test_damage_is_a_value_error_where_the_package_is_not_loaded(broken: str) -> None:
    code = f"""
import sys
sys.path.append({str(Path(fastjson.__file__).parents[2])!r})
from turnpost.core import fastjson
assert "json" not in sys.modules, "loaded without need"
try:
    fastjson.loads({broken.encode()!r})
except ValueError as error:
    print(type(error).__name__)"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("JSONDecodeError\n", "")


def test_without_the_compiled_half_the_package_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    scan, encode = fastjson._package()
    monkeypatch.setattr(fastjson, "_scan", scan)
    monkeypatch.setattr(fastjson, "_encode", encode)
    assert fastjson.loads(b' {"a": [1, null]} ') == {"a": [1, None]}
    assert fastjson.dumps({"a": [1, None]}) == '{"a":[1,null]}'
    with pytest.raises(ValueError, match="Extra data"):
        fastjson.loads(b"1 2")
