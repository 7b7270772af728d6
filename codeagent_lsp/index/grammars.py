"""Languages of files, their tree-sitter grammars, the trees of texts, and the queries for definitions, uses and
bindings; and which files are source, test, generated or third-party, by their path.

Grammars and queries are loaded on first use. Not here: what a tree says of a text (`parse.py`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Point, Query, QueryCursor, Tree

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

KEPT = 4
_KEPT_BYTES = 1 << 18  # of a text; its tree takes ten times as much
_PIECE = 65_536


class Grammar(NamedTuple):
    """A language: its name, such as `python`, its grammar package (a Python module), the function in it that returns
    the grammar, and the names of its queries.
    """

    name: str
    module: str
    function: str
    queries: tuple[str, ...]


_QUERIES = Path(__file__).with_name("languages")

_PYTHON = Grammar("python", "tree_sitter_python", "language", ("python",))
_JAVASCRIPT = Grammar("javascript", "tree_sitter_javascript", "language", ("ecmascript", "javascript", "jsx"))
_TYPESCRIPT = Grammar("typescript", "tree_sitter_typescript", "language_typescript", ("ecmascript", "typescript"))
_TSX = Grammar("tsx", "tree_sitter_typescript", "language_tsx", ("ecmascript", "typescript", "jsx"))
_GO = Grammar("go", "tree_sitter_go", "language", ("go",))
_RUST = Grammar("rust", "tree_sitter_rust", "language", ("rust",))
_JAVA = Grammar("java", "tree_sitter_java", "language", ("java",))
_C = Grammar("c", "tree_sitter_c", "language", ("c",))
_CPP = Grammar("cpp", "tree_sitter_cpp", "language", ("c", "cpp"))
_CSHARP = Grammar("csharp", "tree_sitter_c_sharp", "language", ("csharp",))
_RUBY = Grammar("ruby", "tree_sitter_ruby", "language", ("ruby",))
_PHP = Grammar("php", "tree_sitter_php", "language_php", ("php",))
_BASH = Grammar("bash", "tree_sitter_bash", "language", ("bash",))

_BY_ENDING = {
    ending: grammar
    for grammar, endings in (
        (_PYTHON, "py pyi pyw"),
        (_JAVASCRIPT, "js mjs cjs jsx"),
        (_TYPESCRIPT, "ts mts cts"),
        (_TSX, "tsx"),
        (_GO, "go"),
        (_RUST, "rs"),
        (_JAVA, "java"),
        (_C, "c"),
        # `h` too, as this grammar reads most of C.
        (_CPP, "h cc cpp cxx c++ hh hpp hxx h++ ipp inl"),
        (_CSHARP, "cs"),
        (_RUBY, "rb rake gemspec ru"),
        (_PHP, "php phtml"),
        (_BASH, "sh bash"),
    )
    for ending in endings.split()
}
_BY_NAME = {"Rakefile": _RUBY, "Gemfile": _RUBY, ".bashrc": _BASH, ".bash_profile": _BASH, ".profile": _BASH}
_BY_PROGRAM = {"python": _PYTHON, "node": _JAVASCRIPT, "ruby": _RUBY, "php": _PHP, "bash": _BASH, "sh": _BASH}
_SHEBANG = re.compile(rb"#![^\n]*?(?:/|env (?:-S )?)(python|node|ruby|php|bash|sh)[0-9.]*(?: |\r?\n|$)")


def grammar_of(path: str, data: bytes = b"") -> Grammar | None:
    """Return the grammar for a file by its extension or name, else by the shebang line with which its content, `data`,
    begins; None if unknown. A file with an extension is never judged by its content.
    """
    place = PurePosixPath(path)
    found = _BY_ENDING.get(place.suffix[1:].lower()) or _BY_NAME.get(place.name)
    # A file with an ending is no script, whatever its first line says.
    if found is not None or place.suffix:
        return found
    shebang = _SHEBANG.match(data[:200])
    return _BY_PROGRAM[shebang[1].decode()] if shebang else None


def parser(grammar: Grammar) -> Parser:
    """Return a new parser of a language, for one thread: two must not share one."""
    from tree_sitter import Parser  # late: an idle server does without it

    return Parser(_language(grammar))


_kept: tuple[tuple[str, bytes, Tree], ...] = ()


@overload
def tree_of(grammar: Grammar, source: bytes) -> Tree: ...
@overload
def tree_of(grammar: Grammar, source: bytes, stop: Callable[..., bool] | None) -> Tree | None: ...
def tree_of(grammar: Grammar, source: bytes, stop: Callable[..., bool] | None = None) -> Tree | None:
    """Return the syntax tree of a text in UTF-8; None only if `stop`, which is called now and then, returned True. A
    text with errors has a tree, too.

    The trees of the last 4 texts of at most 256 KiB are kept for the next call. Threads can share a tree, as it is not
    changed.
    """
    global _kept
    for name, known, tree in _kept:
        if name == grammar.name and known == source:
            return tree
    made = _tree(parser(grammar), source, stop)
    if made is not None and len(source) <= _KEPT_BYTES:
        _kept = (*_kept[1 - KEPT :], (grammar.name, source, made))
    return made


def cursor(query: Query) -> QueryCursor:
    """Return a new cursor that runs a query over a tree, for one thread."""
    from tree_sitter import QueryCursor  # late: an idle server does without it

    return QueryCursor(query)


@lru_cache(maxsize=32)
def query(grammar: Grammar) -> Query:
    """Return the query of a language for definitions, uses and imports, compiled once per process. Reads the files
    `languages/*.scm`.
    """
    from tree_sitter import Query  # late: an idle server does without it

    text = "\n".join((_QUERIES / f"{name}.scm").read_text(encoding="utf-8") for name in grammar.queries)
    return Query(_language(grammar), text)


@lru_cache(maxsize=32)
def scope_query(grammar: Grammar) -> Query | None:
    """Return the query for scopes and their bindings (`languages/*.scopes.scm`); None for languages without one."""
    from tree_sitter import Query  # late: an idle server does without it

    places = [_QUERIES / f"{name}.scopes.scm" for name in grammar.queries]
    texts = [place.read_text(encoding="utf-8") for place in places if place.is_file()]
    return Query(_language(grammar), "\n".join(texts)) if texts else None


@lru_cache(maxsize=32)
def _language(grammar: Grammar) -> Language:
    from tree_sitter import Language  # late: an idle server does without it

    return Language(getattr(importlib.import_module(grammar.module), grammar.function)())


def text_of(node: Node) -> str:
    """Return the text of a node of a syntax tree; bytes that are not valid UTF-8 are replaced."""
    return (node.text or b"").decode("utf-8", "replace")


@lru_cache(maxsize=1 << 16)
def is_source(path: str) -> bool:
    """Return whether a file is code, by the suffix of its path, in any case; False for one without a suffix."""
    return "." in path and path.rpartition(".")[2].lower() in _SOURCES


def is_prose(path: str) -> bool:
    """Return whether a file is a document, by the suffix of its path; files without a suffix are, such as `README`."""
    name = path.rpartition("/")[2]
    return "." not in name or name.rpartition(".")[2].lower() in _PROSE


@lru_cache(maxsize=1 << 16)
def is_test(path: str) -> bool:
    """Return whether a file is a test or belongs to one, by the folders and the name in its path, with `/` between
    them.
    """
    *folders, name = path.split("/")
    return not _TESTS.isdisjoint(folders) or is_test_name(name)


def is_test_name(name: str) -> bool:
    """Return whether a file has the name of a test, whatever folder it is in, such as `test_a.py` or `a.spec.ts`;
    `name` is that without its folders.
    """
    return bool(_TEST_NAME.search(name))


@lru_cache(maxsize=1 << 16)
def is_made(path: str) -> bool:
    """Return whether a file is generated, recorded or third-party, so that it is not edited by hand; by the folders and
    the name in its path, with `/` between them.
    """
    *folders, name = path.split("/")
    return not _UNEDITED.isdisjoint(folders) or bool(_MADE_NAME.search(name))


def _tree(parser: Parser, source: bytes, stop: Callable[..., bool] | None) -> Tree | None:
    if stop is None:
        return parser.parse(source)

    def piece(offset: int, _: Point) -> bytes:
        return source[offset : offset + _PIECE]

    try:
        return parser.parse(piece, encoding="utf8", progress_callback=stop)
    except ValueError:  # the time limit is over
        return None
