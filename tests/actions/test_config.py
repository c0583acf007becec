"""The settings file: what it may say, and one line about what it may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turnpost import config
from turnpost.core.errors import UsageError


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert config.load(str(tmp_path)) == config.Config(8000, 64, 4096, 8, 30.0, 5, 2.0, 20.0)


def test_what_the_file_says_holds_and_a_whole_number_is_a_fine_number_of_seconds(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("body_bytes = 40_000\nresume_backoff_seconds = 1\n# a comment\n")
    found = config.load(str(tmp_path))
    assert (found.body_bytes, found.resume_backoff_seconds, found.mailbox_size) == (40_000, 1.0, 64)
    assert type(found.resume_backoff_seconds) is float


@pytest.mark.parametrize(
    "text",
    [
        "boddy_bytes = 1",
        'body_bytes = "8000"',
        "body_bytes = 8000.5",
        "body_bytes = true",
        "body_bytes = 0",
        "body_bytes = 100000000",
        "mailbox_size = -1",
        "resume_backoff_seconds = nan",
        "resume_backoff_seconds = inf",
        "resume_attempts = 1979-05-27",
        "[body_bytes]\na = 1",
        "[",
        "\xff",
    ],
)
def test_what_cannot_be_is_refused_in_one_line_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        config.load(str(tmp_path))
    assert caught.value.rule == "config"
    assert str(tmp_path / "config.toml") in caught.value.message
    assert "\n" not in caught.value.message


def test_a_link_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("body_bytes = 1")
    os.symlink(tmp_path / "elsewhere", tmp_path / "config.toml")
    with pytest.raises(UsageError, match="link"):
        config.load(str(tmp_path))
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").write_bytes(b"#" * 100_000)
    with pytest.raises(UsageError, match="limit"):
        config.load(str(tmp_path))
