"""One running Neovim with the plugin for the scenarios of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.neovim_plugin.support import Editor


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    running = Editor(tmp_path_factory.mktemp("neovim"))
    yield running
    running.close()
