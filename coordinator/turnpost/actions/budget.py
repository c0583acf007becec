"""The budget of agents that answer each other. Used up, a send is refused aloud and the person is told, once a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnpost.core import clock, files, home, loops, notice, registry, store
from turnpost.core.errors import Refused, TurnpostError

if TYPE_CHECKING:
    from turnpost.core.loops import Budget, Loop
    from turnpost.core.records import Agent, Message


def check(root: str, message: Message, recipients: Sequence[Agent], budget: Budget) -> None:
    """Room is left for this message with every agent it goes to. Raises Refused (`loop`) with the numbers."""
    if message["sender"]["kind"] != "agent":
        return
    for other in recipients:
        loop = None if other["kind"] == "person" else _used_up(root, message, other, budget)
        if loop is not None:
            _tell_person(root, message, other, loop, budget)
            raise _refused(message, other, loop)


def anew(root: str, asked: Message | None, sender: Agent, recipients: Sequence[Agent]) -> bool:
    """Whether the person has written to one of them since an agent's message that is answered: their count begins again."""
    if asked is None or asked["sender"]["kind"] != "agent":
        return False
    keys = [sender["key"], *(other["key"] for other in recipients)]
    return loops.person_at(root, *keys) > asked["sent"]


def note(root: str, message: Message, recipients: Sequence[Agent], budget: Budget) -> None:
    """Count a message that was sent; the person's own begins the counts anew. It is durable: no counter may fail it."""
    sender, now = message["sender"], clock.now()
    try:
        for key in (other["key"] for other in recipients if other["kind"] != "person"):
            if sender["kind"] == "person":
                loops.person_wrote(root, key, now)
            elif sender["kind"] == "agent":
                loops.count(root, sender["key"], key, now, budget)
    except OSError:
        pass


def _used_up(root: str, message: Message, other: Agent, budget: Budget) -> Loop | None:
    sender, key = message["sender"]["key"], other["key"]
    return loops.chain(message.get("hops", 0), budget) or loops.pair(
        loops.moments(root, sender, key), loops.person_at(root, sender, key), budget, clock.now()
    )


def _refused(message: Message, other: Agent, loop: Loop) -> Refused:
    numbers: dict[str, object] = {"counted": loop.counted, "limit": loop.limit, "recipient": other["name"]}
    if loop.seconds is None:
        numbers["origin"] = message.get("origin", "")
    else:
        numbers["seconds"] = loop.seconds
    return Refused(
        f"refused by rule 'loop' for {other['name']}: {loop.words}; the person has been told, and a message of the "
        "person's to either of you opens the way again; until then go on without an answer",
        rule="loop", **numbers,
    )  # fmt: skip


def _tell_person(root: str, message: Message, other: Agent, loop: Loop, budget: Budget) -> None:
    """Alert the person, once a window for each pair: an agent that tries again must not flood the inbox."""
    name, now = message["sender"]["name"], clock.now()
    path = home.pair(root, message["sender"]["key"], other["key"]) + ".told"
    told = store.load(path, {"at": float})
    if told is not None and 0 <= now - float(told["at"]) < budget.seconds:
        return
    body = (
        f"{name} and {other['name']} were stopped by the rule 'loop': {loop.words}.\n"
        f"A message of yours to one of them lets them go on; the limits are in {root}/policy.toml."
    )
    try:
        registry.prepare(root)
        notice.send(root, [registry.person(root)], body)
        files.write(path, store.pack({"v": 1, "at": now}), durable=False)
    except (TurnpostError, OSError):
        pass  # the refusal itself is what must be said
