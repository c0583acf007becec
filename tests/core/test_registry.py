"""Agents, their names and sessions; who speaks; whose a starting session is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core import spool
from turnpost.core import attach, files, home, procs, registry, sender, store, text
from turnpost.core.errors import NotFound, Refused, UsageError


@pytest.fixture
def root(tmp_path: Path) -> str:
    return spool.make(tmp_path)


def test_an_agent_is_found_by_name_in_any_case_and_composition(root: str) -> None:
    made = spool.agent(root, "Zoë")
    for name in ("Zoë", "zoë", "ZOË", "Zoe\u0308"):
        assert text.name_fault(name) or registry.find(root, name)["key"] == made["key"]


@pytest.mark.parametrize("rival", ["alpha", "Alpha", "ALPHA"])
def test_a_name_that_is_taken_is_refused_and_nothing_is_left(root: str, rival: str) -> None:
    spool.agent(root, "alpha")
    before = sorted(os.listdir(home.agents(root)))
    with pytest.raises(Refused) as refused:
        spool.agent(root, rival)
    assert refused.value.rule == "taken"
    assert sorted(os.listdir(home.agents(root))) == before


def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_left(root: str) -> None:
    with pytest.raises(UsageError):
        spool.agent(root, "../x")
    assert os.listdir(home.agents(root)) == []


def test_an_unknown_name_is_answered_with_the_nearest(root: str) -> None:
    for name in ("Alpha", "alphabet", "omega"):
        spool.agent(root, name)
    with pytest.raises(NotFound) as unknown:
        registry.find(root, "alpah")
    assert unknown.value.numbers["near"] == ["Alpha", "alphabet"], "as they are written"
    with pytest.raises(NotFound, match="`turnpost agents` lists") as unlike:
        registry.find(root, "nothing-like-it")
    assert unlike.value.numbers["near"] == []


def test_a_name_is_one_however_it_is_composed(root: str) -> None:
    """macOS types an accent as a character of its own."""
    made = spool.agent(root, "jose\u0301")
    assert made["name"] == "jos\u00e9"
    assert registry.find(root, "JOSE\u0301")["key"] == registry.find(root, "jos\u00e9")["key"] == made["key"]
    with pytest.raises(Refused, match="turnpost wake"):
        spool.agent(root, "jos\u00e9")
    assert registry.rename(root, made, "rene\u0301")["name"] == "ren\u00e9"


def test_a_rename_moves_the_name_and_nothing_else(root: str) -> None:
    made = spool.agent(root, "old")
    sent = spool.send(root, "hello", made)
    registry.rename(root, made, "new")
    assert registry.find(root, "new")["key"] == made["key"]
    assert registry.key_of_name(root, "old") is None
    assert spool.receipt(root, registry.find(root, "NEW"), sent)["state"] == "queued"


def test_a_rename_to_another_case_keeps_the_name_file(root: str) -> None:
    made = spool.agent(root, "alpha")
    registry.rename(root, made, "Alpha")
    assert registry.find(root, "alpha")["name"] == "Alpha"


def test_a_rename_to_a_name_that_is_taken_changes_nothing(root: str) -> None:
    one, _ = spool.agent(root, "one"), spool.agent(root, "two")
    before = spool.tree(root)
    for name in ("TWO", "person", "a b"):
        with pytest.raises((Refused, UsageError)):
            registry.rename(root, one, name)
    assert spool.tree(root) == before
    assert registry.find(root, "one")["name"] == "one"


def test_a_rename_that_was_killed_half_way_is_finished_by_the_next_and_the_old_name_goes(root: str) -> None:
    agent = spool.agent(root, "alpha")
    files.create(home.name(root, "omega"), agent["key"].encode())
    assert registry.rename(root, agent, "omega")["name"] == "omega"
    files.create(home.name(root, "alpha"), agent["key"].encode())
    other = spool.agent(root, "beta")
    registry.forget_names(root, [agent, other])
    assert files.names(root + "/names") == ["beta", "omega"]
    with pytest.raises(Refused, match="is taken"):
        registry.rename(root, agent, "beta")


def test_what_was_left_of_an_agent_that_was_never_made_goes_and_one_that_is_there_stays(root: str) -> None:
    agent = spool.agent(root, "alpha")
    files.mkdir(f"{home.agents(root)}/ag-gone/queue")
    for key in ("ag-gone", agent["key"]):
        registry.forget_unmade(root, key)
    assert files.names(home.agents(root)) == [agent["key"]]
    assert registry.find(root, "alpha") == agent


def test_processes_that_are_gone_are_forgotten(root: str) -> None:
    agent = spool.agent(root, "alpha")
    gone = subprocess.Popen(["true"])
    for pid in (os.getpid(), gone.pid):
        files.write(f"{root}/pids/{pid}", f"{agent['key']} {procs.token(os.getpid())}".encode())
    gone.wait()
    registry.forget_processes(root)
    assert files.names(root + "/pids") == [str(os.getpid())]


def test_everyone_is_sorted_and_a_damaged_record_hides_nobody_else(root: str) -> None:
    for name in ("b", "A", "c"):
        spool.agent(root, name)
    registry.person(root)
    damaged = registry.find(root, "b")
    Path(home.agent(root, damaged["key"]) + "/agent.json").write_bytes(b"{}")
    assert [agent["name"] for agent in registry.everyone(root)] == ["A", "c"]


def test_an_agent_without_a_session_can_be_forgotten_and_its_name_is_free(root: str) -> None:
    made = spool.agent(root, "alpha")
    registry.forget(root, made)
    assert os.listdir(home.agents(root)) == []
    spool.agent(root, "alpha")


def test_a_process_is_known_by_its_start_not_by_its_number_alone(root: str) -> None:
    made = spool.agent(root, "alpha")
    registry.link(root, made, "11111111-aaaa", os.getpid())
    assert registry.key_of_process(root, os.getpid()) == made["key"]
    Path(f"{root}/pids/{os.getpid()}").write_text(f"{made['key']} another-start")
    assert registry.key_of_process(root, os.getpid()) is None
    Path(f"{root}/pids/{os.getpid()}").write_text(f"{made['key']} ")
    assert registry.key_of_process(root, os.getpid()) is None


@pytest.mark.parametrize(
    "session_id", ["", "short", "../../etc/passwd", "-" * 10, "a" * 65, "ä" * 10, "aaaa/bbbb"]
)
def test_what_cannot_be_a_session_id_leads_nowhere(root: str, session_id: str) -> None:
    assert not home.is_session_id(session_id)
    assert registry.key_of_session(root, session_id) is None


def test_the_newest_session_is_the_last_and_each_is_there_once(root: str) -> None:
    made = spool.agent(root, "alpha")
    for session_id in ("11111111", "22222222", "11111111"):
        registry.link(root, made, session_id, 0)
    assert registry.find(root, "alpha")["sessions"] == ["22222222", "11111111"]
    assert registry.key_of_session(root, "22222222") == made["key"]


def test_a_worktrees_main_checkout_is_found_from_within(tmp_path: Path) -> None:
    main = tmp_path / "with space" / "main"
    tree = tmp_path / "elsewhere" / "tree"
    main.mkdir(parents=True)
    run = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(main)]
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", str(tree)],
    ):
        subprocess.run([*run, *words], check=True, capture_output=True)
    (tree / "deep" / "er").mkdir(parents=True)
    (main / "sub").mkdir()
    for folder in (main, main / "sub", tree, tree / "deep" / "er"):
        assert os.path.samefile(registry.main_checkout(str(folder)), main)


def test_a_folder_outside_any_repository_is_its_own_and_a_submodule_too(tmp_path: Path) -> None:
    assert registry.main_checkout("") == ""
    module = tmp_path / "module"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../.git/modules/module\n")
    assert registry.main_checkout(str(module)) == str(module)


def test_a_command_below_a_session_speaks_as_its_agent(root: str) -> None:
    made = spool.agent(root, "alpha")
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert shell.stdout is not None
    below = int(shell.stdout.readline())
    try:
        registry.link(root, made, "11111111", shell.pid)
        assert sender.who(root, below).agent["key"] == made["key"]
        assert not sender.who(root, below).is_person
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()
        shell.stdout.close()


def test_a_command_below_an_unknown_session_is_no_person(root: str, tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    claude.symlink_to("/bin/sh")
    shell = subprocess.Popen(
        [str(claude), "-c", "sleep 60 & echo $!; wait"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout is not None
    below = int(shell.stdout.readline())
    try:
        speaker = sender.who(root, below)
        assert (speaker.is_person, speaker.foreign_pid) == (False, shell.pid)
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()
        shell.stdout.close()


def test_ancestors_are_nearest_first_and_end() -> None:
    found = procs.ancestors(os.getpid())
    assert found[:1] == [os.getppid()] or os.getppid() <= 1
    assert len(found) == len(set(found)) <= 64


def test_a_process_that_ended_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    start = procs.token(child.pid)
    child.wait()
    assert not procs.alive(child.pid, start)
    assert not procs.alive(0, start)
    assert not procs.alive(os.getpid(), None)
    assert not procs.alive(os.getpid(), "another")
    assert procs.alive(os.getpid(), procs.token(os.getpid()))


@pytest.mark.parametrize(
    ("old", "pid", "lives", "pending", "link"),
    [
        ("same", 1, True, False, "same"),
        ("other", 1, True, False, "moved"),
        ("other", 2, False, False, "moved"),
        ("other", 2, True, True, "copied"),
        ("other", 2, True, False, "stranger"),
    ],
)
def test_how_a_starting_session_relates_to_the_agents(
    root: str, old: str, pid: int, lives: bool, pending: bool, link: str
) -> None:
    made = spool.agent(root, "alpha")
    resume = {"pending": pending, "at": 0.0, "tries": 0, "next": 0.0, "error": None}
    state = spool.state(root, made["key"], old, "", pid=pid, resume=resume)
    assert attach.link_kind(state, attach.Start("same", "resume", 1), lives) == link
    if pid == 1 and old == "same":
        assert attach.link_kind(None, attach.Start("same", "startup", 1), lives) == "same"


def test_a_start_is_idempotent(root: str) -> None:
    start = attach.Start("11111111-aaaa", "startup", os.getpid(), cwd="/x/project", project="/x/project")
    first, second = attach.attach(root, start), attach.attach(root, start)
    assert first["key"] == second["key"]
    assert [agent["name"] for agent in registry.everyone(root)] == ["project-11111111"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("builder", "builder"), ("not a name", "project-22222222"), ("taken", "project-22222222")],
)
def test_a_session_gets_the_name_it_was_given_when_that_is_free(root: str, wanted: str, name: str) -> None:
    spool.agent(root, "taken")
    start = attach.Start("22222222-aaaa", "startup", 0, cwd="/x/project", project="/x/project", name=wanted)
    assert attach.attach(root, start)["name"] == name


def test_a_start_that_is_known_by_its_variable_takes_the_launched_agent(root: str) -> None:
    made = spool.agent(root, "alpha")
    start = attach.Start("33333333-aaaa", "startup", os.getpid(), env_key=made["key"], background=True)
    assert attach.attach(root, start)["key"] == made["key"]
    state = store.load_state(root, made["key"])
    assert state is not None
    assert state["doing"] == "starting"


def test_a_fork_whose_process_shows_no_words_is_an_agent_of_its_own(root: str) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    agent = attach.attach(root, attach.Start("0a1b2c3d-1111", "fork", gone.pid, cwd="/tmp/shop"))
    assert agent["sessions"] == ["0a1b2c3d-1111"]
