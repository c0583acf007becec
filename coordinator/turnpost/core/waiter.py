"""The waiter: one process per idle agent that sleeps in the kernel until a message lands.

It ends in one of two ways: exit 0 in silence, or exit 2 after a claim, with the messages on stderr, which wakes the
session. Exit 2 has no cap in the harness: it leaves from one line, and only after a claim or a wake that was counted.
"""

from __future__ import annotations

import os
import select

from turnpost.core import bell, clock, deliver, files, home, procs, registry, render, rules, store
from turnpost.core.errors import BadFile, LockBusy
from turnpost.core.mailbox import Mailbox, make_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnpost.core.records import State, Waiter

ROUND = 15.0
"""Seconds between looks without a bell: how long a lost bell can go unnoticed, and without pidfds a vanished session."""
FLYING = 5.0
"""Seconds between looks while something is on its way: it may have to be recalled."""
SOON = 0.25
"""Seconds until the next look while something waits that may not be taken yet."""
REGISTRATION = 10.0
"""Seconds a SessionStart hook, which runs beside us, may take to register the session."""


def main(root: str) -> None:
    """Wait, and leave by exit 0, or by exit 2 with what was claimed."""
    try:
        entering = _wait(root).encode("utf-8", "replace")
    except Exception as error:  # noqa: BLE001 - the last guard: anything but silence could wake a session
        deliver.log_failure(root, "waiter", error)
        return
    if entering:
        files.write_all(2, entering)
        os._exit(2)  # the one line that wakes a session


def _wait(root: str) -> str:
    payload = deliver.read_input()
    event, session_id = payload.get("hook_event_name"), str(payload.get("session_id", ""))
    waiter: Waiter = {
        "v": 1, "id": f"{os.getpid()}-{int(clock.monotonic() * 1000)}", "pid": os.getpid(), "token": procs.token(os.getpid()),
        "session_id": session_id, "harness_pid": deliver.harness_pid(), "since": clock.now(),
    }  # fmt: skip
    while True:
        key = _registered(root, session_id, started=event == "SessionStart")
        if key is None or (event == "UserPromptSubmit" and _served(root, key, session_id)):
            return ""
        entering = _serve(root, key, waiter, payload)
        if entering or registry.key_of_session(root, session_id) in (key, None):
            return entering
        # A fork that turned out to be another agent's continuation: its waiter goes with it.


def _serve(root: str, key: str, waiter: Waiter, payload: deliver.Payload) -> str:
    path = bell.fifo(root, key, waiter["id"])
    files.fifo(path)
    # Read and write: with a writer of our own the FIFO never reports end of file, and opening does not block.
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not _taken_over(root, key, waiter, payload):
            return ""
        return _listen(root, key, waiter, fd, payload)
    finally:
        os.close(fd)
        files.unlink(path)


def _registered(root: str, session_id: str, *, started: bool) -> str | None:
    """The session's agent, once the hook that runs beside us has recorded what the session does.

    A session that just `started` may be known from before, and become its agent's present one again only now.
    """
    end = clock.monotonic() + REGISTRATION
    while True:
        key = registry.key_of_session(root, session_id)
        state = store.load_state(root, key) if key is not None else None
        if state is not None and (state["session_id"] == session_id or not started):
            return key
        if clock.monotonic() >= end:
            return key
        clock.sleep(0.05)


def _served(root: str, key: str, session_id: str) -> bool:
    """Whether the waiter of an earlier turn still listens to the session: it serves this turn's end as well.

    A turn that a waiter began has none. Ended by Esc or a failure it fires no Stop, and nobody would wake the agent again.
    """
    waiter = store.load_waiter(root, key)
    return waiter is not None and waiter["session_id"] == session_id and bell.listening(root, key)


def _taken_over(root: str, key: str, waiter: Waiter, payload: deliver.Payload) -> bool:
    """`_take_over`, however long somebody holds the lock: nobody else arms a waiter for this turn's end."""
    start = procs.token(waiter["harness_pid"])
    while True:
        try:
            return _take_over(root, key, waiter, payload)
        except LockBusy:
            if not procs.alive(waiter["harness_pid"], start):
                return False


