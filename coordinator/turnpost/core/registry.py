"""Who is known: agents, their names, their sessions, and what each session last did."""

from __future__ import annotations

import os
import stat

from turnpost.core import clock, files, home, ids, procs, store, text
from turnpost.core.errors import BadFile, NotFound, Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnpost.core.records import Agent, Kind, Party

PERSON = "person"
_SHORT_ID = 8  # the digits of a session id that Claude Code shows
AGENT = {
    "key": str, "name": str, "kind": frozenset({"managed", "registered", "person", "merged", "subagent"}), "created": float,
    "cwd": str, "root": str, "sessions": [str], "parent": (str, None), "mission": (str, None),
    "instructions": (str, None), "background": bool, "retire": [str], "about?": str,
}  # fmt: skip
LAYOUT = ("agents", "names", "sessions", "pids", "messages", "outbox", "pending", "missions", "loops")


def prepare(root: str) -> None:
    """Make the folders of a spool; ones that are there stay. Raises Refused (`home`) as `check_home` does."""
    check_home(root)
    if files.exists(f"{root}/{LAYOUT[-1]}"):
        return  # the last to be made
    for folder in LAYOUT:
        files.mkdir(f"{root}/{folder}")


def check_home(root: str) -> None:
    """Raises Refused (`home`) for a home that another user owns or can write in."""
    if home.is_private(root):
        return
    info = os.stat(root)
    if not stat.S_ISDIR(info.st_mode):
        raise Refused(
            f"refused by rule 'home': {root} is no folder; move it away, or set TURNPOST_HOME to a folder of yours",
            rule="home",
        )
    owner, mode = info.st_uid, f"{info.st_mode & 0o777:04o}"
    raise Refused(
        f"refused by rule 'home': {root} belongs to user {owner} and has mode {mode}; turnpost, run by user {os.geteuid()}, uses a "
        f"folder of its own only, in which nobody else can write: `chmod 0700 {root}`, or set TURNPOST_HOME to another one",
        rule="home", owner=owner, mode=mode,
    )  # fmt: skip


def load_agent(root: str, key: str) -> Agent | None:
    """An agent by its key; None when there is none or its record is damaged."""
    found = store.load(home.agent(root, key) + "/agent.json", AGENT)
    # Damage leads to no other folder: key and name become parts of paths.
    whole = found is not None and found["key"] == key and _may_be_called(found["kind"], found["name"])
    return found if whole else None  # type: ignore[return-value]


def known_agent(root: str, key: str) -> Agent | None:
    """An agent by its key; None only when there is none. Raises BadFile or OSError for one that cannot be read."""
    agent = load_agent(root, key)
    if agent is None:
        path = home.agent(root, key) + "/agent.json"
        try:
            files.read(path)
        except FileNotFoundError:
            return None
        raise BadFile(f"{path} is damaged")
    return agent


def save_agent(root: str, agent: Agent) -> None:
    """Write who an agent is, durably."""
    files.write(home.agent(root, agent["key"]) + "/agent.json", store.pack(agent))


def create_agent(
    root: str, name: str, *, kind: Kind, cwd: str, project: str, background: bool = False
) -> Agent:
    """Make an agent under a name nobody has. Raises Refused (`taken`) and UsageError for what cannot be a name."""
    if kind != "person" and (fault := text.name_fault(name)):
        raise UsageError(f"'{text.visible(name)}' cannot name an agent: {fault}", rule="name")
    name = text.name_form(name)
    agent = _record(name, kind, cwd, project, background)
    key = agent["key"]
    for folder in ("queue", "claimed"):
        files.mkdir(f"{home.agent(root, key)}/{folder}")
    save_agent(root, agent)
    if not files.create(home.name(root, text.name_key(name)), key.encode()):
        taken = key_of_name(root, name)
        if taken == key:
            return agent
        _forget(root, key)
        raise Refused(
            f"the name '{name}' is taken; choose another, or rename that agent first; "
            f"if it has stopped, `turnpost wake {name}` brings it back",
            rule="taken",
        )
    return agent


