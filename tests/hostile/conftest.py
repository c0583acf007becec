"""One home with everything in it, made once; each test damages a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.kit import Rich, build


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rich]:
    """The home that is copied, and the processes that stand for its sessions."""
    folder = tmp_path_factory.mktemp("rich")
    with pytest.MonkeyPatch.context() as patch:
        made = build(folder, patch)
    yield made
    made.template.close()


@pytest.fixture
def rich(template: Rich, tmp_path: Path) -> Rich:
    """A copy to be damaged."""
    return template.copy(tmp_path)
