"""Each released version beside the present one: what it wrote opens, and its hooks go on while the rest is newer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.actions.fakes import PERSON
from tests.hooks.driver import FakeSession, python
from tests.upgrade.kit import PRESENT, RELEASED, Installation, holds, unpacked
from turnpost.actions import agents, courier, holding, installing, receipts, sending
from turnpost.core import clock, home, mailbox, registry
from turnpost.core.mailbox import Mailbox
from turnpost.doctor import mail, spool
from turnpost.install.merge import entries, hooks_block
from turnpost.install.survey import installed_hooks
from turnpost.service.reports import send_all

pytestmark = [pytest.mark.process, pytest.mark.slow]

SETTINGS = (
    b'{\n    "model": "opus",   "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}'
)
CLAUDE = b'{"projects": {}, "numStartups": 7}'
NAMES = ("alpha", "beta", "gamma", "delta", "kid")


class Scene(NamedTuple):
    """A project with the hooks of an old version installed, and a session of that version for each name."""

    old: Installation
    new: Installation
    project: Path
    sessions: dict[str, FakeSession]

    @property
    def root(self) -> str:
        return self.old.root

    @property
    def settings(self) -> Path:
        return self.project / ".claude" / "settings.json"


def test_there_is_a_released_version_to_upgrade_from() -> None:
    assert RELEASED


@pytest.fixture(params=RELEASED, ids=lambda wheel: str(wheel.name.split("-")[1]))
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    user, project, root = tmp_path / "user", tmp_path / "project", str(tmp_path / "state")
    (project / ".claude").mkdir(parents=True)
    user.mkdir()
    (project / ".claude" / "settings.json").write_bytes(SETTINGS)
    (user / ".claude.json").write_bytes(CLAUDE)
    old = Installation(unpacked(request.param, tmp_path / "old"), root, user)
    new = Installation(PRESENT, root, user)
    assert (old.where(), new.where()) == (old.packages, PRESENT)
    for name, value in (("HOME", str(user)), ("TURNPOST_HOME", root), ("TURNPOST_CLAUDE", "/no/claude")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr(courier, "ensure", lambda _root: ())
    old.run("install", "--project", str(project))
    sessions: dict[str, FakeSession] = {}
    try:
        for name in NAMES:
            one = sessions[name] = FakeSession(
                root, tmp_path / "sessions" / name, settings=project / ".claude" / "settings.json"
            )
            assert all(str(old.packages) in " ".join(entry["args"]) for entry in one.entries("SessionStart"))
            assert one.hook("SessionStart", source="startup", session_title=name, waiter=False).briefs
        yield Scene(old, new, project, sessions)
    finally:
        for one in sessions.values():
            one.kill()
            one.end_waiters()


class Written(NamedTuple):
    """The messages that an old version left, by what became of them."""

    read: str
    claimed: str
    cancelled: str
    undeliverable: str
    waiting: list[str]
    held: str
    subagent: str
    question: str
    answered: str
    all: list[str]


def write(scene: Scene) -> Written:
    """Have the old version fill its home with everything there is."""
    old, alpha, beta, kid = scene.old, scene.sessions["alpha"], scene.sessions["beta"], scene.sessions["kid"]
    Path(scene.root, "config.toml").write_text("mailbox_size = 33\n")
    Path(scene.root, "policy.toml").write_text('[[rule]]\nfrom = "gamma"\nto = "alpha"\nverdict = "allow"\n')
    for name in ("config.toml", "policy.toml"):
        Path(scene.root, name).chmod(0o600)
    say: dict[str, Any] = {}
    old.do(
        ["adopt", "kid", "alpha"],
        ["mission", "team", "alpha", "alpha,beta"],
        ["mission", "done", "gamma", "delta"],
    )
    read, claimed = old.do(
        ["send", "person", "alpha", "to be read\nα <message> & \u2028", {"refs": ["src/a.py:3"]}],
        ["send", "person", "beta", "to be claimed", say],
    )
    beta.answers = False
    for session in (alpha, beta):
        session.prompt(waiter=False)
        assert session.stop(waiter=False).silent
    alpha.prompt(waiter=False)
    alpha.hook("SubagentStart", agent_id="a1b2c3d4", agent_type="Explore", waiter=False)
    cancelled, lost, held, question, answered = old.do(
        ["send", "person", "gamma", "to be cancelled", say],
        ["send", "person", "gamma", "to be given up", say],
        ["send", "person", "delta", "held", say],
        ["send", "alpha", "person", "Which?", {"kind": "question", "options": ["this", "that"]}],
        ["send", "alpha", "person", "Really?", {"kind": "question", "thread": "plan"}],
    )
    *_, reply, quiet = old.do(
        ["cancel", "person", cancelled], ["give_up", "gamma", lost], ["finish", "done"], ["hold", "delta"],
        ["reply", "person", answered, "Yes."], ["send", "alpha", "beta", "for the mission", {"kind": "contract"}],
    )  # fmt: skip
    # The words of a child's turn, kept until a coordinator sends them.
    kid.prompt(waiter=False)
    kid.stop(waiter=False, last_assistant_message="the words of the child")
    waiting = [reply, *old.do(*(["send", "person", "alpha", f"waits {n}", say] for n in range(3)))]
    waiting += old.do(["send", "gamma", "alpha", "by the policy", say])
    (inside,) = old.do(["send", "person", "alpha/a1b2c3d4", "to the subagent", say])
    every = [read, claimed, cancelled, lost, held, question, answered, quiet, inside, *waiting]
    return Written(read, claimed, cancelled, lost, waiting, held, inside, question, answered, every)


def states(scene: Scene, message_id: str) -> list[str]:
    return [one.state for one in receipts.show(scene.root, message_id, speaker=PERSON).receipts.values()]


def test_a_spool_of_an_old_version_says_the_same_to_the_present_one(scene: Scene) -> None:
    written = write(scene)
    asked = [
        *(["show", message_id] for message_id in written.all),
        ["agents"], ["threads"], ["thread", "plan"], ["thread", "gamma"], ["thread", "inbox"], ["thread", "team"],
        ["search", "waits"], ["search", "--state", "undeliverable"], ["mission", "show", "team"],
        ["mission", "show", "done"], ["policy", "check", "gamma", "alpha"], ["inbox", "--keep"], ["log"],
    ]  # fmt: skip
    for words, old, new in zip(asked, scene.old.run_all(asked), scene.new.run_all(asked), strict=True):
        assert holds(new, old), (words, old, new)
    assert states(scene, written.read) == ["read"]
    assert states(scene, written.claimed) == ["delivered"]
    assert states(scene, written.cancelled) == ["cancelled"]
    assert states(scene, written.undeliverable) == ["undeliverable"]
    assert [states(scene, one) for one in written.waiting] == [["queued"]] * len(written.waiting)
    fine = {check.name: check.status for check in spool.check_all(scene.root)}
    assert set(fine.values()) == {"ok"}, fine
    assert "fail" not in {check.status for check in mail.check_all(scene.root)}
    stands = {one.name: one for one in agents.agents(scene.root).agents}
    assert set(stands) == set(NAMES)
    assert (stands["delta"].held, stands["alpha"].mission, stands["kid"].parent) == (True, "team", "alpha")


def upgrade(scene: Scene) -> None:
    """Install the present version over the old one; sessions that start from now on have its hooks."""
    installing.install(scene.root, project=str(scene.project), speaker=PERSON)
    for session in scene.sessions.values():
        session.reload()


def test_an_install_over_an_old_one_leaves_one_set_of_hooks_and_uninstall_the_bytes_of_before(
    scene: Scene,
) -> None:
    upgrade(scene)
    settings = json.loads(scene.settings.read_bytes())
    wanted = [(event, entry) for event, entry in entries({"hooks": hooks_block(python())})]
    assert sorted(map(repr, entries(settings))) == sorted(map(repr, wanted))
    assert settings["hooks"]["Stop"][0]["hooks"] == [{"type": "command", "command": "true"}]
    assert len(installed_hooks(scene.project)) == len(wanted)
    servers = json.loads((scene.old.user / ".claude.json").read_bytes())["projects"][str(scene.project)][
        "mcpServers"
    ]
    assert list(servers) == ["turnpost"]
    again = installing.install(scene.root, project=str(scene.project), speaker=PERSON)
    assert not again.changed
    installing.uninstall(scene.root, project=str(scene.project), speaker=PERSON)
    assert scene.settings.read_bytes() == SETTINGS
    assert (scene.old.user / ".claude.json").read_bytes() == CLAUDE


def test_what_an_old_version_left_waiting_comes_in_order_by_the_present_hooks(scene: Scene) -> None:
    written = write(scene)
    upgrade(scene)
    alpha, beta, delta = (scene.sessions[name] for name in ("alpha", "beta", "delta"))
    before = len(alpha.read)
    inside = alpha.hook("PostToolBatch", agent_id="a1b2c3d4", waiter=False)
    assert f'about="{written.subagent}"' in inside.context
    send_all(scene.root, scene.sessions["kid"].agent)
    assert alpha.stop(waiter=False).goes_on
    report = alpha.read[-1]
    assert alpha.read[before:] == [*written.waiting, report]
    assert "the words of the child" in alpha.requests[-1]
    assert alpha.stop(waiter=False).silent
    assert [states(scene, one) for one in (*written.waiting, report)] == [["read"]] * (
        len(written.waiting) + 1
    )
    assert delta.stop(waiter=False).silent
    # What had entered before the upgrade is not brought again, and counts as read once it is answered.
    beta.answers = True
    came = list(beta.read)
    beta.turn()
    assert beta.read.count(written.claimed) == came.count(written.claimed) == 1
    assert states(scene, written.claimed) == ["read"]


def test_mail_behind_a_hold_of_an_old_version_comes_after_its_release(scene: Scene) -> None:
    (held,), _ = scene.old.do(["send", "person", "gamma", "held", {}]), scene.old.do(["hold", "gamma"])
    upgrade(scene)
    gamma = scene.sessions["gamma"]
    assert gamma.stop(waiter=False).silent
    holding.release(scene.root, "gamma", speaker=PERSON)
    assert gamma.stop(waiter=False).goes_on
    assert gamma.read == [held]


@pytest.fixture
def coordinator(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """The present coordinator, as a process."""
    words = [sys.executable, "-m", "turnpost", "coordinator", "run"]
    running = subprocess.Popen(words, env=scene.new.environment())
    try:
        wait_for(lambda: os.path.exists(scene.root + "/coordinator.json"))
        yield running
    finally:
        running.terminate()
        running.wait(20)


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = clock.monotonic() + seconds
    while not what():
        assert clock.monotonic() < end
        clock.sleep(0.02)


def send(scene: Scene, body: str, *, urgent: bool = False) -> str:
    """A present sender; its coordinator runs already."""
    return sending.send(scene.root, ["alpha"], body, urgent=urgent, speaker=PERSON).id


def is_read(scene: Scene, message_id: str) -> bool:
    """Whether somebody else has settled it: asking does not."""
    found = Mailbox(scene.root, scene.sessions["alpha"].key).receipt(message_id)
    return found is not None and found["state"] == "read"


@pytest.mark.usefixtures("coordinator")
def test_hooks_of_an_old_version_go_on_beside_a_present_coordinator_and_present_senders(scene: Scene) -> None:
    alpha = scene.sessions["alpha"]
    sent: list[str] = []

    def settled() -> bool:
        return all(is_read(scene, one) for one in sent)

    alpha.prompt(waiter=False)
    sent += [send(scene, f"at the end {n}") for n in range(5)]
    waits = Mailbox(scene.root, alpha.key).waiting()
    assert [mailbox.entry_id(name) for name in waits] == sent
    assert alpha.stop(waiter=False).goes_on
    assert alpha.read == sent
    wait_for(settled)
    urgent = send(scene, "now", urgent=True)
    alpha.tool_batch()
    sent.append(urgent)
    assert alpha.read == sent
    sent += [send(scene, "with the prompt")]
    alpha.turn()
    wait_for(settled)
    assert alpha.read == sent
    # The waiter of the old version sleeps on its bell.
    assert alpha.settled()
    for body in ("one", "two"):
        before = clock.monotonic()
        sent.append(send(scene, body))
        alpha.wake()
        assert clock.monotonic() - before < 4.0, "the bell was lost: a round of the waiter brought it"
        alpha.stop()
        assert alpha.settled()
    wait_for(settled)
    assert alpha.read == sent
    assert Mailbox(scene.root, alpha.key).waiting() == []
    assert registry.key_of_name(scene.root, "alpha") == alpha.key
    assert not os.path.exists(home.agent(scene.root, alpha.key) + "/damaged")


@pytest.mark.usefixtures("coordinator")
def test_what_an_old_sender_sends_reaches_the_present_hooks(scene: Scene) -> None:
    alpha = scene.sessions["alpha"]
    upgrade(scene)
    alpha.stop()
    assert alpha.settled()
    (woken,) = scene.old.do(["send", "person", "alpha", "from the old one", {}])
    alpha.wake()
    waits = scene.old.do(*(["send", "person", "alpha", f"then {n}", {}] for n in range(3)))
    alpha.stop(waiter=False)
    assert alpha.read == [woken, *waits]
    wait_for(lambda: is_read(scene, waits[-1]))
    assert scene.old.run("show", waits[0])["receipts"]["alpha"]["state"] == "read"