def person(root: str) -> Agent:
    """The person's own mailbox, made when first needed."""
    return load_agent(root, PERSON) or create_agent(root, PERSON, kind="person", cwd="", project="")


def unsaved_person() -> Agent:
    """The person's record without a mailbox: who only speaks, or is refused, leaves nothing on disk."""
    return _record(PERSON, "person", "", "", False)


def forget(root: str, agent: Agent) -> None:
    """Remove an agent that never had a session. What is not ours, or not empty, stays."""
    files.unlink(home.name(root, text.name_key(agent["name"])))
    _forget(root, agent["key"])


def rename(root: str, agent: Agent, new: str) -> Agent:
    """Give an agent another name. Its key, its mail and its sessions stay."""
    if fault := text.name_fault(new):
        raise UsageError(f"'{text.visible(new)}' cannot name an agent: {fault}", rule="name")
    old, new = agent["name"], text.name_form(new)
    path = home.name(root, text.name_key(new))
    mine = key_of_name(root, new) == agent["key"]  # as it is, or since a rename was killed half way
    if not mine and not files.create(path, agent["key"].encode()):
        raise Refused(f"the name '{new}' is taken; choose another, or rename that agent first", rule="taken")
    agent["name"] = new
    save_agent(root, agent)
    # Killed before this line an agent has two names for a while; never none.
    if text.name_key(old) != text.name_key(new):
        files.unlink(home.name(root, text.name_key(old)))
    return agent


def key_of_name(root: str, name: str) -> str | None:
    """The key behind a name, None when nobody has it."""
    if text.name_fault(name) and name != PERSON:
        return None
    return _key(home.name(root, text.name_key(name)))


def find(root: str, name: str) -> Agent:
    """The agent of a name, or of a session id as it or its first eight digits are shown.

    Raises NotFound with the nearest names there are.
    """
    key = key_of_name(root, name) or _key_of_session_word(root, name)
    agent = load_agent(root, key) if key else None
    if agent is not None:
        return agent
    names = [one["name"] for one in everyone(root)]
    near = text.nearest(name, [*names, PERSON])
    hint = f"; nearest: {', '.join(near)}" if near else "; `turnpost agents` lists those there are"
    if not names:
        hint = "; none are known yet, see `turnpost launch` and `turnpost install`"
    raise NotFound(f"no agent is named '{text.visible(name)}'{hint}", near=near)


def everyone(root: str) -> list[Agent]:
    """All agents by name, without the person and without those that a newer turnpost wrote."""
    found = [store.if_known(load_agent, root, key) for key in files.names(home.agents(root))]
    return sorted(
        (a for a in found if a is not None and a["kind"] not in ("person", "merged")),
        key=lambda a: text.name_key(a["name"]),
    )


def key_of_session(root: str, session_id: str) -> str | None:
    """The agent a session belongs to, also one it has since left."""
    return _key(home.session(root, session_id)) if home.is_session_id(session_id) else None


def _key_of_session_word(root: str, word: str) -> str | None:
    if not home.is_session_id(word):
        return None
    found = key_of_session(root, word)
    if found is None and len(word) == _SHORT_ID:
        keys = {key_of_session(root, one) for one in files.names(root + "/sessions") if one.startswith(word)}
        found = keys.pop() if len(keys) == 1 else None
    return found


def key_of_process(root: str, pid: int) -> str | None:
    """The agent whose session runs in this very process."""
    word = _word(f"{root}/pids/{pid}")
    if word is None:
        return None
    key, _, start = word.partition(" ")
    return key if ids.is_id(key, "ag") and start and procs.token(pid) == start else None


def forget_unmade(root: str, key: str) -> None:
    """Remove the folder of an agent whose making was killed before it had a record. What is not empty stays."""
    with files.Lock(root + "/registry.lock", 5.0):
        if not files.exists(home.agent(root, key) + "/agent.json"):
            _forget(root, key)


