"""The packaged extension, installed once for all scenarios; without the parts the tests say what is missing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import pytest

from tests.clients.vscode import support
from tests.clients.vscode.support import Editor


@pytest.fixture(scope="session")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """What the windows of one worker share. Workers share one package: two builds at once write the same files."""
    if lacks := support.missing():
        pytest.skip(lacks)
    folder = tmp_path_factory.mktemp("extension")
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (shared / "package.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "codeagent.vsix").exists():
            support.package(shared)
    with Editor(folder / "editor", support.install(shared / "codeagent.vsix", folder / "extensions")) as editor:
        yield editor
