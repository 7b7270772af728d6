"""What may not stand in the repository: strange paths and hosts, secrets, mocks, prints, forgotten output."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source import ROOT, Module, committed_files, modules, test_modules

BINARY = {".png", ".gif", ".jpg", ".svg", ".ico", ".gz", ".vsix", ".gguf"}
MAY_PRINT = ("codeagent_lsp.cli", "codeagent_lsp.terminal")

# Built from pieces, so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.*$}~])/(?:wor" + r"k|ro" + r"ot)/[A-Za-z]"),
    "a private package registry": re.compile(
        r"(?i)(index" + r"-url\s*=|--index" + r"-url|arti" + r"factory|dev" + r"pi\b|nex" + r"us\.)"
    ),
    "work in progress": re.compile("FIX" + "ME|XX" + "X|DO NOT " + "COMMIT"),
    "a conflict": re.compile(r"^(<<<<<<<|>>>>>>>) \w", re.MULTILINE),
}
SECRETS = {
    "an OpenAI-like key": re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    "a GitLab token": re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}"),
    "a Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "an AWS key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a Google key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "a JWT": re.compile(r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\."),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE " + r"KEY-----\s+[A-Za-z0-9+/]{40}"),
}


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """The text of every file that is no picture."""
    files = (path for path in committed_files() if path.suffix not in BINARY)
    return {path.relative_to(ROOT): path.read_text("utf-8", "replace") for path in files}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_forbidden_stands_anywhere(what: str, texts: dict[Path, str]) -> None:
    hashes = {path for path in texts if path.name == "package-lock.json"} if what == "work in progress" else set()
    assert not list(found(FORBIDDEN[what], {path: text for path, text in texts.items() if path not in hashes}))


@pytest.mark.parametrize("what", SECRETS)
def test_nothing_has_the_shape_of_a_secret(what: str, texts: dict[Path, str]) -> None:
    assert not list(found(SECRETS[what], texts))


def test_the_patterns_find_what_they_look_for() -> None:
    made_up = "gh" + "p_" + "a1" * 18
    assert list(found(SECRETS["a GitHub token"], {Path("x"): f"token = {made_up}"}))
    assert list(found(FORBIDDEN["a path of one machine"], {Path("x"): "cd /ro" + "ot/here"}))


def test_no_large_and_no_generated_output(texts: dict[Path, str]) -> None:
    large = [str(path.relative_to(ROOT)) for path in committed_files() if path.stat().st_size > 512 * 1024]
    assert not large
    assert not [str(path) for path in texts if "__pycache__" in path.parts or path.suffix == ".orig"]


def test_fakes_over_mocks() -> None:
    named = [module for module in test_modules() if "mock" in module.text]
    assert not [place for module in named for place in imports_of(module, "unittest.mock")]


def test_a_mock_is_seen() -> None:
    for line in ("import unittest.mock", "from unittest import mock", "from unittest.mock import Mock"):
        module = Module("x", ROOT / "x.py", line, ast.parse(line))
        assert list(imports_of(module, "unittest." + "mock"))


def test_only_the_terminal_prints() -> None:
    bad = [
        module.where(node)
        for module in modules()
        if not module.name.startswith(MAY_PRINT)
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not bad


def found(pattern: re.Pattern[str], texts: dict[Path, str]) -> Iterator[str]:
    """Where a pattern stands, never the match itself: it may be a secret."""
    for path, text in texts.items():
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}"


def imports_of(module: Module, name: str) -> Iterator[str]:
    """Where a module imports `name`, however it spells that."""
    package, _, attribute = name.rpartition(".")
    for node in module.nodes:
        names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
        source = node.module if isinstance(node, ast.ImportFrom) else None
        if name in {source, *names} or (source == package and attribute in names):
            yield module.where(node)
