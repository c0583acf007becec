"""Options: which a question may offer, and which of them an answer takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnpost.core import choosing, outbox, registry
from turnpost.core.errors import UsageError
from turnpost.core.records import TYPE_CHECKING

if TYPE_CHECKING:
    from turnpost.core.records import Message


def question(*options: str) -> Message:
    person = registry.party(registry.unsaved_person())
    return outbox.compose(person, [person], "well?", kind="question", options=options)


@pytest.mark.parametrize(
    ("options", "body", "choice", "answer"),
    [
        (["yes", "no"], "2", 2, "no"),
        (["yes", "no"], " 1\n", 1, "yes"),
        (["yes", "no"], "No", 2, "no"),
        (["yes", "no"], "no, because it is late", None, "no, because it is late"),
        (["yes", "no"], "-1", None, "-1"),
        (["5", "10"], "10", 2, "10"),
        (["5", "10"], "2", 2, "10"),
        ([], "2", None, "2"),
        (["a"], "①", None, "①"),
        (["yes", "no"], "#1", 1, "yes"),
        (["yes", "no"], "2.", 2, "no"),
        (["yes", "no"], "+1", 1, "yes"),
        (["yes", "no"], " (2) ", 2, "no"),
        (["yes", "no"], "２", 2, "no"),
        (["yes", "no"], "1?", None, "1?"),
        (["yes", "no"], "#12 has it", None, "#12 has it"),
        ([], "#1", None, "#1"),
    ],
)
def test_an_option_is_taken_by_its_number_or_its_words(
    options: list[str], body: str, choice: int | None, answer: str
) -> None:
    assert choosing.chosen(question(*options), body) == (choice, answer)


@pytest.mark.parametrize("body", ["0", "3", "999999999", "#3", "3.", "+3", "３"])
def test_a_number_that_is_not_offered_is_refused_with_what_is(body: str) -> None:
    with pytest.raises(UsageError, match="1: yes, 2: no") as caught:
        choosing.chosen(question("yes", "no"), body)
    assert caught.value.numbers == {"option": int(body.strip("#.+")), "options": 2}


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        ("note", ["yes"], "only a question"),
        ("question", ["yes", "YES"], "twice"),
        ("question", ["2", "1"], "is number 1 here"),
        ("question", ["#2", "#1"], "is number 1 here"),
    ],
)
def test_options_that_could_be_mistaken_are_refused(kind: str, options: list[str], why: str) -> None:
    assert why in str(choosing.fault(kind, options))


@given(st.lists(st.text(min_size=1, max_size=8).map(str.strip).filter(bool), max_size=6))
def test_whatever_may_be_offered_can_be_taken_both_ways(options: list[str]) -> None:
    if choosing.fault("question", options) is not None:
        return
    for number, option in enumerate(options, 1):
        assert choosing.chosen(question(*options), str(number)) == (number, option)
        assert choosing.chosen(question(*options), option) == (number, option)
