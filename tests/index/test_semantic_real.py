"""Search by meaning with a real model behind a real server, and a real LanceDB: nothing in common but the meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.index.semantic import Semantic
from codeagent_lsp.index.vectors import Vectors, is_installed
from codeagent_lsp.index.words import question
from codeagent_lsp.llm.embeddings import Embedder
from codeagent_lsp.llm.endpoint import endpoint
from tests.index.embedding_server import CACHE, Unavailable, embedding_server
from tests.index.workspaces import service, settle, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not is_installed(), reason="the extra `semantic` (LanceDB) is not installed"),
]

FILES = {
    "app/throttle.py": "def limit_rate(requests_per_second):\n    # slow down clients that ask too often\n    pass\n",
    "app/login.py": "def check_password(user, secret):\n    # is this person who they claim to be\n    pass\n",
    "app/colors.py": "def mix(red, green, blue):\n    # one shade out of three\n    return red + green + blue\n",
    "app/weather.py": "def forecast(city):\n    # will it rain tomorrow\n    return 'sun'\n",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with embedding_server(CACHE) as address:
            yield address
    except Unavailable as reason:
        pytest.skip(str(reason))


async def test_found_by_meaning_alone(url: str, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    write(root, FILES)
    settle()
    notes: list[str] = []
    async with service(root, store=tmp_path / "state" / "index.sqlite") as index:
        await index.refresh()

        def place(model: str) -> Vectors:
            return Vectors(str(tmp_path / "vectors"), model)

        search = Semantic(index.store, index.folders, Embedder(endpoint(url, None)), place, notes.append)
        assert await search.refresh() == len(FILES)
        assert await search.refresh() == 0

        for query, path in (("authentication of an account", "app/login.py"), ("meteorology", "app/weather.py")):
            asked = {word for word, _ in question(query).words}
            assert not any(word in FILES[path] for word in asked), "words alone would do"
            best, *_ = await search.search(query, 4)
            assert best.path == path
        await search.close()
    assert notes == []
