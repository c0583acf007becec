"""Missions: a common task for agents that may write to each other. What is over stays over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from turnpost import policy, redaction
from turnpost.actions import courier, people, permits
from turnpost.actions.audited import refusals
from turnpost.actions.results import Missions, MissionView, Seat
from turnpost.core import audit, bell, clock, files, missions, notice, registry, store, text
from turnpost.core.errors import Refused, UsageError
from turnpost.core.mailbox import Mailbox
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Mission
    from turnpost.redaction import Secrets

_LINE_LIMIT = 2_000


@refusals("mission start")
def start(
    root: str,
    name: str,
    goal: str | None = None,
    *,
    coordinator: str | None = None,
    members: Sequence[str] = (),
    speaker: Speaker | None = None,
) -> MissionView:
    """Start a mission. An agent that starts one coordinates it and takes in its own children only.

    Raises UsageError, NotFound and Refused (`taken`, `not-allowed`, `mission-over`, `read-only`); then nothing was written.
    """
    secrets = policy.load(root).secrets
    redaction.refuse(
        "mission's name", name, secrets, "name"
    )  # first: a refusal by who speaks would log the name
    voice = permits.acting(root, speaker)
    if fault := text.name_fault(name):
        raise UsageError(f"'{text.visible(name)}' cannot name a mission: {fault}", rule="name")
    name = text.name_form(name)
    leader = _leader(root, coordinator, voice)
    purpose, redacted = _line("goal", goal, secrets)
    mission: Mission = {
        "v": 1, "name": name, "state": "running", "coordinator": leader, "goal": purpose,
        "started": clock.now(), "ended": None, "reason": None,
    }  # fmt: skip
    if (before := missions.load(root, name)) is not None:
        raise _taken(before)
    joining = _joining(root, mission, members, voice)
    registry.prepare(root)
    with files.Lock(root + "/registry.lock", 5.0):
        if not missions.create(root, mission):
            raise _taken(mission)
        _seat(root, mission, joining)
    _log(root, mission, voice, "started")
    return view(root, mission)._replace(redacted=redacted)


@refusals("mission add")
def add(root: str, name: str, members: Sequence[str], *, speaker: Speaker | None = None) -> MissionView:
    """Take agents into a running mission; one that is in it already stays. Raises as `start` does."""
    voice = permits.acting(root, speaker)
    mission = _running(missions.find(root, name))
    _led_by(mission, voice, "add to it")
    if not members:
        raise UsageError("name at least one agent")
    _joining(root, mission, members, voice)
    with files.Lock(root + "/registry.lock", 5.0):
        # A second look at both: a mission ended meanwhile takes in nobody.
        mission = _running(missions.find(root, name))
        _seat(root, mission, _joining(root, mission, members, voice))
    _log(root, mission, voice, "joined")
    return view(root, mission)


@refusals("mission finish")
def finish(root: str, name: str, reason: str | None = None, *, speaker: Speaker | None = None) -> MissionView:
    """End a mission that is done. Its agents are told nothing, are never resumed again, and can be written to no more."""
    return _end(root, name, "finished", reason, speaker)


@refusals("mission abort")
def abort(root: str, name: str, reason: str | None = None, *, speaker: Speaker | None = None) -> MissionView:
    """Break a mission off. Its live agents are told to stop working on it; to the others nothing is sent."""
    return _end(root, name, "aborted", reason, speaker)


def show(root: str, name: str) -> MissionView:
    """A mission and who is in it. Raises NotFound."""
    return view(root, missions.find(root, name))


def everyone(root: str) -> Missions:
    """All missions there were, by name."""
    return Missions(tuple(view(root, mission) for mission in missions.everyone(root)))


def joinable(root: str, name: str, voice: Speaker) -> str:
    """The name of a running mission that an agent launched by the caller may join. Raises NotFound and Refused."""
    mission = _running(missions.find(root, name))
    if not voice.is_person and voice.agent["mission"] != mission["name"]:
        _led_by(mission, voice, "launch into it, or one of its members")
    return mission["name"]


def view(root: str, mission: Mission, told: Sequence[str] = ()) -> MissionView:
    """A mission as it is shown."""
    seats = [
        Seat(agent["name"], stands.doing, stands.held, stands.waiting)
        for agent in missions.members(root, mission)
        if (stands := store.if_known(people.standing, root, agent["key"]))
    ]
    return MissionView(
        mission["name"], mission["state"], mission["goal"], people.name_of(root, mission["coordinator"]), tuple(seats),
        clock.rfc3339(mission["started"]), clock.rfc3339(mission["ended"]), mission["reason"], tuple(told),
    )  # fmt: skip


def _end(
    root: str, name: str, state: Literal["finished", "aborted"], reason: str | None, speaker: Speaker | None
) -> MissionView:
    voice = permits.acting(root, speaker)
    _led_by(_running(missions.find(root, name)), voice, f"call it {state}")
    why, redacted = _line("reason", reason, policy.load(root).secrets)
    with files.Lock(root + "/registry.lock", 5.0):
        mission = _running(missions.find(root, name))
        mission["state"], mission["ended"], mission["reason"] = state, clock.now(), why
        # First, so that nobody is resumed for the notice or for what still waits.
        missions.save(root, mission)
    _log(root, mission, voice, state)
    members = missions.members(root, mission)
    live = [agent for agent in members if state == "aborted" and _lives(root, agent)]
    live = [agent for agent in live if agent["key"] != voice.agent["key"]]
    if live:
        notice.send(root, live, _notice(mission, voice), urgent=True)
    waiting = [agent["key"] for agent in members if Mailbox(root, agent["key"]).waiting()]
    for key in waiting:
        bell.announce(
            root, key
        )  # mail for the stopped ones is given up by the coordinator, and its senders are told
    warnings = courier.ensure(root) if waiting else ()
    return view(root, mission, [agent["name"] for agent in live])._replace(
        warnings=warnings, redacted=redacted
    )


def _log(root: str, mission: Mission, voice: Speaker, what: str) -> None:
    actor = {"from": voice.agent["name"], "by": voice.agent["key"]}
    audit.write(root, "mission", mission=mission["name"], what=what, **actor)


def _lives(root: str, agent: Agent) -> bool:
    stands = people.standing(root, agent["key"])
    return stands.state is not None and stands.doing not in ("stopped", "lost")


def _notice(mission: Mission, voice: Speaker) -> str:
    who = "the person" if voice.is_person else voice.agent["name"]
    why = f": {mission['reason']}" if mission["reason"] else ""
    return (
        f"The mission {mission['name']} was aborted by {who}{why}. Stop working on it, start nothing new for it, and end "
        "your turn with a short account of where you stand. No further message will reach you."
    )


def _leader(root: str, coordinator: str | None, voice: Speaker) -> str | None:
    if voice.is_person:
        return people.agent(root, coordinator)["key"] if coordinator else None
    if coordinator and people.agent(root, coordinator)["key"] != voice.agent["key"]:
        raise people.not_allowed(voice, "an agent starts missions that it coordinates itself")
    return voice.agent["key"]


def _led_by(mission: Mission, voice: Speaker, what: str) -> None:
    if not voice.is_person and mission["coordinator"] != voice.agent["key"]:
        raise people.not_allowed(
            voice, f"only the person and the coordinator of the mission {mission['name']} may {what}",
            mission=mission["name"],
        )  # fmt: skip


def _joining(root: str, mission: Mission, names: Sequence[str], voice: Speaker) -> list[Agent]:
    """The agents of these names, all of whom may join. Raises NotFound and Refused before the first one has."""
    found = {agent["key"]: agent for agent in (people.agent(root, name) for name in names)}
    for agent in found.values():
        if not voice.is_person and voice.agent["key"] not in (agent["key"], agent["parent"]):
            raise people.not_allowed(
                voice, f"{agent['name']} is no child of yours, and an agent takes only itself and its own children into a mission",
                recipient=agent["name"], mission=mission["name"],
            )  # fmt: skip
        if agent["mission"] and agent["mission"] != mission["name"]:
            _refuse_busy(root, agent)
    return list(found.values())


def _refuse_busy(root: str, agent: Agent) -> None:
    permits.reachable(root, [agent])
    current = missions.load(root, agent["mission"])
    if current is not None:
        raise Refused(
            f"{agent['name']} is in the mission {current['name']} already, and an agent is in one at a time",
            rule="taken", recipient=agent["name"], mission=current["name"],
        )  # fmt: skip


def _seat(root: str, mission: Mission, agents: Sequence[Agent]) -> None:
    for agent in agents:
        fresh = registry.load_agent(root, agent["key"]) or agent
        fresh["mission"] = mission["name"]
        registry.save_agent(root, fresh)


def _running(mission: Mission) -> Mission:
    if mission["state"] != "running":
        raise Refused(
            f"refused by rule 'mission-over': the mission {mission['name']} is {mission['state']} since "
            f"{clock.rfc3339(mission['ended'])}, which nothing lifts; start another one under a new name",
            rule="mission-over", mission=mission["name"], state=mission["state"],
        )  # fmt: skip
    return mission


def _taken(mission: Mission) -> Refused:
    return Refused(
        f"there is a mission {mission['name']} already, and it is {mission['state']}; choose another name",
        rule="taken", mission=mission["name"], state=mission["state"],
    )  # fmt: skip


def _line(what: str, words: str | None, secrets: Secrets) -> tuple[str | None, int]:
    """What is written of a text, without its secrets, and how many there were."""
    if words is None:
        return None, 0
    fixed, redacted = redaction.redact(text.clean(words)[0].strip(), secrets)
    if not fixed or len(fixed) > _LINE_LIMIT:
        raise UsageError(
            f"a {what} has 1 to {_LINE_LIMIT} characters, this one {len(fixed)}", rule=f"bad-{what}"
        )
    return fixed, redacted
