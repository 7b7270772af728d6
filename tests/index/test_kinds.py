"""Sources, tests and made files, by path."""

from __future__ import annotations

import pytest

from codeagent_lsp.index.grammars import is_made, is_source, is_test


@pytest.mark.parametrize("path", ["a.py", "src/a.TS", "x/y.rs", "a.b.go", "script.sh"])
def test_code_is_source(path: str) -> None:
    assert is_source(path)


@pytest.mark.parametrize("path", ["README.md", "Makefile", "a.py.txt", "data.json", "py", "a.py/notes"])
def test_all_else_is_not(path: str) -> None:
    assert not is_source(path)


@pytest.mark.parametrize(
    "path",
    ["tests/a.py", "src/test/java/A.java", "test_a.py", "a/b_test.go", "a.spec.ts", "ATest.java", "conftest.py"],
)
def test_tests_are_known_by_name_or_folder(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", ["src/testing_tools.py", "src/contest.py", "latest.py", "src/attestation.rs"])
def test_names_that_only_sound_like_tests(path: str) -> None:
    assert not is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "a.min.js",
        "tests/cassettes/a.yaml",
        "ui/__snapshots__/b.js",
        "vendor/x.go",
        "web/node_modules/a/b.js",
        "yarn.lock",
        "package-lock.json",
        "a_pb2.py",
    ],
)
def test_made_by_tools_or_others(path: str) -> None:
    assert is_made(path)


@pytest.mark.parametrize("path", ["src/minimal.js", "src/locks.py", "src/vendors.py", "block.rs"])
def test_made_here(path: str) -> None:
    assert not is_made(path)
