"""What the real Claude Code takes at the end of a turn that goes on for a message, against a bare hook that blocks.

Both hooks run in the same wrapper, which notes when they have ended. The yardstick is a shell that prints a block with as
long a text. Reported are the time from the hook's end to the next request, and that from the model's last answer, which
has the hook itself in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bench.figures import Measured
from tests.bench.ground import TEXT, Ground, Script
from tests.bench.rounds import NotMeasured, alternate, settle
from tests.bench.shell import Shell
from turnpost.core import registry
from turnpost.install import settings_for_launch
from turnpost.lab.model import ModelRequest, Say
from turnpost.lab.progress import Progress

ROUNDS, QUICK = 30, 8
PRINTF = "printf in a hook"
_WRAPPER = '"$@"; date +%s%N >> "$0"'
_PRINTF = '[ -s "$0" ] || exit 0; read -r text < "$0"; : > "$0"; printf \'{"decision":"block","reason":"%s"}\' "$text"'


def measure(quick: bool, progress: Progress) -> list[Measured]:
    """Both in turns."""
    with Ground(progress) as ground:
        ours, bare = Ours(ground), Bare(ground)
        parts: dict[str, Callable[[], float]] = {"stop": ours.measure, PRINTF: bare.measure}
        found = alternate("stop", QUICK if quick else ROUNDS, parts, progress)
    return [
        Measured("after a Stop hook", "ms", found["stop"], PRINTF, found[PRINTF]),
        Measured("after the last answer", "ms", tuple(ours.whole), PRINTF, tuple(bare.whole)),
    ]


class Turn:
    """A turn of a session that is kept open at its end by a hook whose end is noted."""

    def __init__(self, ground: Ground, name: str) -> None:
        self._ground = ground
        self._name = name
        self._stamp = ground.world.root / f"{name}.stamp"
        self.whole: list[float] = []
        """Milliseconds of each round from the model's last answer to the next request."""

    def wrapped(self, command: list[str]) -> dict[str, Any]:
        """A hook that runs a command and notes when it ended."""
        return {"type": "command", "command": "/bin/sh", "args": ["-c", _WRAPPER, str(self._stamp), *command]}

    def run(
        self, wake: Callable[[], object], meanwhile: Callable[[], None], carried: Callable[[], ModelRequest]
    ) -> float:
        """Begin a turn, do something while the model thinks, let it end; milliseconds from the hook's end to the request."""
        settle()

        def before() -> None:
            meanwhile()
            self._stamp.write_text("")

        last = Script(Say("done"), before)
        self._ground.model.script(self._name, [last])
        wake()
        left = last.left()
        request = carried()
        self.whole.append((request.monotonic - left) * 1000)
        # The first: another turn's end may have followed by now.
        return request.wall * 1000 - int(self._stamp.read_text().split()[0]) / 1e6


class Ours(Turn):
    """An agent with turnpost's hooks, all as they are installed but for the wrapper."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground, "omega")
        hooks: dict[str, Any] = settings_for_launch()["hooks"]
        stop = hooks["Stop"][0]["hooks"][0]
        hooks["Stop"][0]["hooks"][0] = self.wrapped([stop["command"], *stop["args"]])
        ground.bare("omega", hooks)
        key = registry.key_of_name(ground.root, "omega")
        if key is None:
            raise NotMeasured("omega was started and is not known")
        self._key = key
        self._sent = ""

    def measure(self) -> float:
        """A message at the end of a turn."""
        self._ground.until_idle(self._key)
        return self.run(
            lambda: self._ground.send(self._key), self._send, lambda: self._ground.read(self._key, self._sent)
        )

    def _send(self) -> None:
        self._sent = self._ground.send(self._key)


class Bare(Turn):
    """A session without turnpost."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground, "printf")
        self._text = ground.world.root / "printf.text"
        # Armed by prompts: a turn that is kept going would have a second waiter from its second end.
        self._shell = Shell(
            ground, "printf", "UserPromptSubmit", [self.wrapped(["/bin/sh", "-c", _PRINTF, str(self._text)])]
        )
        self._mark = ""

    def measure(self) -> float:
        """A text at the end of a turn."""
        self._mark = self._ground.mark()
        return self.run(self._shell.wake, self._put, lambda: self._ground.carried(self._mark))

    def _put(self) -> None:
        self._text.write_text(f"{self._mark} {TEXT}\n")
