"""Fixtures of the tests of environments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.environments.engine_rig import Podman, engine_problem, podman


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """A real engine with an image, for all tests that want one."""
    if engine_problem() is not None:
        pytest.skip(f"no container engine: {engine_problem()}")
    with podman(tmp_path_factory.mktemp("engine")) as running:
        yield running
