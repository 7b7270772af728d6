"""Fixtures of the tests of environments."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments.engine_rig import Podman, engine_problem, podman


@pytest.fixture(scope="session")
def engine() -> Iterator[Podman]:
    """A real engine with an image, for all tests that want one."""
    if engine_problem() is not None:
        pytest.skip(f"no container engine: {engine_problem()}")
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))  # Podman takes short paths only
    try:
        with podman(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
