"""Files of the person's that turnpost reads: Claude Code's settings, policy.toml, config.toml. Of any shape, they end in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.test_payloads import ODD
from tests.long import scale
from turnpost import config, policy, redaction
from turnpost.core.errors import Refused, TurnpostError, UsageError
from turnpost.install import install, uninstall

QUICK = settings(
    deadline=None, max_examples=scale(100, 5000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # fmt: skip
EVENTS = ("Stop", "SessionStart", "PostToolBatch", "Other")
HOOK_SHAPES = st.one_of(
    ODD,
    st.dictionaries(
        st.sampled_from(EVENTS),
        st.one_of(ODD, st.lists(st.one_of(ODD, st.fixed_dictionaries({"hooks": st.one_of(ODD, st.lists(ODD, max_size=2))})), max_size=2)),
        max_size=3,
    ),
)  # fmt: skip
SETTINGS = st.fixed_dictionaries(
    {}, optional={"hooks": HOOK_SHAPES, "permissions": ODD, "env": ODD, "mcpServers": ODD, "": ODD, "x": ODD}
)
TEXTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"", b" ", b"{}\r\n", b"\xef\xbb\xbf{}", b'// c\n{"a": 1}', b'{"a":1,}', b'{"hooks":{},"hooks":[]}', b'{"a":NaN}', b"[" * 100_000,
         b'{"a":' * 5_000, b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"hooks":{"Stop":[{"hooks":[{"command":7}]}]}}', b"\xff", b"{\0}",
         b'{"a":1}\x1a', b"{" + b'"a":1,' * 10_000 + b'"b":2}', b'{"a":' + b"1" * 6_000 + b"}"]
    ),
)  # fmt: skip


@pytest.fixture
def project(own_home: Path) -> Path:
    (own_home / "project" / ".claude").mkdir(parents=True)
    return own_home / "project"


def refused(work: Callable[[], object]) -> TurnpostError | None:
    """The refusal it ends with, None when it does what it should."""
    try:
        work()
    except TurnpostError as error:
        return error
    return None


def there_and_back(project: Path, data: bytes) -> None:
    """Either nothing is touched, with one line why; or an install is in it and an uninstall gives every byte back."""
    path = project / ".claude" / "settings.json"
    path.write_bytes(data)
    if refusal := refused(lambda: install("project", project)):
        assert "\n" not in refusal.message
        assert refusal.exit_code in (2, 3)
        assert path.read_bytes() == data
        return
    installed = json.loads(path.read_bytes())
    assert "Stop" in installed["hooks"]
    uninstall("project", project)
    assert path.read_bytes() == data


@QUICK
@given(value=SETTINGS, indent=st.sampled_from([None, 2, "\t"]), ends=st.sampled_from(["\n", "\r\n"]))
def test_settings_of_any_shape_are_given_back_or_left_alone(
    project: Path, value: dict[str, Any], indent: int | str | None, ends: str
) -> None:
    there_and_back(project, (json.dumps(value, indent=indent) + "\n").replace("\n", ends).encode())


@QUICK
@given(data=TEXTS)
def test_settings_of_any_bytes_are_given_back_or_left_alone(project: Path, data: bytes) -> None:
    there_and_back(project, data)


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "huge", "loop"])
def test_settings_that_are_no_small_file_are_left_alone(project: Path, kind: str) -> None:
    path = project / ".claude" / "settings.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    before = os.lstat(path)
    with pytest.raises(TurnpostError) as refused:
        install("project", project)
    assert "\n" not in refused.value.message
    assert os.lstat(path) == before


TOML = st.one_of(
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=40),
    st.sampled_from(
        [b"a = " + b"[" * 5_000, b"rule = 1", b"[[rule]]", b"[rule]", b"[[rule]]\nverdict = []", b"[loops]\nhops = 1e999", b"[loops]\nseconds = nan",
         b"[loops]\nhops = 999999999999999999999999", b"mailbox_size = inf", b"mailbox_size = 1979-05-27", b"mailbox_size = true",
         b"hold_step_seconds = nan", b"a." * 3_000 + b"b = 1", b"[secrets.patterns]\nx = '('", b"[secrets.patterns]\nx = ''",
         b"[secrets.patterns]\nx = '(a+)+$'", b"[secrets.patterns]\nx = '((((a*)*)*)*)*b'", b"[secrets.patterns]\nx = 'a{1000000000}'",
         b"[secrets.patterns]\nx = '" + b"(" * 150 + b")" * 50 + b"'", b"[secrets]\nvariables = ['*']", b"\xff", b"\0", b"body_bytes = -1",
         b"[[rule]]\nfrom = '\xed\xa0\x80'", b"[[rule]]\nverdict = 'allow'\nto = 'mission:../x'", b"x = '''" + b"y" * 100_000 + b"'''"]
    ),
)  # fmt: skip


@QUICK
@given(data=TOML)
def test_policy_and_config_of_any_text_are_taken_or_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    for name, load in (("policy.toml", policy.load), ("config.toml", config.load)):
        (tmp_path / name).write_bytes(data)
        if refusal := refused(lambda load=load: load(str(tmp_path))):  # type: ignore[misc]
            assert isinstance(refusal, UsageError)
            assert "\n" not in refusal.message
            assert len(refusal.message) < 2_000
            assert str(tmp_path / name) in refusal.message


@pytest.mark.parametrize("pattern", ["(a+)+$", "((a*)*)*b", "(?:a|aa)+$", "(.*.*.*.*.*)x", "(?:a?){50}a{50}"])
def test_a_pattern_that_blows_up_costs_a_second_and_the_send(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "policy.toml").write_text(f"[secrets.patterns]\nslow = '{pattern}'\n")
    secrets = policy.load(str(tmp_path)).secrets
    body = "a" * 7_000 + "!"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "PATTERN_SECONDS", 0.2)
        refusal = refused(lambda: redaction.redact(body, secrets))
    assert refusal is None or "slow" in refusal.message  # fast enough is as good


@pytest.mark.parametrize(
    "pattern", ["a{1000000000}", "(?:a{1000}){1000}", "(?:(?:[ab]{100}){100,}){100}", "a{" + "9" * 150 + "}"]
)
def test_a_pattern_that_takes_all_memory_is_refused_before_it_is_compiled(
    tmp_path: Path, pattern: str
) -> None:
    (tmp_path / "policy.toml").write_text(f"[secrets.patterns]\nbig = '{pattern}'\n")
    with pytest.raises(UsageError, match="'big' repeats more than 100000 times"):
        policy.load(str(tmp_path))


def test_a_pattern_with_common_counts_is_taken(tmp_path: Path) -> None:
    pattern = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|xy{0,1000000}|[A-Z]{20,}"
    (tmp_path / "policy.toml").write_text(f"[secrets.patterns]\nid = '{pattern}'\n")
    assert policy.load(str(tmp_path)).secrets.patterns == (("id", pattern),)


def test_a_home_of_another_user_or_open_to_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnpost.core import home, registry

    root = tmp_path / "home"
    registry.prepare(str(root))
    for mode in (0o722, 0o777, 0o720, 0o1777):
        root.chmod(mode)
        with pytest.raises(Refused, match="chmod 0700") as refused:
            registry.check_home(str(root))
        assert refused.value.rule == "home"
        assert not home.is_private(str(root))
        with pytest.raises(Refused):
            registry.prepare(str(root))
    root.chmod(0o755)  # looked into by others, who cannot write: its folders and files are closed to them
    registry.check_home(str(root))
    if os.geteuid() == 0:
        os.chown(root, 54321, 54321)
        with pytest.raises(Refused, match="belongs to user 54321"):
            registry.check_home(str(root))
    registry.check_home(str(tmp_path / "not-there"))
