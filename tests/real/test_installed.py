"""What `turnpost install` leaves in a project, as Claude Code then runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from tests.real.kit import PATIENCE, Post, until
from turnpost.actions import agents
from turnpost.core import registry
from turnpost.core.render import mark
from turnpost.lab.model import Say

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.tools]

SETTINGS = """\
{
    "permissions": { "allow": ["Bash"],   "defaultMode": "default", "disableAutoMode": "disable" },
    "an-unknown-key": "\\u00fc is kept as it is written",
    "hooks": {
        "UserPromptSubmit": [ {"hooks": [{"type": "command", "command": "echo from-the-foreign-hook; echo p >> FILE"}]} ],
        "Stop": [{"hooks": [{"type": "command", "command": "echo s >> FILE"}]}],
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "echo b >> FILE"}]}]
    }
}

"""


def test_two_installs_beside_foreign_hooks_deliver_once_and_are_undone(post: Post) -> None:
    folder = post.project("mÿ pröject (2)", install=False)
    path, user = folder / ".claude" / "settings.json", post.world.home / ".claude" / "settings.json"
    foreign = post.world.root / "foreign"
    path.write_text(SETTINGS.replace("FILE", str(foreign)))
    post.world.claude("-p", "hello", cwd=folder).check()  # it adds a key to a new user's settings
    before = path.read_bytes(), user.read_bytes()
    foreign.unlink()

    first = post.run("install", "--project", str(folder))
    installed = path.read_bytes()
    again = [post.run("install", "--project", str(folder)) for _ in range(2)]
    assert [first["changed"], *(one["changed"] for one in again)] == [True, False, False]
    assert path.read_bytes() == installed
    post.run("install", "--scope", "user")

    # A session that a person starts, and one that turnpost launches: each is one agent with one waiter.
    with Terminal(post.world, folder) as terminal:
        terminal.ready(PATIENCE)
        (view,) = until(lambda: agents.agents(post.root).agents, "the session registers")
        assert view.name.startswith("mÿ-pröject--2-")
        post.run("rename", view.name, "alpha")
        reads_once(post, terminal, "alpha")
    post.launch_idle("beta", cwd=folder)
    sent = post.send("beta", "to the launched one")
    post.assert_read_once("beta", sent.id)
    assert len(post.requests("beta")) == 2
    until(lambda: len(post.waiters()) == 1, "one waiter is left")
    assert all(one.count("from-the-foreign-hook") >= 1 for one in post.requests("beta"))
    assert [one.name for one in agents.agents(post.root).agents] == ["alpha", "beta"]
    # Two starts; for alpha a wake and a prompt, for beta a prompt and a wake, each with its end.
    assert sorted(foreign.read_text().split()) == ["b"] * 2 + ["p"] * 4 + ["s"] * 4
    post.run("stop", "beta")

    post.run("uninstall", "--project", str(folder))
    post.run("uninstall", "--scope", "user")
    assert (path.read_bytes(), user.read_bytes()) == before
    foreign.unlink()
    with Terminal(post.world, folder) as terminal:
        post.model.script("gamma", [Say("without-turnpost")])
        terminal.ready(PATIENCE).submit("[[lab:gamma]] begin")
        terminal.wait_screen("without-turnpost", PATIENCE)
        until(
            lambda: foreign.exists() and foreign.read_text().split() == ["b", "p", "s"],
            "the foreign hooks run",
        )
        until(lambda: not post.waiters(), "no waiter is left")
    assert [one.name for one in agents.agents(post.root).agents] == ["alpha", "beta"]


def reads_once(post: Post, terminal: Terminal, name: str) -> None:
    """An idle session is woken by one message, once, and goes on with its person."""
    until(lambda: post.listening(name), "it listens")
    sent = post.send(name, f"[[lab:{name}]] hello")
    post.assert_read_once(name, sent.id)
    assert len(post.requests(name)) == 1
    post.model.script(name, [Say("to-the-person")])
    terminal.submit("and now the person")
    terminal.wait_screen("to-the-person", PATIENCE)
    post.wait_idle(name)
    assert [one.count(mark(sent.id)) for one in post.requests(name)] == [1, 1]


def test_a_project_install_reaches_a_launch_without_doubling_it(post: Post) -> None:
    """A launch brings the hooks along where none are installed, and in a project that has them they run once."""
    bare = post.project("bare", install=False)
    for name, folder in (("alpha", post.shop), ("beta", bare)):
        post.launch_idle(name, cwd=folder)
        sent = post.send(name, "hello")
        post.assert_read_once(name, sent.id)
        assert len(post.requests(name)) == 2
    until(lambda: len(post.waiters()) == 2, "one waiter each is left")
    assert not (Path(bare) / ".claude" / "settings.local.json").exists()


def test_a_launched_agent_gets_its_mail_after_an_uninstall_and_one_started_by_hand_is_not_resumed_in_vain(
    post: Post,
) -> None:
    post.configure(resume_attempts=1)
    post.launch_idle("alpha")
    post.model.script("beta", [])
    post.world.claude("--bg", "--name", "beta", input="[[lab:beta]] begin", cwd=post.shop).check()
    until(lambda: registry.key_of_name(post.root, "beta"), "beta is an agent")
    post.wait_idle("beta")
    post.end_session("beta")
    post.run("uninstall", "--project", str(post.shop))
    post.end_session("alpha")
    before = len(post.requests("beta"))
    read, lost = post.send("alpha", "hello"), post.send("beta", "hello")
    post.assert_read_once("alpha", read.id)
    until(lambda: post.receipt("beta", lost.id).state == "undeliverable", "its sender is told")
    assert "hooks are not installed" in str(post.receipt("beta", lost.id).reason)
    assert len(post.requests("beta")) == before, "no turn of the model is spent"
