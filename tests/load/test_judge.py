"""The judge sees what it is there to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.sender import plan
from tests.load.traffic import Read, Traffic, Verdict, messages

SEED = 2
FIRST, SECOND, OTHER = (0, 1), (0, 2), (1, 1)


def body(sender: int, number: int) -> str:
    return plan(str(SEED), sender, number, ["alpha"]).body


def read(*which: tuple[int, int]) -> list[Read]:
    return [Read(f"id-{sender}-{number}", body(sender, number)) for sender, number in which]


@pytest.fixture
def traffic(tmp_path: Path) -> Traffic:
    """One sender sent two messages; another began one before and was killed, and then sent one after those."""
    assert not any(plan(str(SEED), *which, ["alpha"]).urgent for which in (FIRST, SECOND, OTHER))
    (tmp_path / "sender-0").write_text(
        "begin 1 1.0\nsent 1 2.0 id-0-1\nbegin 2 3.0\nsent 2 4.0 id-0-2\nbegin 3 4.5\n"
    )
    (tmp_path / "sender-1").write_text("begin 1 5.0\nsent 1 6.0 id-1-1\n")
    return Traffic("", tmp_path, {}, ["alpha"], seed=SEED, senders=2, each=9)


def test_each_once_in_order_is_right_with_and_without_what_its_sender_never_knew(traffic: Traffic) -> None:
    assert traffic.judge({"alpha": read(FIRST, SECOND, OTHER)}) == Verdict()
    assert traffic.judge({"alpha": read(FIRST, SECOND, OTHER, (0, 3))}) == Verdict()


def test_one_that_was_accepted_and_is_not_there_is_lost(traffic: Traffic) -> None:
    assert len(traffic.judge({"alpha": read(FIRST, OTHER)}).lost) == 1


@pytest.mark.parametrize("again", [FIRST, (0, 3), (1, 2)])
def test_one_too_many_is_twice(traffic: Traffic, again: tuple[int, int]) -> None:
    found = read(FIRST, SECOND, OTHER, (0, 3), again)
    assert len(traffic.judge({"alpha": found}).twice) == 1


def test_a_message_that_was_sent_once_more_under_another_id_is_twice(traffic: Traffic) -> None:
    found = [*read(FIRST, SECOND), Read("id-9", body(*OTHER))]
    assert len(traffic.judge({"alpha": found}).twice) == 1


@pytest.mark.parametrize("order", [(SECOND, FIRST, OTHER), (FIRST, OTHER, SECOND)])
def test_one_behind_a_later_one_is_out_of_order_whoever_sent_it(
    traffic: Traffic, order: tuple[tuple[int, int], ...]
) -> None:
    assert len(traffic.judge({"alpha": read(*order)}).disordered) == 1


def test_two_recipients_get_both_or_none(tmp_path: Path) -> None:
    names = ["alpha", "beta"]
    number = next(n for n in range(1, 999) if len(plan(str(SEED), 0, n, names).to) == 2)
    (tmp_path / "sender-0").write_text(f"begin {number} 1.0\n")
    traffic = Traffic("", tmp_path, {}, names, seed=SEED, senders=1, each=999)
    one = [Read("id", plan(str(SEED), 0, number, names).body)]
    assert traffic.judge({"alpha": one, "beta": one}) == Verdict()
    assert traffic.judge({"alpha": [], "beta": []}) == Verdict()
    assert len(traffic.judge({"alpha": one, "beta": []}).lost) == 1


def test_messages_are_found_in_a_text_in_their_order() -> None:
    text = "".join(f'x\n<message about="msg-{n:026d}" from="person">\nbody {n}\n</message>\n' for n in (2, 1))
    assert messages(text) == [Read(f"msg-{n:026d}", f"body {n}") for n in (2, 1)]