def _take_over(root: str, key: str, waiter: Waiter, payload: deliver.Payload) -> bool:
    """Become the agent's one waiter and let the older one go. False for a session the agent has left.

    The prompt hook of a wake notes nothing, so the waiter of that turn notes the permission mode.
    """
    box = Mailbox(root, key)
    with box.lock(30.0):
        state = store.load_state(root, key)
        if state is None or state["session_id"] != waiter["session_id"]:
            return False
        older = store.load_waiter(root, key)
        if older is not None and _armed(older) > _armed(waiter) and bell.listening(root, key):
            return False
        files.write(box.folder + "/waiter.json", store.pack(waiter), durable=False)
        begun = payload.get("hook_event_name") == "UserPromptSubmit"
        if begun and deliver.note_mode(root, key, state, payload):
            store.save_state(root, key, state)
    if older is not None:
        bell.ring(bell.fifo(root, key, older["id"]))
    return True


def _armed(waiter: Waiter) -> float:
    """When a waiter began, by the clock that nobody sets; every process of a machine sees the same one."""
    moment = waiter["id"].rpartition("-")[2]
    return int(moment) / 1000 if moment.isascii() and moment.isdigit() else 0.0


def _listen(root: str, key: str, waiter: Waiter, fd: int, payload: deliver.Payload) -> str:
    event = str(payload.get("hook_event_name"))
    box = Mailbox(root, key)
    start = procs.token(waiter["harness_pid"])
    bells = [fd, *_end_of(waiter["harness_pid"])]
    while True:
        if not procs.alive(waiter["harness_pid"], start):
            return ""  # an orphan: what it claimed would reach nobody
        current = store.load_waiter(root, key)
        if current is None or current["id"] != waiter["id"]:
            return ""
        if registry.key_of_session(root, waiter["session_id"]) != key:
            return ""  # the session is another agent's by now
        pause = ROUND
        # In this order: what is put back moves from the one to the other, without a bell, and must be seen in one of them.
        flying, waiting = box.in_flight(), box.waiting()
        if flying or waiting:
            entering = _try(box, waiter, event, str(payload.get("transcript_path", "")))
            if entering:
                return entering
            pause = SOON if waiting else FLYING
        select.select(bells, [], [], pause)
        try:
            os.read(fd, 4096)
        except BlockingIOError:
            pass


def _end_of(pid: int) -> list[int]:
    """What can be read once a process has ended; nothing where the kernel cannot tell."""
    try:
        return [os.pidfd_open(pid)]
    except (AttributeError, OSError):  # macOS, and Linux before 5.3
        return []


def _try(box: Mailbox, waiter: Waiter, event: str, transcript: str) -> str:
    """Claim what may enter now. Unreadable or busy surroundings are waited out: nobody else arms a waiter."""
    try:
        with box.lock(1.0):
            state = store.load_state(box.root, box.key)
            if state is None or state["session_id"] != waiter["session_id"]:
                return ""
            if waiter["harness_pid"] and state["pid"] != waiter["harness_pid"]:
                return ""  # this process has gone on to another conversation
            now = clock.now()
            armed_at = now - (clock.monotonic() - _armed(waiter))  # as the clock shows that moment now
            if not rules.waiter_takes(
                state, armed_by_stop=event == "Stop", armed_by_prompt=event == "UserPromptSubmit",
                armed_at=armed_at, held=box.held(), now=now,
            ):  # fmt: skip
                return ""
            if box.in_flight():
                box.settle(state)
            garbled = box.garbled()
            if garbled:
                # The prompt hook, which runs with every wake, brings them; counted, or a broken one would end in a loop.
                box.nudge(garbled)
                return render.NUDGE
            name = deliver.name_of(box.root, box.key)
            blocks = box.claim(
                "rewake",
                rules.REWAKE_UNITS,
                make_claim(waiter["harness_pid"], state["transcript"] or transcript),
                recipient=name,
                session_id=waiter["session_id"],
                whole_first=True,
            )
            entering = render.batch(blocks) if blocks else ""
            if not blocks and (forgotten := box.unanswered(state)):
                box.remind(forgotten)
                entering = render.REMINDER
            if entering:
                _begin_turn(box, state, entering, mail=bool(blocks))
            return entering
    except (LockBusy, BadFile, OSError):
        return ""


def _begin_turn(box: Mailbox, state: State, entering: str, *, mail: bool) -> None:
    """Record the turn that the wake begins, so that its prompt hook does not hold the model request back to do it.

    Killed before the exit, we leave an agent that only seems to work: the coordinator asks about one that does not
    answer, and the claim returns.
    """
    state["stops"] = 0
    deliver.begin_report(box.root, box.key, state, {"prompt": entering}, mail=mail)
    store.save_state(box.root, box.key, store.change_state(state, "working"))
    files.touch(home.woken(box.root, box.key))
