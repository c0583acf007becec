"""Sending what children left as the last words of their turns to their parents.

The words become one message with an id given beforehand, so that a coordinator killed in between sends none twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost import config, policy, redaction
from turnpost.core import (
    audit,
    clock,
    files,
    home,
    mailbox,
    missions,
    notice,
    outbox,
    procs,
    registry,
    reporting,
    routing,
    rules,
    store,
    text,
    threads,
)
from turnpost.core.errors import Newer

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Report


def send_all(root: str, child: Agent) -> None:
    """Send every report of a child that waits. Raises what a send raises; then the report stays and is tried again."""
    for path in reporting.waiting(root, child["key"]):
        try:
            report = reporting.load(path)
        except Newer:
            continue
        if report is None:
            files.mkdir(home.agent(root, child["key"]) + "/damaged")
            files.move(path, f"{home.agent(root, child['key'])}/damaged/{path.rpartition('/')[2]}")
            continue
        parent = registry.load_agent(root, child["parent"]) if child["parent"] else None
        refusal = _refusal(root, child, parent)
        if parent is None or refusal:
            audit.write(root, "report-dropped", agent=child["key"], message=report["id"], reason=refusal)
        elif mailbox.load_message(root, report["id"]) is None:
            _send(root, child, parent, report)
        files.unlink(path)


def _refusal(root: str, child: Agent, parent: Agent | None) -> str:
    """Why a report goes to nobody; empty when it goes to the parent."""
    if parent is None:
        return "its parent is gone"
    verdict = routing.decide(child, parent, missions.of(root, child, parent), policy.load(root).rules)
    if not verdict.allowed:
        return verdict.reason
    over = missions.over(root, parent)
    return f"the mission {over['name']} is over" if over else ""


def _send(root: str, child: Agent, parent: Agent, report: Report) -> None:
    rules = policy.load(root)
    found = redaction.redact(report["text"], rules.secrets)
    to = registry.party(parent)
    to["kin"] = "child"
    message = outbox.compose(
        registry.party(child), [to], _body(root, child, found.text, report["id"]), kind="report",
        thread=threads.mission_of([child, parent], missions.of(root, child, parent)), urgent=rules.family_urgent,
        quiet=not _is_up(root, parent["key"]), redacted=found.taken,
    )  # fmt: skip
    message["id"] = message["origin"] = report["id"]
    outbox.send(root, message, [parent], limit=notice.ROOM)


def _body(root: str, child: Agent, said: str, message_id: str) -> str:
    """The words themselves; where they are more than a message holds, the file that has them all."""
    size, limit = len(said.encode()), config.load(root).body_bytes
    if size <= limit:
        return said
    path = home.report(root, message_id)
    files.mkdir(path.rpartition("/")[0])
    files.write(path, said.encode())
    name = text.visible(child["name"])
    return f"The report of {name} has {size} bytes, more than the {limit} a message holds. All of it is in the file {path}"


def _is_up(root: str, key: str) -> bool:
    """Whether an agent's session runs: then a report wakes it, and one that has stopped is not resumed for it."""
    state = store.load_state(root, key)
    alive = state is not None and procs.alive(state["pid"], state["token"])
    return rules.effective(state, clock.now(), alive) not in ("stopped", "lost")
