"""Refusals go into the audit log too: the one thing that a refused command leaves behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from turnpost.actions import people
from turnpost.core import audit, registry, sender, text
from turnpost.core.errors import NotFound, Refused, TurnpostError
from turnpost.core.sender import Speaker

_T = TypeVar("_T", bound=str | Sequence[str])
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Action = Callable[Concatenate[str, _T, _P], _R]
_ROOM = 200


@contextmanager
def refusing(
    root: str, what: str, about: str | Sequence[str], speaker: Speaker | None = None
) -> Iterator[None]:
    """Log what is refused within; `what` is what was tried, `about` with whom."""
    try:
        yield
    except Refused as error:
        _log(root, what, about, error, speaker)
        raise


def refusals(what: str) -> Callable[[_Action[_T, _P, _R]], _Action[_T, _P, _R]]:
    """Log what an action refuses; `what` is what was tried. The action is told a home and whom or what it is about."""

    def wrap(action: _Action[_T, _P, _R]) -> _Action[_T, _P, _R]:
        @functools.wraps(action)
        def audited(root: str, about: _T, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            given = kwargs.get("speaker")
            with refusing(root, what, about, given if isinstance(given, Speaker) else None):
                return action(root, about, *args, **kwargs)

        return audited

    return wrap


def _log(root: str, what: str, about: str | Sequence[str], error: Refused, given: Speaker | None) -> None:
    if error.logged:  # by an action that this one is made of
        return
    error.logged = True
    try:
        voice = given or sender.who(root)
        names = [about] if isinstance(about, str) else list(about)
        whom = {
            "from": f"foreign {voice.foreign_pid}" if voice.foreign_pid else voice.agent["name"], "by": voice.agent["key"],
            "to": text.visible(", ".join(names))[:_ROOM] or None, **_target(root, voice, names),
        }  # fmt: skip
    except (TurnpostError, OSError):
        return
    numbers = {name: value for name, value in error.numbers.items() if isinstance(value, (str, int, float))}
    audit.write(root, "refusal", tried=what, rule=error.rule, numbers=numbers, **whom)


def _target(root: str, voice: Speaker, names: list[str]) -> dict[str, object]:
    """Which agent it was about, and which way it would have gone, where that can be told: every way, of several."""
    keys: list[str] = []
    for name in names:
        try:
            keys.append(people.recipient(root, name, voice)["key"])
        except NotFound:
            continue
    about: dict[str, object] = {"agent": keys[0]} if len(keys) == len(names) == 1 else {}
    if keys and not voice.foreign_pid:
        mine = registry.party(voice.agent)
        about["direction"] = ", ".join(dict.fromkeys(audit.direction(root, mine, key) for key in keys))
    return about
