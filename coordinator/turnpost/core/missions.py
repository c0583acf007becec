"""Missions on disk: one small record each. Who is in one is said by the agents themselves, so it cannot be said twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.core import files, home, registry, store, text
from turnpost.core.errors import NotFound

if TYPE_CHECKING:
    from turnpost.core.records import Agent, Mission

MISSION = {
    "name": str, "state": frozenset({"running", "finished", "aborted"}), "coordinator": (str, None),
    "goal": (str, None), "started": float, "ended": (float, None), "reason": (str, None),
}  # fmt: skip


def load(root: str, name: str | None) -> Mission | None:
    """A mission by its name; None when there is none or its record is damaged. Raises Newer."""
    if not name or text.name_fault(name):
        return None
    found = store.load(home.mission(root, text.name_key(name)), MISSION)
    whole = found is not None and text.name_key(found["name"]) == text.name_key(name)
    return found if whole else None  # type: ignore[return-value]


def find(root: str, name: str) -> Mission:
    """A mission by its name. Raises NotFound with the nearest names there are."""
    if (found := load(root, name)) is not None:
        return found
    near = text.nearest(name, [mission["name"] for mission in everyone(root)])
    hint = f"; nearest: {', '.join(near)}" if near else "; `turnpost mission start` starts one"
    raise NotFound(f"no mission is named '{text.visible(name)}'{hint}", near=near)


def everyone(root: str) -> list[Mission]:
    """All missions by name."""
    names = (name.removesuffix(".json") for name in files.names(home.missions(root)))
    return [mission for name in names if (mission := store.if_known(load, root, name)) is not None]


def save(root: str, mission: Mission) -> None:
    """Write a mission, durably."""
    files.write(home.mission(root, text.name_key(mission["name"])), store.pack(mission))


def create(root: str, mission: Mission) -> bool:
    """Write a new mission; False when the name was ever used: what is over stays over."""
    files.mkdir(home.missions(root))
    return files.create(home.mission(root, text.name_key(mission["name"])), store.pack(mission))


def members(root: str, mission: Mission) -> list[Agent]:
    """Its agents, by name."""
    return [agent for agent in registry.everyone(root) if agent["mission"] == mission["name"]]


def over(root: str, agent: Agent) -> Mission | None:
    """The agent's mission if that is over: then nothing resumes the agent, and nothing lifts that."""
    mission = load(root, agent["mission"])
    return mission if mission is not None and mission["state"] != "running" else None


def of(root: str, *agents: Agent) -> dict[str, Mission]:
    """The missions these agents are in, by name."""
    found = (load(root, name) for name in {agent["mission"] for agent in agents})
    return {mission["name"]: mission for mission in found if mission is not None}
