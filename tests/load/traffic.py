"""Messages under load: the sender processes, what they know of what they sent, and the judge of what was read.

The judge takes nothing from turnpost: it compares the senders' journals with what stands in the conversations.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.load.sender import Planned, plan

_MESSAGE = re.compile(
    r'^<message about="(msg-[0-9A-Z]{26})"[^>\n]*>\n(.*?)\n</message>$', re.MULTILINE | re.DOTALL
)
_BODY = re.compile(r"sender (\d+), message (\d+)")
_REPOSITORY = Path(__file__).parents[2]


class Read(NamedTuple):
    """One message as it stands in a conversation."""

    id: str
    body: str


def messages(text: str) -> list[Read]:
    """The messages in a text, in their order."""
    return [Read(*found) for found in _MESSAGE.findall(text)]


class Accepted(NamedTuple):
    """When a send had returned, and with which id."""

    at: float
    id: str


class Traffic:
    """Sender processes, which pause before each message for up to twice `pause` seconds, and their journals. A sender that is killed is followed by one that goes on with its next message."""

    def __init__(
        self, root: str, folder: Path, env: Mapping[str, str], names: Sequence[str], *, seed: int, senders: int, each: int, pause: float = 0.0
    ) -> None:  # fmt: skip
        self.names = names
        self._seed = str(seed)
        self._senders = [_Sender(number, folder / f"sender-{number}", each) for number in range(senders)]
        self._root, self._env, self._pause = root, dict(env), str(pause)

    def tend(self) -> bool:
        """Start what must be started; whether there is still something to send."""
        living = [self._tend(sender) for sender in self._senders]
        return any(living)

    @property
    def accepted(self) -> int:
        """How many messages were accepted until now."""
        return sum(len(sender.look().sent) for sender in self._senders)

    def kill(self, chance: random.Random) -> bool:
        """kill -9 of a sender; False when none runs."""
        living = [one.process for one in self._senders if one.process and one.process.poll() is None]
        if not living:
            return False
        victim = chance.choice(living)
        victim.kill()
        return victim.wait() == -9

    def end(self) -> None:
        """End what still runs."""
        for sender in self._senders:
            if sender.process:
                sender.process.kill()
                sender.process.wait()

    def planned(self, body: str) -> Planned:
        """The message that has this body."""
        found = _BODY.fullmatch(body)
        assert found, body
        return plan(self._seed, int(found[1]), int(found[2]), self.names)

    def judge(self, read: Mapping[str, Sequence[Read]]) -> Verdict:
        """What is wrong with what the agents read, by name in the order of their conversations."""
        verdict = Verdict()
        counts = {name: Counter(one.body for one in found) for name, found in read.items()}
        ids = {name: {one.body: one.id for one in found} for name, found in read.items()}
        begun: dict[str, set[str]] = {name: set() for name in read}
        for sender in self._senders:
            for number in sender.look().begun:
                planned = plan(self._seed, sender.number, number, self.names)
                accepted = sender.sent.get(number)
                found = [counts[name][planned.body] for name in planned.to]
                for name, count in zip(planned.to, found, strict=True):
                    begun[name].add(planned.body)
                    if count > 1:
                        verdict.twice.append(f"{planned.body} to {name}: {count} times")
                    if count and accepted and accepted.id != ids[name][planned.body]:
                        verdict.twice.append(
                            f"{planned.body} to {name}: sent as {accepted.id}, and once more"
                        )
                    if not count and (accepted or any(found)):
                        verdict.lost.append(f"{planned.body} to {name}: {accepted}")
        for name, found_there in read.items():
            verdict.twice += [
                f"{one} at {name}, not sent to it" for one in found_there if one.body not in begun[name]
            ]
            verdict.disordered += self._disordered(name, found_there)
        return verdict

    def _disordered(self, name: str, found: Sequence[Read]) -> Iterator[str]:
        """Messages that stand behind one whose send began only when they had been accepted, by whomever it was sent.

        An urgent one may pass ordinary ones. A send that was killed is accepted when it is finished, maybe much later: its
        sender was promised nothing.
        """
        latest, passed_by = 0.0, ""
        for one in found:
            planned = self.planned(one.body)
            if planned.urgent:
                continue
            sender = self._senders[planned.sender]
            accepted = sender.sent.get(planned.number)
            if accepted and accepted.at < latest:
                yield f"{one.body} to {name}, behind {passed_by}"
            begun = sender.begun.get(planned.number, 0.0)
            if begun > latest:
                latest, passed_by = begun, one.body

    def _tend(self, sender: _Sender) -> bool:
        code = sender.process.poll() if sender.process else -9
        if code is None:
            return True
        assert code in (0, -9), f"sender {sender.number} ended with code {code}"
        first = max(sender.look().begun, default=0) + 1
        if first > sender.each:
            return False
        words = [self._root, str(sender.journal), self._seed, self._pause]
        words += map(str, (sender.number, first, sender.each))
        sender.process = subprocess.Popen(
            [sys.executable, "-m", "tests.load.sender", *words, *self.names], cwd=_REPOSITORY, env=self._env
        )
        return True


@dataclass
class Verdict:
    """What must be empty."""

    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)


@dataclass
class _Sender:
    number: int
    journal: Path
    each: int
    process: subprocess.Popen[bytes] | None = None
    begun: dict[int, float] = field(default_factory=dict)
    sent: dict[int, Accepted] = field(default_factory=dict)
    _offset: int = 0

    def look(self) -> _Sender:
        """Itself, after a look at what its journal has got."""
        if self.journal.exists():
            with self.journal.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._offset += len(whole)
            for line in whole.decode().splitlines():
                step, number, at, *identifier = line.split()
                if step == "begin":
                    self.begun[int(number)] = float(at)
                else:
                    self.sent[int(number)] = Accepted(float(at), *identifier)
        return self
