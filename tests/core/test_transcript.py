"""What a transcript proves, and what only looks like it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnpost.core import ids, render, transcript

ID = ids.new("msg", 1_800_000_000.0)
OTHER = ids.new("msg", 1_800_000_000.0)
MARK = render.mark(ID) + ' from="person">\nhello\n</message>'
STAMP = "2026-11-30T14:02:11.500Z"


def entry(uuid: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "type": kind,
        "isSidechain": False,
        "timestamp": STAMP,
        **more,
    }


def entered(uuid: str = "u1", parent: str | None = None, text: str = MARK, **more: Any) -> dict[str, Any]:
    attachment = {"type": "hook_additional_context", "content": [text], "hookName": "Stop"}
    return entry(uuid, parent, "attachment", attachment=attachment, **more)


def reply(uuid: str = "u2", parent: str | None = "u1", **more: Any) -> dict[str, Any]:
    return entry(
        uuid, parent, "assistant", **{"message": {"role": "assistant", "model": "m", "content": "ok"}, **more}
    )


def look(tmp_path: Path, *entries: dict[str, Any] | bytes, offset: int = 0) -> transcript.Seen:
    path = tmp_path / "t.jsonl"
    lines = [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in entries]
    path.write_bytes(b"".join(lines))
    return transcript.look(str(path), [ID], offset)[ID]


def test_a_mark_and_an_answer_after_it_are_a_read(tmp_path: Path) -> None:
    seen = look(tmp_path, entered(), reply())
    assert seen.at == 0
    assert seen.delivered_at == seen.read_at == 1796047331.5


def test_a_mark_without_an_answer_is_delivered_only(tmp_path: Path) -> None:
    seen = look(tmp_path, reply("u0", None), entered(parent="u0"))
    assert seen.at > 0
    assert seen.read_at is None


@pytest.mark.parametrize(
    "carrier",
    [
        entered(),
        entry(
            "u1",
            None,
            "user",
            isMeta=True,
            message={"role": "user", "content": f"Stop hook feedback:\n{MARK}"},
        ),
        entry(
            "u1",
            None,
            "user",
            origin={"kind": "task-notification"},
            message={"role": "user", "content": f"<x>{MARK}"},
        ),
        entry(
            "u1",
            None,
            "attachment",
            attachment={"type": "queued_command", "prompt": f"<task-notification>{MARK}"},
        ),
    ],
    ids=["context", "block", "rewake", "rewake into a turn"],
)
def test_each_way_into_the_conversation_counts(tmp_path: Path, carrier: dict[str, Any]) -> None:
    assert look(tmp_path, carrier, reply()).read_at is not None


@pytest.mark.parametrize(
    "forged",
    [
        reply("u1", None, message={"role": "assistant", "content": [{"type": "text", "text": MARK}]}),
        entry(
            "u1",
            None,
            "user",
            message={"role": "user", "content": [{"type": "tool_result", "content": MARK}]},
        ),
        entry("u1", None, "user", toolUseResult={"stdout": MARK}, message={"role": "user", "content": MARK}),
        entry("u1", None, "user", origin={"kind": "human"}, message={"role": "user", "content": MARK}),
        entry("u1", None, "attachment", attachment={"type": "file", "content": MARK}),
        entry("u1", None, "attachment", attachment={"type": "hook_success", "stdout": MARK}),
        entry("u1", None, "queue-operation", operation="enqueue", content=MARK),
        entry("u1", None, "api-request-blob", message={"role": "user", "content": MARK}),
        entry("u1", None, "last-prompt", lastPrompt=MARK),
        {**entered(), "isSidechain": True},
        entered(text=render.mark(OTHER) + f'>\n{ID} is here, and &lt;message about="{ID}" too\n</message>'),
    ],
    ids=[
        "assistant",
        "tool result",
        "tool",
        "person",
        "file",
        "hook's output",
        "queue",
        "request",
        "prompt",
        "subagent",
        "body",
    ],
)
def test_a_mark_elsewhere_proves_nothing(tmp_path: Path, forged: dict[str, Any]) -> None:
    seen = look(tmp_path, forged, reply())
    assert (seen.at, seen.read_at) == (-1, None)


@pytest.mark.parametrize(
    "no_answer",
    [
        reply(isApiErrorMessage=True),
        reply(message={"role": "assistant", "model": "<synthetic>", "content": "API Error"}),
        reply(isSidechain=True),
        entry("u2", "u1", "user", message={"role": "user", "content": 'says "assistant"'}),
    ],
    ids=["error", "synthetic", "subagent", "user"],
)
def test_what_is_no_answer_of_the_model_is_no_read(tmp_path: Path, no_answer: dict[str, Any]) -> None:
    seen = look(tmp_path, entered(), no_answer)
    assert (seen.at, seen.read_at, seen.rewound) == (0, None, False)
    assert look(tmp_path, entered(), no_answer, reply("u3", "u1")).read_at is not None


def test_an_answer_on_another_branch_is_no_read(tmp_path: Path) -> None:
    seen = look(
        tmp_path, entry("u0", None, "user"), entered(parent="u0"), entry("p", "u0", "user"), reply("r", "p")
    )
    assert (seen.read_at, seen.rewound) == (None, True)


def test_an_answer_over_several_entries_is_a_read(tmp_path: Path) -> None:
    between = entry("x", "u1", "attachment", attachment={"type": "date"})
    assert look(tmp_path, entered(), between, reply(parent="x")).read_at is not None


def test_a_text_the_harness_holds_is_seen_as_such(tmp_path: Path) -> None:
    seen = look(tmp_path, {"type": "queue-operation", "operation": "enqueue", "content": MARK})
    assert (seen.enqueued, seen.at) == (True, -1)


def test_a_half_line_counts_once_it_is_whole(tmp_path: Path) -> None:
    line = json.dumps(entered()).encode()
    assert look(tmp_path, line).at == -1
    assert look(tmp_path, line[:-20]).at == -1
    assert look(tmp_path, line + b"\n").at == 0


def test_a_line_over_the_limit_is_skipped_and_what_follows_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "LINE_LIMIT", 5_000)
    huge = entry("u0", None, "user", message={"content": "x" * 12_345})
    assert look(tmp_path, huge, entered(), reply()).read_at is not None
    assert look(tmp_path, json.dumps(huge).encode()).at == -1


@pytest.mark.parametrize(
    "garbage", [b"{\n", b"\xff\xfe\n", b"[]\n", b"\n", b"null\n", b"[" * 100_000 + b"\n"]
)
def test_lines_that_are_no_entries_are_passed_over(tmp_path: Path, garbage: bytes) -> None:
    with_id = garbage.replace(b"\n", ID.encode() + b"\n")
    assert look(tmp_path, garbage, with_id, entered(), garbage, with_id, reply()).read_at is not None


def test_only_what_comes_after_the_claim_counts(tmp_path: Path) -> None:
    before = len(json.dumps(entered()).encode()) + 1
    assert look(tmp_path, entered(), reply(), offset=before).at == -1


def test_a_transcript_shorter_than_the_offset_is_read_from_its_begin(tmp_path: Path) -> None:
    assert look(tmp_path, entered(), reply(), offset=1 << 30).read_at is not None


def test_a_missing_transcript_shows_nothing(tmp_path: Path) -> None:
    assert transcript.look(str(tmp_path / "none"), [ID], 0)[ID].at == -1
    assert transcript.look(str(tmp_path), [ID], 0)[ID].at == -1
    assert transcript.size(str(tmp_path / "none")) == 0


def test_several_messages_of_one_entry_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    both = MARK + "\n" + MARK.replace(ID, OTHER)
    path.write_text("".join(json.dumps(one) + "\n" for one in (entered(text=both), reply())))
    seen = transcript.look(str(path), [ID, OTHER], 0)
    assert all(one.read_at is not None for one in seen.values())


def test_an_answer_stamped_before_its_message_is_read_when_delivered(tmp_path: Path) -> None:
    seen = look(tmp_path, entered(), reply(timestamp="2026-11-30T14:02:10.000Z"))
    assert seen.read_at == seen.delivered_at
