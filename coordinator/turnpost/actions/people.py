"""Who calls, whom a call names, and how an agent stands right now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from turnpost.core import bell, clock, procs, registry, rules, sender, store, subagents, text
from turnpost.core.errors import HarnessError, NotFound, Refused, UsageError
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Doing, State


_SHORT = 4
"""Characters of a subagent's id that are enough to name it."""


class Standing(NamedTuple):
    """How an agent stands at one moment."""

    doing: Doing
    listening: bool
    deaf: bool
    held: bool
    state: State | None
    box: Mailbox

    @property
    def waiting(self) -> int:
        """How many messages wait, counted when asked."""
        return len(self.box.waiting())


def caller(root: str, given: Speaker | None = None) -> Speaker:
    """Who speaks, as the process tree says. Raises Refused (`foreign`) for a Claude session turnpost does not know."""
    speaker = given or sender.who(root)
    if speaker.foreign_pid:
        raise Refused(
            f"refused by rule 'foreign': this runs inside a Claude session (process {speaker.foreign_pid}) that "
            "turnpost does not know; run `turnpost install` in its project, from a terminal, and start it again",
            rule="foreign", pid=speaker.foreign_pid,
        )  # fmt: skip
    return speaker


def person(root: str, what: str, given: Speaker | None = None) -> Speaker:
    """The caller, who must be the person. Raises Refused (`not-allowed`, `foreign`)."""
    speaker = caller(root, given)
    if not speaker.is_person:
        raise not_allowed(speaker, f"only the person may {what}")
    return speaker


def not_allowed(speaker: Speaker, why: str, **numbers: object) -> Refused:
    """The refusal of what somebody else may do."""
    name = speaker.agent["name"]
    return Refused(
        f"refused by rule 'not-allowed': you are {name}; {why}", rule="not-allowed", caller=name, **numbers
    )


def agent(root: str, name: str) -> Agent:
    """The agent of a name. Raises NotFound with the nearest names, UsageError for the person."""
    if text.name_key(name) == registry.PERSON:
        raise UsageError("'person' is you, not an agent; `turnpost agents` lists the agents")
    return registry.find(root, name)


def subagent(root: str, name: str) -> Agent:
    """The subagent of a name, `AGENT/ID`; the id may be shortened while it is the only such. Raises NotFound."""
    word, _, sub = name.partition("/")
    owner = registry.find(root, word)["key"]
    known = subagents.every(root, owner)
    fits = [key for key in known if len(sub) >= _SHORT and key.partition("~")[2].startswith(sub)]
    exact = subagents.key_of(owner, sub)
    key = exact if exact in known else fits[0] if len(fits) == 1 else None
    found = subagents.load(root, key) if key else None
    if found is not None:
        return found
    running = [f"{word}/{key.partition('~')[2]}" for key in subagents.running(root, owner)]
    near = [f"{word}/{key.partition('~')[2]}" for key in fits] or running
    hint = f"; there are {', '.join(near)}" if near else f"; {word} runs none"
    raise NotFound(f"no subagent is named '{text.visible(name)}'{hint}", near=near)


def resolve(root: str, names: Sequence[str], speaker: Speaker) -> list[Agent]:
    """The recipients behind names, each once, in order. Raises NotFound for all unknown ones at once, Refused (`self`)."""
    found: dict[str, Agent] = {}
    known: set[str] = set()
    unknown: list[NotFound] = []
    for name in names:
        try:
            agent = recipient(root, name, speaker)
            found[agent["key"]] = agent
            known.add(name)
        except NotFound as error:
            _refuse_foreign(name)
            unknown.append(error)
    if len(unknown) == 1:
        raise unknown[0]
    if unknown:
        near = sorted({name for error in unknown for name in _near(error)})
        hint = f"; nearest: {', '.join(near)}" if near else ""
        wrong = ", ".join(f"'{text.visible(name)}'" for name in names if name not in known)
        raise NotFound(f"no agents are named {wrong}{hint}", near=near)
    if not found:
        raise UsageError("name at least one recipient")
    if speaker.agent["key"] in found:
        name = speaker.agent["name"]
        raise Refused(
            f"refused by rule 'self': you are {name}, and a message needs somebody else",
            rule="self",
            name=name,
        )
    return list(found.values())


def recipient(root: str, name: str, speaker: Speaker) -> Agent:
    """Whom a caller means by one name. Raises NotFound."""
    if "/" in name:
        return subagent(root, name)
    word = text.name_key(name)
    if word == registry.PERSON:
        return registry.load_agent(root, registry.PERSON) or registry.unsaved_person()
    if word == "parent":
        return _parent(root, speaker)
    return registry.find(root, name)


def name_of(root: str, key: str | None) -> str | None:
    """The present name behind a key; the key itself when its agent is gone."""
    if key is None:
        return None
    known = store.if_known(subagents.load if subagents.is_subagent(key) else registry.load_agent, root, key)
    return known["name"] if known else key


def standing(root: str, key: str) -> Standing:
    """How an agent stands now. Reads only; takes no lock, so a move that happens meanwhile can be missed."""
    box = Mailbox(root, key)
    state = store.load_state(root, key)
    now = clock.now()
    doing = rules.effective(state, now, state is not None and procs.alive(state["pid"], state["token"]))
    listening = bell.listening(root, key)
    deaf = (
        doing == "idle"
        and not listening
        and state is not None
        and rules.age(state["since"], now) > rules.DEAF_GRACE
    )
    return Standing(doing, listening, deaf, box.held(), state, box)


def _refuse_foreign(word: str) -> None:
    """Tell a session of Claude Code's own from a mistyped name: only `wake` reaches it. Raises Refused (`foreign`)."""
    if len(word) < 8 or not all(c in "0123456789abcdef-" for c in word):
        return
    from turnpost.harness import Claude

    try:
        sessions = Claude.find().listing()
    except HarnessError:
        return
    if any(s.session_id and word in (s.session_id, s.session_id[:8]) for s in sessions):
        raise Refused(
            f"refused by rule 'foreign': {word} is a session without turnpost's hooks, which nothing can be sent into; "
            f"`turnpost wake {word} BODY` forks it, and the copy gets the message",
            rule="foreign", session=word,
        )  # fmt: skip


def _parent(root: str, speaker: Speaker) -> Agent:
    key = speaker.agent["parent"]
    found = registry.load_agent(root, key) if key else None
    if found is None:
        raise NotFound(
            "you have no parent; write to 'person', or to an agent by its name", near=[registry.PERSON]
        )
    return found


def _near(error: NotFound) -> list[str]:
    return cast("list[str]", error.numbers.get("near", []))
