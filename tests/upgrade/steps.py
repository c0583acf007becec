"""Run as a program by some version of turnpost: what its commands and its coordinator would write into a home, step by step.

A session in these tests is no Claude Code, so no command can run inside one: who speaks is said here. Takes a list of
`[step, word…]` as JSON, prints what each answers as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from turnpost.actions import courier, holding, missions, receipts, sending
from turnpost.core import home, registry, reporting
from turnpost.core.sender import Speaker

try:
    from turnpost.core import giving_up
except ImportError:  # up to 0.2.0
    from turnpost.service import alerts as giving_up  # type: ignore[attr-defined, no-redef]

ROOT = home.home()


def voice(name: str) -> Speaker:
    return Speaker(registry.unsaved_person() if name == registry.PERSON else registry.find(ROOT, name))


def send(by: str, to: str, body: str, more: dict[str, Any]) -> str:
    return sending.send(ROOT, to.split(","), body, speaker=voice(by), **more).id


def reply(by: str, message_id: str, body: str) -> str:
    return sending.reply(ROOT, message_id, body, speaker=voice(by)).id


def cancel(by: str, message_id: str) -> None:
    receipts.cancel(ROOT, message_id, speaker=voice(by))


def give_up(name: str, message_id: str) -> None:
    giving_up.give_up(ROOT, registry.find(ROOT, name)["key"], [message_id], "its resume failed")


def adopt(child: str, parent: str) -> None:
    agent = registry.find(ROOT, child)
    registry.save_agent(ROOT, {**agent, "parent": registry.find(ROOT, parent)["key"]})
    reporting.switch_on(ROOT, agent["key"])


def mission(name: str, coordinator: str, members: str) -> None:
    missions.start(
        ROOT, name, "a goal", members=members.split(","), coordinator=coordinator, speaker=voice("person")
    )


def finish(name: str) -> None:
    missions.finish(ROOT, name, "it is done", speaker=voice("person"))


def hold(name: str) -> None:
    holding.hold(ROOT, name, speaker=voice("person"))


STEPS: dict[str, Callable[..., object]] = {
    step.__name__: step for step in (send, reply, cancel, give_up, adopt, mission, finish, hold)
}


def main() -> None:
    courier.ensure = lambda root: ()
    sys.stdout.write(json.dumps([STEPS[name](*words) for name, *words in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    main()
