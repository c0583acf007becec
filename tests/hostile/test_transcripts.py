"""A transcript can be anything: it is read in bounded memory and time, proves nothing it does not say, and breaks nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import kit
from tests.hostile.kit import Rich
from tests.hostile.test_payloads import ODD
from tests.long import scale
from turnpost.core import fork, registry, render, transcript

MESSAGE = "msg-01JD3QK8V5T0YF6Z2M9XWB4C7R"
MARK = render.mark(MESSAGE)
NAMES = (
    "type", "message", "uuid", "parentUuid", "logicalParentUuid", "attachment", "origin", "operation", "toolUseResult", "isSidechain",
    "isApiErrorMessage", "timestamp", "session_id", "content",
)  # fmt: skip
VALUES = st.one_of(
    ODD,
    st.sampled_from(
        [MARK, {"content": MARK}, "user", "assistant", "attachment", {"type": "hook_additional_context", "content": [MARK]}, "enqueue", "u1",
         "0001-01-01T00:00:00Z", "2026-01-01T00:00:00.1e999Z", "2026-01-01T00:00:00.9Z", {"kind": "human"}]
    ),
)  # fmt: skip
LINES = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8).map(lambda entry: json.dumps(entry).encode()),
        st.binary(max_size=40),
        st.sampled_from([b"", b"null", MARK.encode(), b'{"type":"user","message":"' + MARK.encode().replace(b'"', b'\\"')]),
    ),
    max_size=8,
)  # fmt: skip


def answered(uuid: str = "u1") -> bytes:
    """Entries that prove a read."""
    mine = {"uuid": uuid, "parentUuid": None, "type": "user", "message": {"content": MARK}}
    reply = {"uuid": f"{uuid}-2", "parentUuid": uuid, "type": "assistant", "message": {"content": "done"}}
    return b"".join(json.dumps(one).encode() + b"\n" for one in (mine, reply))


@settings(
    deadline=None,
    max_examples=scale(300, 20_000),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=LINES, offset=st.integers(0, 10**12), end=st.booleans())
def test_entries_of_any_shape(tmp_path: Path, lines: list[bytes], offset: int, end: bool) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(lines) + (b"\n" if end else b""))
    for place in (str(path), str(tmp_path / "subagents" / "t.jsonl")):
        (tmp_path / "subagents").mkdir(exist_ok=True)
        if not os.path.exists(place):
            os.link(path, place)
        seen = transcript.look(place, [MESSAGE], offset)[MESSAGE]
        assert (seen.read_at is None) or (seen.delivered_at is not None and 0 <= seen.read_at < 1e12)
        parent = fork.parent_session(place, "x")
        assert parent != "x", "a session is not its own parent"
    # What stands before it takes nothing from a proof.
    path.write_bytes(b"\n".join(lines) + b"\n" + answered("own"))
    assert transcript.look(str(path), [MESSAGE], 0)[MESSAGE].at >= 0


def test_a_half_line_proves_nothing_until_it_is_whole(tmp_path: Path) -> None:
    path, whole = tmp_path / "t.jsonl", answered()
    for cut in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        assert transcript.look(str(path), [MESSAGE], 0)[MESSAGE].read_at is None
    path.write_bytes(whole)
    assert transcript.look(str(path), [MESSAGE], 0)[MESSAGE].read_at is not None


@pytest.mark.parametrize("kind", ["fifo", "zero", "full", "folder", "dangling", "nul", "surrogate", "loop"])
def test_what_is_no_file_is_left_at_once(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "t")
    make: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(path), "folder": lambda: os.mkdir(path), "dangling": lambda: os.symlink("nowhere", path),
        "loop": lambda: os.symlink(path, path),
    }  # fmt: skip
    if kind in make:
        make[kind]()
    path = {"zero": "/dev/zero", "full": "/dev/full", "nul": "a\0b", "surrogate": "\ud800"}.get(kind, path)
    started = kit.moment()
    assert transcript.look(path, [MESSAGE], 0)[MESSAGE].at == -1
    assert fork.parent_session(path, "x") is None
    assert transcript.size(path) >= 0
    assert kit.moment() - started < 2


@pytest.mark.parametrize("kind", ["fifo", "zero", "nul"])
def test_a_git_file_that_is_none_is_left_at_once(tmp_path: Path, kind: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    if kind == "fifo":
        os.mkfifo(project / ".git")
    elif kind == "zero":
        (project / ".git").symlink_to("/dev/zero")
    folder = str(project) + ("\0" if kind == "nul" else "")
    assert registry.main_checkout(folder) == folder


def test_a_link_to_a_transcript_is_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(answered())
    (tmp_path / "t").symlink_to(tmp_path / "real")
    assert transcript.look(str(tmp_path / "t"), [MESSAGE], 0)[MESSAGE].read_at is not None


def test_one_that_shrank_or_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(answered())
    assert transcript.look(str(path), [MESSAGE], 10**9)[MESSAGE].read_at is not None


_READ = """
import resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
from turnpost.core import transcript, fork
begin = time.monotonic()
seen = transcript.look(sys.argv[1], [sys.argv[3]], 0)[sys.argv[3]]
fork.parent_session(sys.argv[1], "x")
own = Path("/proc/self/status")
# Linux counts to a process's highest what it was before it ran this program.
if own.exists():
    memory = next(int(line.split()[1]) << 10 for line in own.read_text().splitlines() if line.startswith("VmHWM"))
else:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(seen.read_at is not None, memory, time.monotonic() - begin)
"""


@pytest.mark.parametrize("size", [1 << 30, scale(1 << 30, 8 << 30)])
@pytest.mark.parametrize("whole", [True, False])
def test_a_line_of_a_gibibyte_takes_neither_memory_nor_for_ever(
    tmp_path: Path, size: int, whole: bool
) -> None:
    path = tmp_path / "t"
    path.write_bytes(answered() if whole else b"")
    with path.open("r+b") as file:  # a hole: the file takes no room, the reading is the same
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + (b"" if whole else answered()))
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path), str(600 << 20), MESSAGE],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    read, memory, seconds = done.stdout.split()
    assert read == "True"
    assert int(memory) < 150 << 20
    assert float(seconds) < 60


@pytest.mark.parametrize("depth", [900, 990, 5_000, 200_000])
def test_deep_nesting_is_skipped(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "t"
    for field in ("message", "attachment", "uuid", "parentUuid", "timestamp"):
        value = b"[" * depth + json.dumps(MARK).encode() + b"]" * depth
        path.write_bytes(b'{"type":"user","%s":%s}\n' % (field.encode(), value) + answered())
        assert transcript.look(str(path), [MESSAGE], 0)[MESSAGE].read_at is not None


def test_an_agents_hooks_and_the_coordinator_bear_any_of_them(
    rich: Rich, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transcript of a message that is on its way is replaced by each in turn."""
    place = Path(rich.transcript("beta"))
    for number, data in enumerate((b"\xff\0" * 500, b"[" * 100_000, b'{"uuid":[],"parentUuid":{}}\n' * 3)):
        kept = place.read_bytes()
        try:
            place.write_bytes(data)
            kit.fine("Stop", rich.hook("beta", "Stop", last_assistant_message=str(number)))
            kit.round_of(rich, monkeypatch)
        finally:
            place.write_bytes(kept)
    assert rich.ids["flying"] in kit.waiting(rich, "beta")
    kit.no_bug(rich)
