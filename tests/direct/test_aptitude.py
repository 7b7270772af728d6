"""What is known of models: kept, shipped, dropped after failures, and read from damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeagent_lsp.direct.aptitude import FILE, STRIKES, Proof, ProofStore, Score, family_of, key_of
from codeagent_lsp.llm.model import ModelInfo

OURS = ModelInfo("my-model", "openai", "http://127.0.0.1:9/v1")
EMBEDDED = ModelInfo("qwen2.5-coder-1.5b-instruct-q4_k_m", "embedded")
PROOF = Proof({"tools": Score(1, 3, 10, 20, 1.5), "whole": Score(3, 3, 5, 6, 0.5)})


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    store = ProofStore(tmp_path)
    assert store.get(OURS) is None
    store.keep(OURS, PROOF)
    assert ProofStore(tmp_path).get(OURS) == PROOF
    assert store.get(ModelInfo("my-model", "openai", "http://127.0.0.1:10/v1")) is None


def test_the_embedded_model_is_known_without_a_probe(tmp_path: Path) -> None:
    known = ProofStore(tmp_path).get(EMBEDDED)
    assert known is not None
    assert known.source == "shipped"
    assert not known.calls_tools
    assert known.share("function") > 0.5
    served = ModelInfo(EMBEDDED.name, "llamacpp", "http://127.0.0.1:8080")
    assert ProofStore(tmp_path).get(served) == known


def test_what_was_found_here_stands_above_what_ships(tmp_path: Path) -> None:
    store = ProofStore(tmp_path)
    store.keep(EMBEDDED, PROOF)
    assert store.get(EMBEDDED) == PROOF


@pytest.mark.parametrize("info", [OURS, EMBEDDED])
def test_a_wrong_entry_is_dropped_after_failures_in_a_row(tmp_path: Path, info: ModelInfo) -> None:
    store = ProofStore(tmp_path)
    if info is OURS:
        store.keep(info, PROOF)
    for _ in range(STRIKES - 1):
        assert not store.failed(info, "whole")
    assert store.get(info) is not None
    assert store.failed(info, "whole")
    assert store.get(info) is None
    store.keep(info, PROOF)
    assert store.get(info) == PROOF


def test_success_wipes_failures_out(tmp_path: Path) -> None:
    store = ProofStore(tmp_path)
    store.keep(OURS, PROOF)
    for _ in range(3):
        for _ in range(STRIKES - 1):
            store.failed(OURS, "whole")
        store.worked(OURS, "whole")
    assert store.get(OURS) == PROOF


def test_failures_of_one_form_are_not_those_of_another(tmp_path: Path) -> None:
    store = ProofStore(tmp_path)
    store.keep(OURS, PROOF)
    for _ in range(STRIKES - 1):
        store.failed(OURS, "whole")
        store.failed(OURS, "tools")
    assert store.get(OURS) == PROOF


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"x": 1}',
        '{"KEY": []}',
        '{"KEY": {"forms": {"whole": [1]}}}',
        '{"KEY": {"forms": 3}}',
        "\0",
    ],
)
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text.replace("KEY", key_of(OURS)))
    store = ProofStore(tmp_path)
    assert store.get(OURS) is None
    store.keep(OURS, PROOF)
    assert store.get(OURS) == PROOF
    assert json.loads((tmp_path / FILE).read_text())


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ProofStore(tmp_path / "file")
    store.keep(OURS, PROOF)
    assert not store.failed(OURS, "whole")
    assert store.get(OURS) is None


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m", "qwen2.5-coder-1.5b-instruct"),
        ("Qwen2.5-Coder-1.5B-Instruct-Q8_0.gguf", "qwen2.5-coder-1.5b-instruct"),
        ("models/qwen2.5-coder-1.5b-instruct", "qwen2.5-coder-1.5b-instruct"),
        ("llama3:latest", "llama3"),
        ("gpt-4o", "gpt-4o"),
    ],
)
def test_families(name: str, family: str) -> None:
    assert family_of(name) == family


def test_a_model_calls_tools_when_it_did_all_edits_by_them() -> None:
    assert Proof({"tools": Score(3, 3)}).calls_tools
    assert not Proof({"tools": Score(2, 3)}).calls_tools
    assert not Proof({"whole": Score(3, 3)}).calls_tools
    assert PROOF.told() == "tools 1/3, whole 3/3"