def forget_names(root: str, known: Iterable[Agent]) -> None:
    """Take away the names that agents no longer have: a rename that was killed leaves the old one. `known` are all agents."""
    present = {text.name_key(agent["name"]) for agent in known if agent["kind"] != "merged"}
    for name in set(files.names(root + "/names")) - present:
        with files.Lock(root + "/registry.lock", 5.0):
            key = _key(home.name(root, name))
            agent = store.if_known(load_agent, root, key) if key else None
            if agent is not None and (agent["kind"] == "merged" or text.name_key(agent["name"]) != name):
                files.unlink(home.name(root, name))


def forget_processes(root: str) -> None:
    """Forget the processes that are gone. A session that was killed could not say that it ended.

    Under the lock of those that are noted: a pid is given out again.
    """
    gone = [pid for pid in files.names(root + "/pids") if pid.isdigit() and procs.token(int(pid)) is None]
    if gone:
        with files.Lock(root + "/registry.lock", 5.0):
            for pid in gone:
                if procs.token(int(pid)) is None:
                    files.unlink(f"{root}/pids/{pid}")


def link(root: str, agent: Agent, session_id: str, pid: int) -> None:
    """Bind a session and its process to an agent; the newest session is the last in its list."""
    files.write(home.session(root, session_id), agent["key"].encode())
    if pid and (start := procs.token(pid)):
        files.write(f"{root}/pids/{pid}", f"{agent['key']} {start}".encode(), durable=False)
    known = load_agent(root, agent["key"])
    if agent["sessions"][-1:] != [session_id]:
        agent["sessions"] = [*(s for s in agent["sessions"] if s != session_id), session_id]
    if agent != known:
        save_agent(root, agent)


def is_key(word: str) -> bool:
    """Whether a word has the form of a mailbox's key, and so may be part of a path: the person's, an agent's, a subagent's."""
    owner, _, sub = word.partition("~")
    return word == PERSON or (ids.is_id(owner, "ag") and "/" not in sub and sub not in (".", ".."))


def party(agent: Agent) -> Party:
    """An agent as sender or recipient of a message."""
    made: Party = {
        "kind": "person" if agent["kind"] == "person" else "agent",
        "name": agent["name"],
        "key": agent["key"],
    }
    if agent["kind"] == "subagent":
        made["sub"] = agent["key"].partition("~")[2]
    return made


def main_checkout(folder: str) -> str:
    """The folder a session of this project is resumed from: a git worktree's main checkout, else the folder itself.

    Claude Code resumes a session only from there (from the worktree it dies at once).
    """
    top = folder
    while top and top != "/":
        try:
            if os.path.isdir(top + "/.git"):
                return top
            with open(files.open_plain(top + "/.git"), encoding="utf-8") as file:
                link_text = file.read(4096).strip()
        except (OSError, ValueError):
            top = os.path.dirname(top)
            continue
        target = os.path.normpath(os.path.join(top, link_text.removeprefix("gitdir:").strip()))
        before, found, _ = target.partition("/.git/worktrees/")
        return before if found else top
    return folder


def _record(name: str, kind: Kind, cwd: str, project: str, background: bool) -> Agent:
    now = clock.now()
    return {
        "v": 1, "key": PERSON if kind == "person" else ids.new("ag", now), "name": name, "kind": kind, "created": now,
        "cwd": cwd, "root": project, "sessions": [], "parent": None, "mission": None, "instructions": None,
        "background": background, "retire": [],
    }  # fmt: skip


def _key(path: str) -> str | None:
    """A key as it stands in a file; None for what is none, so that damage leads to no other folder."""
    word = _word(path)
    return word if word is not None and "~" not in word and is_key(word) else None


def _word(path: str) -> str | None:
    try:
        return files.read(path, 4096).decode().strip() or None
    except (OSError, ValueError, BadFile):
        return None


def _may_be_called(kind: str, name: str) -> bool:
    return kind == "subagent" or text.name_fault(name) is None or (kind == name == PERSON)


def _forget(root: str, key: str) -> None:
    folder = home.agent(root, key)
    for name in ("agent.json", "recent", "reporting", "hold-final", "lock"):
        files.unlink(f"{folder}/{name}")
    for name in ("queue", "claimed", "reports", "given-up", ""):
        try:
            os.rmdir(f"{folder}/{name}")
        except OSError:
            pass
