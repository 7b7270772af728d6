"""Which search by meaning the settings and what is installed make, and what the user is told where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.config import IndexSettings, ModelSettings, NetworkSettings
from codeagent_lsp.index import vectors
from codeagent_lsp.index.port import VectorSearch
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.semantic import Semantic
from codeagent_lsp.index.store import open_index
from codeagent_lsp.llm import embeddings
from codeagent_lsp.llm.embeddings import BuiltinEmbedder, Embedder
from codeagent_lsp.server.index_host import access_for, meaning
from tests.faults.model_server import free_port

URL = f"http://127.0.0.1:{free_port()}"


def asked(tmp_path: Path, settings: IndexSettings, notes: list[str], language: str = "en") -> VectorSearch | None:
    store = open_index(tmp_path / "state" / "index.sqlite")
    return meaning(settings, store, Folders([str(tmp_path)]), language, notes.append)


@pytest.fixture(autouse=True)
def extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "is_installed", lambda: True)
    monkeypatch.setattr(embeddings, "engine_installed", lambda: False)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "engine_installed", lambda: True)


@pytest.mark.parametrize("settings", [IndexSettings(), IndexSettings(semantic=False, embeddings_base_url=URL)])
def test_none(tmp_path: Path, settings: IndexSettings) -> None:
    notes: list[str] = []
    assert asked(tmp_path, settings, notes) is None
    assert notes == []


@pytest.mark.usefixtures("engine")
def test_switched_off_the_built_in_model_is_not_used(tmp_path: Path) -> None:
    assert asked(tmp_path, IndexSettings(semantic=False), []) is None


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("semantic", [True, "auto"])
@pytest.mark.parametrize(
    ("url", "kind"),
    [(None, BuiltinEmbedder), ("", BuiltinEmbedder), (URL, Embedder)],
    ids=["none", "empty", "server"],
)
def test_a_server_wins_over_the_built_in_model(
    tmp_path: Path, semantic: bool, url: str | None, kind: type[object]
) -> None:
    notes: list[str] = []
    made = asked(tmp_path, IndexSettings(semantic=semantic, embeddings_base_url=url), notes)
    assert isinstance(made, Semantic)
    assert type(made._embedding) is kind
    assert notes == []


def test_neither_a_model_nor_a_server_is_told_where_vectors_are_asked_for(tmp_path: Path) -> None:
    notes: list[str] = []
    assert asked(tmp_path, IndexSettings(semantic=True), notes) is None
    assert len(notes) == 1
    assert "codeagent-lsp[semantic]" in notes[0] and "index.embeddingsBaseUrl" in notes[0]


@pytest.mark.parametrize(("semantic", "told"), [(True, 1), ("auto", 0)])
def test_without_the_extra(tmp_path: Path, semantic: bool, told: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "is_installed", lambda: False)
    notes: list[str] = []
    assert asked(tmp_path, IndexSettings(semantic=semantic, embeddings_base_url=URL), notes) is None
    assert len(notes) == told
    assert all("codeagent-lsp[semantic]" in note for note in notes)


def test_an_address_that_is_none(tmp_path: Path) -> None:
    notes: list[str] = []
    assert asked(tmp_path, IndexSettings(embeddings_base_url="ftp://x"), notes, "zh-cn") is None
    assert len(notes) == 1
    assert notes[0].startswith("向量搜索目前不可用")


async def test_a_server_that_is_not_there_is_told_of_once(tmp_path: Path) -> None:
    notes: list[str] = []
    beside = asked(tmp_path, IndexSettings(embeddings_base_url=URL), notes)
    assert beside is not None
    await beside.refresh()
    assert list(await beside.search("anything", 5)) == []
    await beside.close()
    assert len(notes) == 1
    assert notes[0].startswith("Vector search does not work now, only words are searched: ")
    assert "127.0.0.1" in notes[0]


@pytest.mark.parametrize(
    ("url", "base", "expected"),
    [
        ("https://models.example.com/v1/embeddings", "https://Models.example.com/v1", "k"),
        ("https://other.example.com/v1", "https://models.example.com/v1", None),
        ("http://models.example.com/v1", "https://models.example.com/v1", None),
        ("https://models.example.com:444/v1", "https://models.example.com/v1", None),
        (None, "https://models.example.com/v1", None),
        ("https://models.example.com/v1", None, None),
    ],
)
def test_the_key_goes_to_its_own_server_only(url: str | None, base: str | None, expected: str | None) -> None:
    network = NetworkSettings(ca_file="/ca.pem")
    model = ModelSettings(base_url=base, api_key="k", headers={"x-team": "t"}, query={"api-version": "1"})
    access = access_for(url, model, network)
    assert access.key == expected and access.network == network
    assert (access.headers, access.query) == (({"x-team": "t"}, {"api-version": "1"}) if expected else ({}, {}))
