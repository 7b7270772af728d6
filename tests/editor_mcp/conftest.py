"""Fixtures: an editor with its server, and a state folder whose name is short enough for sockets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import start, workspace

__all__ = ["start", "workspace"]


@pytest.fixture
def state() -> Iterator[Path]:
    """The folder of all our state."""
    folder = Path(tempfile.mkdtemp(prefix="lend-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
