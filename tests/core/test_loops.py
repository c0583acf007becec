"""The budget of agents that answer each other: what counts, and that counting costs one window, not the history."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnpost.core import home, loops
from turnpost.core.loops import Budget


@pytest.mark.parametrize(("hops", "refused"), [(0, False), (7, False), (8, False), (9, True)])
def test_a_chain_may_have_as_many_replies_as_the_limit_says(hops: int, refused: bool) -> None:
    loop = loops.chain(hops, Budget())
    assert (loop is not None) is refused
    if loop:
        assert (loop.counted, loop.limit) == (9, 8)


@pytest.mark.parametrize(
    ("moments", "person_at", "counted"),
    [
        ([999.0] * 20, 0.0, 20),
        ([999.0] * 19, 0.0, None),
        ([999.0] * 19 + [400.0], 0.0, None),  # just out of the window
        ([999.0] * 25, 999.5, None),  # the person wrote since
        ([999.0] * 25, 998.0, 25),
        ([1001.0] * 25, 0.0, None),  # a clock that was set back
    ],
)
def test_a_pair_is_stopped_by_what_it_wrote_in_the_window_without_the_person(
    moments: list[float], person_at: float, counted: int | None
) -> None:
    loop = loops.pair(moments, person_at, Budget(), 1000.0)
    assert (loop.counted if loop else None) == counted
    if loop:
        assert (loop.limit, loop.seconds) == (20, 600.0)


@settings(deadline=None)  # files are as fast as the disk
@given(st.integers(1, 30), st.integers(0, 100))
def test_the_counter_never_forgets_one_of_the_last_messages_and_never_grows(limit: int, sent: int) -> None:
    import tempfile

    budget = Budget(messages=limit)
    with tempfile.TemporaryDirectory() as root:
        for number in range(sent):
            loops.count(root, "ag-a", "ag-b", 1_790_000_000.0 + number, budget)
        found = loops.moments(root, "ag-b", "ag-a")
        wanted = [1_790_000_000.0 + number for number in range(max(0, sent - limit), sent)]
        assert found[len(found) - len(wanted) :] == wanted
        assert len(found) <= 2 * (limit + 1)


def test_a_message_counts_for_the_look_that_follows_it_at_once(tmp_path: Path) -> None:
    now = 1_790_000_000.9999
    loops.count(str(tmp_path), "ag-a", "ag-b", now, Budget())
    assert loops.used(loops.moments(str(tmp_path), "ag-a", "ag-b"), 0.0, Budget(), now) == 1


def test_damaged_counters_and_links_count_nothing_and_stop_nobody(tmp_path: Path) -> None:
    root = str(tmp_path)
    loops.count(root, "ag-a", "ag-b", 1.0, Budget())
    Path(home.pair(root, "ag-a", "ag-b")).write_bytes(b"\xff\x00 nonsense")
    os.symlink("/etc/passwd", home.pair(root, "ag-a", "ag-b") + ".1")
    assert loops.moments(root, "ag-a", "ag-b") == []


def test_when_the_person_wrote_last_is_kept_for_each_agent(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert loops.person_at(root, "ag-a", "ag-b") == 0.0
    loops.person_wrote(root, "ag-a", 1_700_000_000.25)
    loops.person_wrote(root, "ag-b", 1_700_000_001.25)
    loops.person_wrote(root, "ag-a", 1_700_000_002.25)
    assert loops.person_at(root, "ag-a") == pytest.approx(1_700_000_002.25, abs=1e-3)
    assert loops.person_at(root, "ag-b", "ag-c") == pytest.approx(1_700_000_001.25, abs=1e-3)
