"""A child's last words of a turn, kept for its parent. Sending them is the coordinator's: it knows the policy.

A turn's words are due from its prompt to its end, so they are kept once however many hooks make the turn go on.
"""

from __future__ import annotations

from turnpost.core import bell, clock, files, home, ids, render, store, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.deliver import Payload
    from turnpost.core.records import Report, State


REPORT = {"id": str, "text": str, "at": float}


def switch_on(root: str, key: str) -> None:
    """Have an agent's turns reported to its parent."""
    files.mkdir(home.reports(root, key))
    files.touch(home.reporting(root, key))


def begin(state: State, payload: Payload, *, mail: bool) -> None:
    """A turn begins. One that only reminds of a message has nothing to report, unless there is `mail` with it."""
    if mail or render.REMINDER not in str(payload.get("prompt", "")):
        state["due"] = True


def leave(root: str, key: str, payload: Payload) -> None:
    """A turn has ended and nothing waits: keep its last words until they are sent."""
    said = payload.get("last_assistant_message")
    if not isinstance(said, str) or not said.strip():
        return
    now = clock.now()
    report: Report = {"v": 1, "id": ids.new("msg", now), "text": text.clean(said)[0], "at": now}
    files.write(f"{home.reports(root, key)}/{report['id']}.json", store.pack(report))
    bell.announce(root, key)


def waiting(root: str, key: str) -> list[str]:
    """The files of the reports that are still to be sent, the oldest first."""
    folder = home.reports(root, key)
    return [f"{folder}/{name}" for name in files.names(folder) if name.endswith(".json")]


def load(path: str) -> Report | None:
    """A report that waits; None when it cannot be read."""
    found = store.load(path, REPORT)
    return found if found is not None and ids.is_id(found["id"], "msg") else None  # type: ignore[return-value]
