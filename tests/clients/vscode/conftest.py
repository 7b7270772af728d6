"""The packaged extension, installed once for all scenarios; without the parts the tests say what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.vscode import support


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of extensions for code-server."""
    if lacks := support.missing():
        pytest.skip(lacks)
    folder = tmp_path_factory.mktemp("extension")
    return support.install(support.package(folder), folder / "extensions")
