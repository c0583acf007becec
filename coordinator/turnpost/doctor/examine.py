"""The whole examination, from the platform to the last stuck message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from turnpost.core import clock
from turnpost.core.errors import TurnpostError
from turnpost.doctor import claude_code, firing, hooks, mail, service, spool, tools
from turnpost.doctor.results import Check, Diagnosis, fail


def examine(root: str, project: Path, *, deep: bool = False) -> Diagnosis:
    """Look at everything; what cannot be looked at is a finding, too."""
    checks: list[Check] = []
    for part in _parts(root, project, deep):
        checks += _safely(part)
    return Diagnosis(root, str(project), tuple(checks))


def _parts(root: str, project: Path, deep: bool) -> Iterator[Callable[[], list[Check]]]:
    """The parts in order. A generator: a later part uses what an earlier one found."""
    yield lambda: [claude_code.check_platform(), hooks.default_home(root)]
    found = claude_code.look()
    yield lambda: [claude_code.check_claude(found)]
    facts = hooks.look(project)
    yield lambda: hooks.check_all(facts, root)
    yield lambda: hooks.check_known(found.sessions or (), project, root, bool(facts.hooks))
    yield lambda: [check for one in hooks.to_fire(facts) for check in firing.fire(one)]
    yield lambda: tools.check_all(project, bool(facts.hooks))
    whole = _safely(lambda: spool.check_all(root))
    yield lambda: whole
    if not any(check.name == "spool" and check.status == "fail" for check in whole):
        yield lambda: mail.check_all(root)
        yield lambda: _service(root)
    binary = found.binary
    if deep and binary is not None:
        from turnpost.doctor import deep as trial

        yield lambda: trial.try_out(Path(binary))


def _service(root: str) -> list[Check]:
    now = clock.now()
    facts = service.look(root, mail.needs_coordinator(mail.look(root)))
    return [*service.check_coordinator(facts, now), *service.check_log(service.troubles(root), now)]


def _safely(work: Callable[[], list[Check]]) -> list[Check]:
    try:
        return work()
    except (TurnpostError, OSError) as error:
        return [fail("doctor", f"could not look further: {error}", "mend that first")]
