"""Glob patterns."""

from __future__ import annotations

import time

import pytest

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.workspace.files.globs import compile_glob

FITS = [
    ("*.py", "a.py"),
    ("*.py", "src/deep/a.py"),
    ("src/*.py", "src/a.py"),
    ("./src/*.py", "src/a.py"),
    ("src/**/*.py", "src/a.py"),
    ("src/**/*.py", "src/x/y/a.py"),
    ("**/test_*.py", "test_a.py"),
    ("**", "a/b"),
    ("src/**", "src/a/b.py"),
    ("**/x/**/*.c", "a/x/b/x/c/d.c"),
    ("*.{ts,tsx}", "src/a.tsx"),
    ("{src,lib}/**/*.{js,{c,h}}", "lib/z/a.h"),
    ("a?c", "abc"),
    ("[a-c]*.py", "b1.py"),
    ("[!a]*.py", "b.py"),
    ("[]a].txt", "].txt"),
    ("a[1", "a[1"),
    ("[z-a].txt", "[z-a].txt"),
    ("*a*b*c", "xxaaybbzc"),
    ("*.*", ".env.x"),
    ("a\\*b", "a*b"),
    ("x{y}", "x{y}"),
    ("ab*ba", "abba"),
    ("*\n*", "a\nb"),
    ("caf\u00e9.py", "cafe\u0301.py"),
    ("cafe\u0301*/*.p?", "caf\u00e9s/a.py"),
]
MISSES = [
    ("*.py", "a.pyc"),
    ("/*.py", "src/a.py"),
    ("src/*.py", "src/x/a.py"),
    ("src/**", "src"),
    ("src/**/a.py", "lib/a.py"),
    ("a?c", "a/c"),
    ("ab*ba", "aba"),
    ("[!a]*.py", "a.py"),
    ("*.{ts,tsx}", "a.js"),
    ("a/b", "a/b/c"),
    ("a/b/c", "a/b"),
]


@pytest.mark.parametrize(("pattern", "path"), FITS)
def test_fits(pattern: str, path: str) -> None:
    assert compile_glob(pattern).matches(path)


@pytest.mark.parametrize(("pattern", "path"), MISSES)
def test_does_not_fit(pattern: str, path: str) -> None:
    assert not compile_glob(pattern).matches(path)


def test_brackets_may_be_a_part_of_a_name() -> None:
    pattern = compile_glob("app/[id]/*.tsx")
    assert pattern.matches("app/i/page.tsx") and not pattern.matches("app/[id]/page.tsx")
    assert pattern.as_written is not None
    assert pattern.as_written.matches("app/[id]/page.tsx") and not pattern.as_written.matches("app/i/page.tsx")
    assert compile_glob("app/*/page.tsx").as_written is None


@pytest.mark.parametrize("pattern", ["", "/", "{a,b}" * 20, "x" * 2000])
def test_refused(pattern: str) -> None:
    with pytest.raises(ToolRetry):
        compile_glob(pattern)


def test_no_pattern_runs_away() -> None:
    start = time.process_time()
    assert not compile_glob("*a" * 60 + "*b").matches("a" * 255)
    assert not compile_glob("**/a/" * 40 + "b").matches("a/" * 500 + "c")
    assert time.process_time() - start < 5


def test_braces_in_a_name_are_found_beside_what_they_mean() -> None:
    pattern = compile_glob("src/{a,b}/*.ts")
    assert [pattern.matches(f"src/{name}/c.ts") for name in ("a", "b", "{a,b}", "{a}")] == [True, True, True, False]
    assert compile_glob("{a,b}.py").matches("deep/{a,b}.py")
