"""One running Emacs of each client for the scenarios of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.emacs.support import CLIENTS, Emacs, has_client


@pytest.fixture(
    scope="module", params=[CLIENTS[0], *(pytest.param(name, marks=pytest.mark.volume) for name in CLIENTS[1:])]
)
def client(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if not has_client(name):
        pytest.skip(f"this Emacs has no {name}; Debian: elpa-{name}")
    return name


@pytest.fixture(scope="module")
def emacs(client: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emacs]:
    running = Emacs(tmp_path_factory.mktemp("emacs"), client)
    yield running
    running.close()
