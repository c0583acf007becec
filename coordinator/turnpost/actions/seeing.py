"""Whose look it is, and so what can be seen: the person sees all, an agent its own messages and its missions'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnpost.actions import people
from turnpost.core import missions, threads
from turnpost.core.sender import Speaker

if TYPE_CHECKING:
    from turnpost.core.records import Message


class Eyes:
    """What a caller may look at, as missions are now."""

    def __init__(self, root: str, speaker: Speaker | None) -> None:
        """Raises Refused (`foreign`)."""
        voice = people.caller(root, speaker)
        self.key = voice.agent["key"]
        self.is_person = voice.is_person
        # From its start on: what others said before in a thread of that name is not the mission's.
        self._missions: dict[str, float] = {}
        if not self.is_person:
            own = voice.agent["mission"]
            for mission in missions.everyone(root):
                if mission["coordinator"] == self.key or mission["name"] == own:
                    self._missions[threads.of_name(mission["name"])] = mission["started"]

    def see(self, message: Message) -> bool:
        """Whether a message is theirs to look at. What a subagent sent or got is its agent's too."""
        if self.is_person or any(
            self.key in (party["key"], party["key"].partition("~")[0]) for party in threads.concerned(message)
        ):
            return True
        started = self._missions.get(threads.identity(message))
        return started is not None and message["sent"] >= started
