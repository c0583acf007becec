"""Bodies, names, ids, times, and how a message stands in a conversation."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import spool
from turnpost.core import clock, ids, outbox, render, text
from turnpost.core.errors import Refused
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Agent

ELEMENT = re.compile(r"<\s*/?\s*(message|system-reminder)(?![\w.-])", re.IGNORECASE)
OPENS_ELEMENT = re.compile(r"<(?=\s*/?\s*(?:message|system-reminder)(?![\w.-]))", re.IGNORECASE)
TAG = re.compile(r"<[\s\\/]*[a-z]", re.IGNORECASE)
ANY = st.text(st.characters(exclude_categories=()))
TRICKY = st.lists(
    st.sampled_from(["<", "/", " ", "\n", "message", "MESSAGE", "system-reminder", ">", "x", "&lt;", 'about="', "-", "é"]), max_size=12
).map("".join)  # fmt: skip
ALPHA: Any = {"key": ids.new("ag", 0.0), "name": "alpha", "kind": "registered"}


def alpha() -> Agent:
    made: Agent = ALPHA
    return made


@given(ANY)
def test_a_clean_body_is_text_that_utf8_takes_and_keeps_the_rest(body: str) -> None:
    fixed, replaced = text.clean(body)
    assert len(fixed) == len(body)
    fixed.encode()
    assert replaced == sum(a != b for a, b in zip(fixed, body, strict=True))
    assert all(b == "\0" or "\ud800" <= b <= "\udfff" for a, b in zip(fixed, body, strict=True) if a != b)
    assert text.clean(fixed) == (fixed, 0)


def test_what_a_program_printed_fits_a_line_and_still_shows_its_lines() -> None:
    assert text.one_line("one  two\r\n\n three\n") == "one two | three"
    assert text.one_line(" \n") == "nothing"
    assert len(text.one_line("x" * 999)) == 300


@given(st.one_of(TRICKY, ANY))
def test_an_inert_body_opens_and_closes_no_element_and_differs_in_nothing_else(body: str) -> None:
    inert = text.inert(body)
    assert ELEMENT.search(inert) is None
    assert inert.count("&lt;") - body.count("&lt;") == len(ELEMENT.findall(body))
    assert text.inert(inert) == inert
    if not ELEMENT.search(body):
        assert inert == body


@given(
    st.lists(
        st.sampled_from(
            ["<", "/", "\\", " ", "\u2003", "message", "meſſage", "meßage", "MESSAGE", "system-reminder", "SYSTEM-REM\u0130NDER", "syſtem-rem\u0131nder",
             ">", "x", "é", "-", ".", "_", "1", "²", "\u0130", "\u0131", "ſ", "\u212a", "ß"]
        ) | st.characters(exclude_categories=()),
        max_size=10,
    ).map("".join)
)  # fmt: skip
def test_elements_are_found_as_a_regular_expression_finds_them(body: str) -> None:
    assert text.inert(body) == OPENS_ELEMENT.sub("&lt;", body)
    assert text.tagged(body) == (TAG.search(body) is not None)


def test_space_is_what_python_calls_so() -> None:
    assert {chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()} == set(text.SPACE)


@pytest.mark.parametrize(
    "body", ["<messages>", "<message-id>", "a < message", "<b>", "<system>", "& &lt; < >"]
)
def test_what_is_no_element_of_ours_stays_letter_for_letter(body: str) -> None:
    assert text.inert(body) == body or body == "a < message"


@given(ANY)
def test_visible_text_has_no_control_character(body: str) -> None:
    shown = text.visible(body)
    allowed = "\n\t\u200c\u200d"
    assert all(c in allowed or unicodedata.category(c)[0] != "C" for c in shown)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [("\x1b[31mred", "\\x1b[31mred"), ("\u202eabc", "\\u202eabc"), ("a\rb", "a\\x0db"), ("\x9b", "\\x9b"), ("👩\u200d💻", "👩\u200d💻"),
     ("\U000e0041", "\\U000e0041"), ("tab\tline\n", "tab\tline\n")],
)  # fmt: skip
def test_a_terminal_gets_codes_for_what_would_steer_it(raw: str, shown: str) -> None:
    assert text.visible(raw) == shown


@given(ANY)
def test_units_are_what_utf16_takes(body: str) -> None:
    assert text.units(body) == len(body.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize("name", ["alpha", "A1", "x.y_z-1", "Größe", "名前", "a" * 64, "m-1"])
def test_a_good_name_has_no_fault(name: str) -> None:
    assert text.name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "a" * 65, "-x", ".x", "_x", "a b", "a/b", "..", "../x", "a\0", "person", "Person", "SYSTEM", "all", "parent", "turnpost",
     "msg-1", "ag-1", "a\n", "a,b", "\ud800", "名" * 64 + "名", "𝔘" * 64],
)  # fmt: skip
def test_a_bad_name_has_a_fault(name: str) -> None:
    assert text.name_fault(name)


@given(ANY)
def test_any_folder_gives_a_name(folder: str) -> None:
    made = text.to_name(folder)
    assert 1 <= len(made) <= text.NAME_LIMIT - 16
    assert "/" not in made
    assert made[0] not in "-._"


@given(st.text(min_size=1, max_size=20))
def test_names_that_differ_in_case_or_composition_have_one_key(name: str) -> None:
    for other in (unicodedata.normalize("NFD", name), unicodedata.normalize("NFC", name)):
        assert text.name_key(other) == text.name_key(name) or "\u0345" in unicodedata.normalize("NFD", name)


@pytest.mark.parametrize("pair", [("Alpha", "aLPHA"), ("Zoë", "Zoe\u0308"), ("STRASSE", "straße")])
def test_two_spellings_of_one_name_have_one_key(pair: tuple[str, str]) -> None:
    assert text.name_key(pair[0]) == text.name_key(pair[1])


@given(st.floats(0, 4_000_000_000), st.floats(0, 4_000_000_000))
def test_ids_sort_by_time_and_tell_their_day(first: float, second: float) -> None:
    one, two = ids.new("msg", first), ids.new("msg", second)
    assert ids.is_id(one, "msg")
    assert not ids.is_id(one, "ag")
    if int(first * 1000) < int(second * 1000):
        assert one < two
    assert ids.day(one) == str(clock.rfc3339(int(first * 1000) / 1000))[:10]


@given(st.one_of(ANY, st.from_regex(r"msg-[0-9A-Z]{26}", fullmatch=True)))
def test_an_id_is_safe_in_a_path(candidate: str) -> None:
    if ids.is_id(candidate, "msg"):
        assert re.fullmatch(r"msg-[0-7][0-9A-HJKMNP-TV-Z]{25}", candidate)


@given(st.floats(0, 4_000_000_000))
def test_a_moment_survives_its_text_to_the_millisecond(moment: float) -> None:
    written = clock.rfc3339(moment)
    assert written is not None
    back = clock.parse(written)
    assert back is not None
    assert abs(back - moment) < 0.0021


@pytest.mark.parametrize("wrong", ["", "x", "2026-13-01T00:00:00Z", "2026-11-30", "2026-11-30T14:02:11.xZ"])
def test_what_is_no_moment_parses_to_none(wrong: str) -> None:
    assert clock.parse(wrong) is None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0 s"), (4.9, "4 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_an_age_for_people(seconds: float, shown: str) -> None:
    assert clock.span(seconds) == shown


def test_a_rendered_message_is_the_one_in_the_design() -> None:
    message = spool.message("the body, <b>letter</b> for letter", alpha())
    message.update({"sent": 1_800_000_000.0, "kind": "question"})
    assert render.element(message, "alpha", 1_800_000_004.0) == (
        f'<message about="{message["id"]}" from="person" to="alpha" kind="question" thread="alpha+person" '
        'age="4 s" reply="turnpost reply ID">\n'
        "the body, <b>letter</b> for letter\n</message>"
    )


@given(st.one_of(TRICKY, ANY))
def test_no_body_forges_a_mark_or_an_end(body: str) -> None:
    message = spool.message(text.clean(body)[0], alpha())
    block = render.element(message, "alpha", message["sent"])
    assert len(ELEMENT.findall(block)) == 2
    assert block.count(render.mark(message["id"])) == 1


@given(st.one_of(TRICKY, ANY))
def test_no_attribute_breaks_out_of_its_quotes(word: str) -> None:
    message = spool.message("x", alpha())
    message.update({"refs": [word], "options": [word], "thread": word, "kind": word})
    head = render.element(message, "alpha", message["sent"]).split("\n")[0]
    assert re.fullmatch(r'<message( [a-z-]+="[^"<>\n\t]*")+>', head)


def test_a_batch_keeps_the_order() -> None:
    assert render.batch(["one", "two"]) == "one\ntwo"


@pytest.mark.parametrize("body", ["", " ", "\n\t", "\u2003"])
def test_an_empty_body_is_refused(body: str) -> None:
    with pytest.raises(Refused) as refused:
        outbox.check_body(body)
    assert (refused.value.rule, refused.value.numbers) == ("empty", {"bytes": 0})


def test_a_body_over_the_limit_is_refused_with_its_bytes() -> None:
    assert outbox.check_body("é" * 4_000) == "é" * 4_000
    with pytest.raises(Refused) as refused:
        outbox.check_body("é" * 4_000 + "x")
    assert (refused.value.rule, refused.value.numbers) == ("too-long", {"bytes": 8_001, "limit": 8_000})
