"""Grammars: which language a file is in, and queries that compile for all of them."""

from __future__ import annotations

from importlib.resources import files

import pytest

from codeagent_lsp.index.grammars import grammar_of, query, scope_query

ENDINGS = ("py", "js", "jsx", "ts", "tsx", "go", "rs", "java", "c", "cpp", "cs", "rb", "php", "sh")
UNSHADOWED = ("php", "sh")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_language_has_its_queries(ending: str) -> None:
    grammar = grammar_of(f"a.{ending}")
    assert grammar is not None
    assert {"function", "use", "call"} <= {query(grammar).capture_name(n) for n in range(query(grammar).capture_count)}
    scopes = scope_query(grammar)
    if ending in UNSHADOWED:
        assert scopes is None
    else:
        assert scopes is not None
        names = {scopes.capture_name(n) for n in range(scopes.capture_count)}
        known = {"scope", "function", "class", "local", "hoisted", "named", "free", "after"}
        assert {"function", "local"} <= names and names <= known


def test_every_query_file_belongs_to_a_language() -> None:
    grammars = [grammar for ending in ENDINGS if (grammar := grammar_of(f"a.{ending}")) is not None]
    asked = {name for grammar in grammars for name in grammar.queries}
    there = {place.name.removesuffix(".scm") for place in (files("codeagent_lsp.index") / "languages").iterdir()}
    assert {name.removesuffix(".scopes") for name in there} == asked


@pytest.mark.parametrize(
    ("path", "data", "language"),
    [
        ("a.PY", b"", "python"),
        ("b/a.mts", b"", "typescript"),
        ("a.h", b"", "cpp"),
        ("Gemfile", b"", "ruby"),
        ("run", b"#!/usr/bin/env python3\n", "python"),
        ("run", b"#!/bin/sh -e\n", "bash"),
    ],
)
def test_the_language_of_a_file(path: str, data: bytes, language: str) -> None:
    grammar = grammar_of(path, data)
    assert grammar is not None and grammar.name == language


@pytest.mark.parametrize(("path", "data"), [("a.txt", b"#!/bin/sh\n"), ("run", b""), ("run", b"#!/usr/bin/perl\n")])
def test_other_files_have_none(path: str, data: bytes) -> None:
    assert grammar_of(path, data) is None
