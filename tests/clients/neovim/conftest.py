"""One running Neovim for the scenarios of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.neovim.support import Neovim


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    running = Neovim(tmp_path_factory.mktemp("neovim"))
    yield running
    running.close()
