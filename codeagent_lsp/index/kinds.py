"""Classification of files by their path: source, test, generated or third-party.

Not here: languages and parsing (`grammars.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache

_TESTS = frozenset(("test", "tests", "testing", "spec", "specs", "__tests__", "fixtures", "testdata"))
_TEST_NAME = re.compile(r"^test_|^conftest\.|[._-]tests?\.|[._-]spec\.|Tests?\.(?:java|cs|php)$")
_MADE_NAME = re.compile(r"\.min\.|[.-]lock\b|_pb2?\.|\.generated\.|\.g\.\w+$|\.map$|\.snap$")
# Responses of services and expected results recorded by test runs.
_RECORDED = frozenset(("cassettes", "recordings", "__recordings__", "snapshots", "__snapshots__"))
_FOREIGN = frozenset(("vendor", "vendored", "node_modules", "third_party", "dist", "site-packages"))
_UNEDITED = _FOREIGN | _RECORDED
_SOURCE_ENDINGS = """
    py pyi js mjs cjs jsx ts tsx go rs java c h cc cpp cxx hpp cs rb php sh bash kt swift scala lua vue svelte
    m mm ex exs erl hs ml clj dart jl r pl sql zig nim
"""
_SOURCES = frozenset(_SOURCE_ENDINGS.split())
_PROSE = frozenset(("md", "mdx", "markdown", "rst", "txt", "adoc", "org", "tex"))


@lru_cache(maxsize=1 << 16)
def is_source(path: str) -> bool:
    """Return whether a file is code, by its extension."""
    return "." in path and path.rpartition(".")[2].lower() in _SOURCES


def is_prose(path: str) -> bool:
    """Return whether a file is a document, by its extension; one without an extension is (`README`)."""
    name = path.rpartition("/")[2]
    return "." not in name or name.rpartition(".")[2].lower() in _PROSE


@lru_cache(maxsize=1 << 16)
def is_test(path: str) -> bool:
    """Return whether a file is a test or belongs to one."""
    *folders, name = path.split("/")
    return not _TESTS.isdisjoint(folders) or bool(_TEST_NAME.search(name))


@lru_cache(maxsize=1 << 16)
def is_made(path: str) -> bool:
    """Return whether a file is generated, recorded or third-party, so that it is not edited by hand."""
    *folders, name = path.split("/")
    return not _UNEDITED.isdisjoint(folders) or bool(_MADE_NAME.search(name))
