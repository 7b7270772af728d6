"""Uris and paths: what names a file, and which spellings are the same."""

from __future__ import annotations

import os

import pytest

from codeagent_lsp.workspace.files import uris


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file:///a%20b/%C3%A9.py", "/a b/é.py"),
        ("file:///a/é.py", "/a/é.py"),
        ("file:///c%3A/x", "/c:/x"),
        ("file:///100%25", "/100%"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file:/a", "/a"),
        ("file://server/share/x", "//server/share/x"),
        ("file:///a%FF", "/a\udcff"),
        ("file:///a?query#part", "/a"),
        ("file:///a%23b%3Fc", "/a#b?c"),
        ("file:///bad%zz", "/bad%zz"),
        ("untitled:Untitled-1", None),
        ("vscode-notebook-cell:/a#b", None),
        ("codeagent:plan", None),
        ("file:relative", None),
        ("file:///a%00b", None),
        ("", None),
        ("/plain/path", None),
    ],
)
def test_the_path_of_a_uri(uri: str, path: str | None) -> None:
    assert uris.to_path(uri) == path


@pytest.mark.parametrize(
    "path", ["/a", "/a b/c#d?e%f", "/é/中", "/c:/x", "/a\udcff", "//server/share", "/new\nline", "/\U0001f600"]
)
def test_a_path_survives_its_uri(path: str) -> None:
    uri = uris.from_path(path)
    assert uri.isascii()
    assert uris.to_path(uri) == path


def test_bytes_that_are_no_text_survive() -> None:
    path = os.fsdecode(b"/tmp/\xff\xfe")
    assert uris.from_path(path) == "file:///tmp/%FF%FE"


def test_half_a_surrogate_pair_does_not_raise() -> None:
    assert uris.from_path("/\ud800").startswith("file:///%")
    assert uris.to_path("file:///\ud800") is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("file:///c%3A/a", "file:///c:/a"),
        ("file:///a%2Fb", "file:///a/b"),
        ("file:///%61", "file:///a"),
        ("file:///a%c3%a9", "file:///aé"),
        ("file://localhost/a", "file:///a"),
    ],
)
def test_spellings_of_one_file(first: str, second: str) -> None:
    assert uris.key(first) == uris.key(second)


def test_different_things_stay_different() -> None:
    assert uris.key("file:///a") != uris.key("file:///A")
    assert uris.key("untitled:a") != uris.key("untitled:%61")
    assert uris.key("file:///a") != uris.key("/a")
