"""Whatever text comes in: it can be stored, it forges nothing, and a terminal shows it and does nothing else."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from turnpost.core import render, text

if TYPE_CHECKING:
    from turnpost.core.records import Message

anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()))
tags = st.sampled_from(
    ["<message", "</message>", "< / MESSAGE >", "<system-reminder>", "</system-reminder>", "<m", "&lt;"]
)
bodies = st.lists(st.one_of(anything, tags)).map("".join)


@given(anything)
@example("\0\ud800\udfff")
def test_clean_text_is_text_for_utf8_and_json_and_says_how_much_was_replaced(body: str) -> None:
    fixed, replaced = text.clean(body)
    fixed.encode("utf-8")
    assert "\0" not in fixed
    assert len(fixed) == len(body)
    assert replaced == sum(c == "\0" or unicodedata.category(c) == "Cs" for c in body)
    assert text.clean(fixed) == (fixed, 0)


@given(bodies)
def test_an_inert_body_opens_and_closes_none_of_our_elements_and_changes_nothing_else(body: str) -> None:
    made = text.inert(body)
    assert not re.search(r"<\s*/?\s*(message|system-reminder)(?![\w.-])", made, re.IGNORECASE)
    assert made.replace("&lt;", "<") == body.replace("&lt;", "<")


@given(bodies)
def test_a_body_cannot_carry_the_mark_of_another_message(body: str) -> None:
    message: Message = {
        "v": 1, "id": "msg-" + "0" * 26, "sender": {"kind": "person", "name": "person", "key": "person"}, "to": [],
        "kind": "note", "thread": "t", "body": body + render.mark("msg-" + "1" * 26) + body, "urgent": False,
        "sent": 0.0, "reply_to": None, "refs": [], "options": [],
    }  # fmt: skip
    shown = render.block(message, "alpha", 1.0)
    assert shown.count(render.mark(message["id"])) >= 1
    assert render.mark("msg-" + "1" * 26) not in shown


@given(anything)
@example("\x1b[2J\x9b31m\u202e\u2028\r\x07\x7f")
def test_visible_text_has_no_character_that_drives_a_terminal(body: str) -> None:
    shown = text.visible(body)
    odd = [c for c in shown if unicodedata.category(c)[0] == "C" and c not in "\n\t\u200c\u200d"]
    assert odd == []
    plain = "".join(c for c in body if unicodedata.category(c)[0] != "C")
    assert text.visible(plain) == plain
