"""Installing into files and undoing it: bytes, modes, links, refusals and rivals."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnpost.core import files
from turnpost.core.errors import Newer, TurnpostError
from turnpost.install import (
    Scope,
    SettingsRefused,
    actions,
    backup,
    install,
    installed_hooks,
    settings_for_launch,
    settings_problems,
    uninstall,
)
from turnpost.install.interpreter import chosen_python, default_python
from turnpost.install.merge import command_of, entries, interpreter_of

SCRIPTS = [
    "session_start",
    "user_prompt_submit",
    "stop",
    "stop_failure",
    "post_tool_batch",
    "pre_tool_use",
    "subagent_start",
    "subagent_stop",
    "permission_request",
    "notification",
    "session_end",
    "waiter",
]
ENTRIES = 14
"""Hook entries in the template: the waiter's stands under three events."""
ODD = '{"b": [1,  2],\n\n      "a": 1.0, "é": "\\u00e9"  }\n\n'


@pytest.fixture(autouse=True)
def world(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, a project with spaces, accents and quotes in its path, and hook scripts of no consequence."""
    hooks = own_home / "inst all's" / "hooks"
    hooks.mkdir(parents=True)
    for name in SCRIPTS:
        (hooks / f"{name}.py").write_text("")
    monkeypatch.setattr("turnpost.install.merge.hooks_dir", lambda: hooks)
    return own_home


@pytest.fixture
def project(world: Path) -> Path:
    folder = world / 'pro jét\'s "x"'
    folder.mkdir()
    return folder


def settings_of(project: Path, text: str | bytes) -> Path:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_missing_file_is_made_and_goes_again_with_its_folder(project: Path) -> None:
    done = install("project", project)
    assert (done.action, done.changed) == ("installed", True)
    assert done.path == project / ".claude" / "settings.json"
    assert len(entries(json.loads(done.path.read_text()))) == ENTRIES
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    assert done.diff.startswith("--- /dev/null\n+++ ")
    assert uninstall("project", project).action == "restored"
    assert not done.path.parent.exists()


def test_a_folder_that_was_there_stays(project: Path) -> None:
    (project / ".claude").mkdir()
    install("local", project)
    assert uninstall("local", project).changed
    assert os.listdir(project / ".claude") == []


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_three_times_is_once_in_every_scope(scope: Scope, project: Path) -> None:
    first = install(scope, project)
    data = first.path.read_bytes()
    for _ in range(2):
        again = install(scope, project)
        assert (again.action, again.changed, again.diff) == ("unchanged", False, "")
    assert first.path.read_bytes() == data
    assert {hook.scope for hook in installed_hooks(project)} == {scope}
    uninstall(scope, project)
    assert not first.path.exists()
    assert uninstall(scope, project).action == "unchanged"


def test_the_user_scope_honours_the_configuration_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "conf"))
    assert install("user", project).path == project / "conf" / "settings.json"


@pytest.mark.parametrize(
    "text", [ODD, "{}", "{ }", '{"hooks": {}}', '{"hooks": {"Stop": []}}\r\n', '{"a":1}']
)
def test_an_uninstall_gives_back_every_byte(project: Path, text: str) -> None:
    path = settings_of(project, text)
    install("project", project)
    assert path.read_bytes() != text.encode()
    assert uninstall("project", project).action == "restored"
    assert path.read_bytes() == text.encode()
    assert not Path(backup.folder()).joinpath(backup._record(path)).exists()


texts = st.text(st.characters(codec="utf-8"), max_size=6)
objects = st.dictionaries(
    texts.filter(lambda key: key != "hooks"),
    st.recursive(
        st.none() | st.floats(allow_nan=False, allow_infinity=False) | texts, st.lists, max_leaves=4
    ),
    max_size=4,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    objects, st.sampled_from([None, 1, 4, "\t"]), st.sampled_from(["", "\n", " \r\n\n"]), st.integers(1, 3)
)
def test_any_file_is_given_back_byte_for_byte(
    content: dict[str, object], indent: int | str | None, end: str, times: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(content, indent=indent, ensure_ascii=False) + end
        path = settings_of(Path(folder), text)
        for _ in range(times):
            install("project", Path(folder))
        ours = {"hooks": 0}
        assert {**json.loads(path.read_bytes()), **ours} == {**content, **ours}
        uninstall("project", Path(folder))
        assert path.read_bytes() == text.encode()


def test_a_reinstall_for_another_interpreter_replaces_and_still_gives_back_every_byte(project: Path) -> None:
    path = settings_of(project, ODD)
    install("project", project)
    other = project / "other python"
    other.symlink_to(default_python())
    done = install("project", project, python=other)
    assert done.action == "updated"
    found = entries(json.loads(path.read_text()))
    assert len(found) == ENTRIES
    assert {interpreter_of(command_of(hook)) for _, hook in found} == {str(other)}
    uninstall("project", project)
    assert path.read_text() == ODD


def test_what_a_person_edited_since_stays_in_its_style(project: Path) -> None:
    path = settings_of(project, '{\n\t"a": [1,  2]\n}')
    install("project", project)
    path.write_text(path.read_text().replace("[1,  2]", '[1,  2],\n\t"mine": {"x":1.0}'))
    assert uninstall("project", project).action == "removed"
    assert path.read_text() == '{\n\t"a": [1,  2],\n\t"mine": {"x":1.0}\n}'


def test_a_foreign_hook_added_since_stays(project: Path) -> None:
    path = install("project", project).path
    data = json.loads(path.read_text())
    foreign = {"hooks": [{"type": "command", "command": "/home/me/hooks/stop.py"}]}
    data["hooks"]["Stop"].insert(0, foreign)
    path.write_text(json.dumps(data))
    uninstall("project", project)
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [foreign]}}


def test_a_file_that_was_only_laid_out_anew_is_given_back_byte_for_byte(project: Path) -> None:
    path = settings_of(project, ODD)
    install("project", project)
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert uninstall("project", project).action == "restored"
    assert path.read_text() == ODD


def test_without_its_record_only_our_entries_go(project: Path) -> None:
    path = settings_of(project, '{\n  "a": 1.0\n}\n')
    install("project", project)
    backup.forget(path)
    assert uninstall("project", project).action == "removed"
    assert path.read_text() == '{\n  "a": 1.0\n}\n'


def test_a_damaged_record_is_as_none(project: Path) -> None:
    path = settings_of(project, ODD)
    install("project", project)
    Path(backup._record(path)).write_text('{"version": 1, "path": 7}')
    assert uninstall("project", project).action == "removed"
    assert json.loads(path.read_text()) == json.loads(ODD)


def test_a_dry_run_shows_and_writes_nothing(project: Path, world: Path) -> None:
    path = settings_of(project, ODD)
    shown = install("project", project, dry_run=True)
    assert shown.changed
    assert "+" in shown.diff
    assert path.read_text() == ODD
    assert not (world / "state").exists()
    assert install("project", project).diff == shown.diff
    gone = uninstall("project", project, dry_run=True)
    assert gone.action == "restored"
    assert len(entries(json.loads(path.read_text()))) == ENTRIES


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o400])
def test_the_mode_is_kept(project: Path, mode: int) -> None:
    path = settings_of(project, "{}")
    path.chmod(mode)
    install("project", project)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    uninstall("project", project)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link_and_its_target_is_written(project: Path) -> None:
    target = project / "dotfiles.json"
    target.write_text(ODD)
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(target)
    assert install("project", project).path == path
    assert path.is_symlink()
    assert len(entries(json.loads(target.read_text()))) == ENTRIES
    uninstall("project", project)
    assert path.is_symlink()
    assert target.read_text() == ODD


def test_a_link_to_nowhere_is_refused(project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(project / "gone")
    with pytest.raises(SettingsRefused, match="is not there"):
        install("project", project)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_refused(project: Path) -> None:
    path = settings_of(project, "{}")
    os.chown(path, 12345, 12345)
    with pytest.raises(SettingsRefused, match="belongs to user 12345"):
        install("project", project)
    link = project / ".claude" / "settings.local.json"
    link.symlink_to(path)
    with pytest.raises(SettingsRefused, match="not this user's own"):
        install("local", project)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b'{"a": 1} x',
        b'{"hooks": []}',
        b'{"hooks": {"Stop": 3}}',
        b'{"a": 1, "a": 2}',
        b"\xef\xbb\xbf{}",
        b'{"a": "\xff"}',
        '{"a": 1}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a": "' + b"x" * (4 * 1024 * 1024) + b'"}',
    ],
    ids=lambda data: repr(data[:12]),
)
@pytest.mark.parametrize("do", [install, uninstall])
def test_what_cannot_be_changed_safely_is_refused_in_one_line_and_left_alone(
    project: Path, data: bytes, do: type
) -> None:
    path = settings_of(project, data)
    if do is uninstall and b'"Stop": 3' in data:
        assert uninstall("project", project).action == "unchanged"
        return
    if do is uninstall and b'"hooks": []' in data:
        assert uninstall("project", project).action == "unchanged"
        return
    with pytest.raises(SettingsRefused) as caught:
        do("project", project)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == data


def test_what_is_no_file_is_refused(project: Path) -> None:
    (project / ".claude" / "settings.json").mkdir(parents=True)
    with pytest.raises(SettingsRefused, match="not a regular file"):
        install("project", project)
    os.mkfifo(project / ".claude" / "settings.local.json")
    with pytest.raises(SettingsRefused, match="not a regular file"):
        install("local", project)


def test_a_missing_project_and_a_file_in_the_folders_place_are_refused(project: Path) -> None:
    with pytest.raises(SettingsRefused, match="no folder"):
        install("project", project / "gone")
    (project / ".claude").write_text("")
    with pytest.raises(SettingsRefused):
        install("project", project)


def test_a_refusal_has_the_exit_code_of_refusals(project: Path) -> None:
    settings_of(project, "[]")
    with pytest.raises(TurnpostError) as caught:
        install("project", project)
    assert (caught.value.exit_code, caught.value.rule) == (3, "bad-settings")
    assert len(settings_problems(project)) == 1


def test_a_missing_script_is_refused(project: Path, world: Path) -> None:
    (world / "inst all's" / "hooks" / "waiter.py").unlink()
    with pytest.raises(SettingsRefused, match=r"lacks .*waiter\.py"):
        install("project", project)
    assert not (project / ".claude").exists()


def test_a_write_that_fails_leaves_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settings_of(project, ODD)
    real = files.write

    def full(target: str, data: bytes, **more: bool) -> None:
        if target == str(path):
            raise OSError(28, "No space left on device", target)
        real(target, data, **more)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        with pytest.raises(SettingsRefused, match="No space left"):
            install("project", project)
    assert path.read_text() == ODD
    # The record that is there by now does no harm.
    install("project", project)
    uninstall("project", project)
    assert path.read_text() == ODD


def test_a_reinstall_that_dies_after_its_record_is_still_undone_exactly(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings_of(project, ODD)
    install("project", project)
    other = project / "python"
    other.symlink_to(default_python())
    with monkeypatch.context() as patch:
        patch.setattr(actions, "write_settings", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            install("project", project, python=other)
    assert uninstall("project", project).action == "restored"
    assert path.read_text() == ODD


def test_a_change_between_reading_and_writing_is_not_lost(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings_of(project, '{"a": 1}')
    real = backup.save
    late = ['{"a": 2}']

    def meanwhile(target: Path, record: backup.Backup) -> None:
        real(target, record)
        if late:
            path.write_text(late.pop())

    monkeypatch.setattr(backup, "save", meanwhile)
    install("project", project)
    assert json.loads(path.read_text())["a"] == 2
    uninstall("project", project)
    assert path.read_text() == '{"a": 2}'


def test_a_file_that_never_rests_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of(project, "{}")
    monkeypatch.setattr(actions, "write_settings", lambda *_: False)
    with pytest.raises(SettingsRefused, match="keeps changing"):
        install("project", project)


def test_installs_at_once_leave_one_set(project: Path) -> None:
    path = settings_of(project, ODD)
    gate = threading.Barrier(6)
    results: list[str] = []

    def one() -> None:
        gate.wait()
        results.append(install("project", project).action)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["installed"] + ["unchanged"] * 5
    assert len(entries(json.loads(path.read_text()))) == ENTRIES


def test_a_held_lock_is_a_refusal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "_LOCK_SECONDS", 0.05)
    files.mkdir(backup.folder())
    with files.Lock(backup.folder() + "/lock"), pytest.raises(SettingsRefused, match="another install"):
        install("project", project)


def test_the_interpreter_is_the_one_under_the_environment(world: Path) -> None:
    python = default_python()
    assert python.is_absolute()
    assert not (python.parent.parent / "pyvenv.cfg").exists()
    assert python.read_bytes()[:2] != b"#!"


def test_a_chosen_interpreter_must_run_and_be_new_enough(world: Path) -> None:
    assert chosen_python(Path(sys.executable)) == Path(sys.executable)
    with pytest.raises(SettingsRefused, match="no program"):
        chosen_python(world / "gone")
    old = world / "old"
    old.write_text("#!/bin/sh\necho 3 10\n")
    old.chmod(0o755)
    with pytest.raises(SettingsRefused, match=r"older than Python 3\.11"):
        chosen_python(old)
    old.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(SettingsRefused, match="did not run"):
        chosen_python(old)


def test_an_installed_command_runs_its_script_with_its_own_name_and_ends_with_0_when_it_is_gone(
    project: Path, world: Path
) -> None:
    script = world / "inst all's" / "hooks" / "stop.py"
    script.write_text(
        "import sys, turnpost.core\nprint(__name__, __file__, sys.argv, flush=True)\nsys.exit(2)\n"
    )
    install("project", project)
    hook = next(hook for hook in installed_hooks(project) if hook.script == script)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(hook.command, capture_output=True, text=True, check=False)

    done = run()
    assert (done.returncode, done.stderr) == (0, "")  # an exit 2 by accident wakes nobody
    assert done.stdout == f"__main__ {script} {[str(script), 'turnpost']}\n"
    # Python itself would end with 2 here, which blocks a Stop and makes a waiter wake its agent for ever.
    script.unlink()
    gone = run()
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "")


def test_a_launch_gets_the_same_hooks() -> None:
    launched = settings_for_launch()
    assert list(launched) == ["hooks"]
    assert len(entries(launched)) == ENTRIES
    json.dumps(launched)


def test_hooks_of_plugins_are_found_and_broken_files_hold_none(project: Path, world: Path) -> None:
    plugin = world / "home" / ".claude" / "plugins" / "cache" / "us" / "hooks"
    plugin.mkdir(parents=True)
    (plugin / "hooks.json").write_text(json.dumps(settings_for_launch()))
    (plugin.parent / "hooks.json").write_text("{")
    settings_of(project, "{")
    found = installed_hooks(project)
    assert {hook.scope for hook in found} == {"plugin"}
    assert {hook.path for hook in found} == {plugin / "hooks.json"}
    assert len(found) == ENTRIES


def test_in_the_home_folder_the_users_file_counts_once(world: Path) -> None:
    install("user", world / "home")
    assert {hook.scope for hook in installed_hooks(world / "home")} == {"user"}
    assert len(installed_hooks(world / "home")) == ENTRIES


def test_what_a_newer_turnpost_kept_of_a_file_is_left_and_so_is_the_file(project: Path) -> None:
    path = settings_of(project, '{"a": 1}')
    install("project", project)
    record = Path(backup._record(path))
    record.write_text(record.read_text().replace('"version": 1', '"version": 2'))
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    before = record.read_bytes(), path.read_bytes()
    for change in (install, uninstall):
        with pytest.raises(Newer, match="record of version 2"):
            change("project", project)
        assert (record.read_bytes(), path.read_bytes()) == before
