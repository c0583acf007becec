"""The messages that the documentation shows are what turnpost renders, and every boundary has one."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from turnpost.core import outbox, registry, render

if TYPE_CHECKING:
    from turnpost.core.records import Message, Party

PAGES = "\n".join(page.read_text() for page in sorted((Path(__file__).parents[2] / "docs").glob("*.md")))
EXAMPLE = re.compile(
    r"^`([a-z-]+)`: .*\n\n```\n(turnpost.*\n<message ([^>]*)>\n(.*)\n</message>)\n```",
    re.MULTILINE,
)
EXAMPLES = {found[1]: found for found in EXAMPLE.finditer(PAGES)}


def party(name: str) -> Party:
    if name == registry.PERSON:
        return registry.party(registry.unsaved_person())
    return {"kind": "agent", "name": name, "key": f"ag-{name}"}


def rebuilt(shown: dict[str, str], body: str) -> Message:
    options = [option.partition(": ")[2] for option in shown.get("options", "").split(" | ") if option]
    message = outbox.compose(
        party(shown["from"]), [party(shown["to"])], body, kind=shown["kind"], urgent="urgent" in shown,
        reply_to=shown.get("reply-to"), refs=[ref for ref in shown.get("refs", "").split(" | ") if ref], options=options,
        choice=int(shown["choice"]) if "choice" in shown else None,
    )  # fmt: skip
    message["id"] = shown["about"]
    return message


def seconds(age: str) -> float:
    number, unit = age.split()
    return float(number) * {"s": 1, "min": 60}[unit]


def test_every_boundary_where_a_message_enters_has_its_example() -> None:
    assert set(EXAMPLES) == {"stop-block", "rewake", "next-request", "prompt", "resume", "subagent-stop"}
    assert "\n`inbox`: " in PAGES


@pytest.mark.parametrize("boundary", sorted(EXAMPLES))
def test_the_example_is_what_is_rendered(boundary: str) -> None:
    example = EXAMPLES[boundary]
    shown = {name: html.unescape(value) for name, value in re.findall(r'([a-z-]+)="([^"]*)"', example[3])}
    message = rebuilt(shown, example[4])
    assert message["thread"] == shown["thread"]
    to = message["to"][0]
    variants: list[Party] = [to, {**to, "kin": "parent"}, {**to, "kin": "child"}]
    now = message["sent"] + seconds(shown["age"]) + 0.5
    assert example[2] in [
        render.block({**message, "to": [one]}, to["name"], now, to["key"]) for one in variants
    ]
