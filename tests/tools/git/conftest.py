"""A bench whose workspace is a repository, and no settings of the person who runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fakes import Bench
from tests.tools.git.repos import start


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Bench:
    """A workspace with `a.py` and `b.py` committed."""
    start(tmp_path / "work", a__py="one\ntwo\nthree\n", b__py="b\n")
    return Bench(tmp_path / "work")
