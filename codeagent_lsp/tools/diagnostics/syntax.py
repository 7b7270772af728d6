"""Syntax errors from the syntax tree, and of data files: simple, but without a program and for any text.

Not here: anything that needs types or other files. C and C++ are left out, as their macros look like errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codeagent_lsp.index.enclosing import syntax_tree
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.tools.diagnostics.port import Diagnostic

if TYPE_CHECKING:
    from tree_sitter import Node

SOURCE = "syntax"
MAX_PER_FILE = 10
_MAX_NODES = 20_000
_MACROS = frozenset({"c", "cpp"})
_MAX_QUOTE = 40
DATA_SOURCE = "syntax"
MAX_CHARS = 2_000_000

_JSON = frozenset((".json", ".webmanifest", ".geojson", ".har", ".map", ".topojson"))
_LINES = frozenset((".jsonl", ".ndjson"))
_WITH_COMMENTS = re.compile(r"(?:^|/)(?:[tj]sconfig[^/]*\.json|\.vscode/[^/]+\.json|devcontainer\.json|[^/]+\.jsonc)$")
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*[}\]])', re.DOTALL)
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$| \(at end of document\)$")

Error = tuple[int, int, str]
"""A 1-based line and column, and what is wrong there."""


def syntax_errors(path: str, text: str) -> tuple[Diagnostic, ...] | None:
    """Return the syntax errors of code or of a data file, at most `MAX_PER_FILE`; None if the language is not known."""
    if (data := data_errors(path, text)) is not None:
        return data
    if not is_for_syntax(path):
        return None
    tree = syntax_tree(path, text)
    if tree is None:
        return None
    source = text.encode("utf-8", "replace")
    found = [_diagnostic(path, source, node) for node in _faults(tree.root_node)]
    return tuple(found[:MAX_PER_FILE])


def is_for_syntax(name: str) -> bool:
    """Return whether the syntax of files of this name can be checked."""
    grammar = grammar_of(name)
    return is_data(name) or (grammar is not None and grammar.name not in _MACROS)


def _faults(root: Node) -> Iterator[Node]:
    """Yield the error and missing nodes in order, none inside another."""
    pending = [root]
    for _ in range(_MAX_NODES):
        if not pending:
            return
        node = pending.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            pending.extend(reversed(node.children))


def _diagnostic(path: str, source: bytes, node: Node) -> Diagnostic:
    start = node.start_byte
    line_start = source.rfind(b"\n", 0, start) + 1
    column = len(source[line_start:start].decode("utf-8", "replace")) + 1
    return Diagnostic(path, node.start_point.row + 1, column, "error", _message(source, node), SOURCE)


def _message(source: bytes, node: Node) -> str:
    if node.is_missing:
        return f"{node.type!r} is missing"
    quoted = source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()
    first = quoted.splitlines()[0] if quoted else ""
    return f"syntax error at {first[:_MAX_QUOTE]!r}" if first else "syntax error"


# Whether data files can be read: JSON, notebooks, TOML, YAML and XML, by the parsers that programs read them with.


def data_errors(path: str, text: str) -> tuple[Diagnostic, ...] | None:
    """Return what keeps a data file from being read, at most one error; None for a file of another kind."""
    check = _check_for(path)
    if check is None or len(text) > MAX_CHARS:
        return None
    found = check(text.removeprefix("\ufeff")) if text.strip() else None
    if found is None:
        return ()
    line, column, message = found
    return (Diagnostic(path, line, column, "error", message, DATA_SOURCE),)


def is_data(path: str) -> bool:
    """Return whether files of this name are data that can be checked."""
    return _check_for(path) is not None


def _check_for(path: str) -> Callable[[str], Error | None] | None:
    name = path.replace("\\", "/")
    suffix = PurePosixPath(name).suffix.lower()
    if _WITH_COMMENTS.search(name):
        return lambda text: _json(_plain(text))
    if suffix in _JSON:
        return _json
    return _CHECKS.get(suffix)


def _json(text: str) -> Error | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno, f"not valid JSON: {error.msg}"
    except RecursionError:
        return 1, 1, "not valid JSON: nested too deeply"
    return None


def _json_lines(text: str) -> Error | None:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (found := _json(line)) is not None:
            return number, found[1], found[2]
    return None


def _notebook(text: str) -> Error | None:
    if (found := _json(text)) is not None:
        return found
    value = json.loads(text)
    cells = value.get("cells", value.get("worksheets")) if isinstance(value, dict) else None
    return None if isinstance(cells, list) else (1, 1, "not a notebook: it has no list of cells")


def _plain(text: str) -> str:
    """Return JSON with comments and commas at the end as plain JSON, everything else at its place."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])

    return _COMMENT.sub(blank, text)


def _toml(text: str) -> Error | None:
    import tomllib  # late: as all parsers here

    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
        return line, column, f"not valid TOML: {_TOML_PLACE.sub('', message)}"
    except RecursionError:
        return 1, 1, "not valid TOML: nested too deeply"
    return None


def _yaml(text: str) -> Error | None:
    import yaml  # slow to load, and few runs write YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for _ in yaml.parse(text, Loader=loader):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        return line, column, f"not valid YAML: {error.problem or error.context}"
    except yaml.YAMLError as error:
        return 1, 1, f"not valid YAML: {str(error).splitlines()[0]}"
    except RecursionError:
        return 1, 1, "not valid YAML: nested too deeply"
    return None


def _xml(text: str) -> Error | None:
    from xml.parsers import expat  # only where XML is written

    head = re.match(r"\s*<\?xml[^>]*\?>", text)  # it may name the encoding of the file on the disk
    plain = " " * head.end() + text[head.end() :] if head is not None else text
    try:
        expat.ParserCreate().Parse(plain.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return error.lineno, error.offset + 1, f"not well-formed XML: {expat.ErrorString(error.code)}"
    return None


_CHECKS: dict[str, Callable[[str], Error | None]] = {
    **dict.fromkeys(_LINES, _json_lines),
    ".ipynb": _notebook,
    ".toml": _toml,
    **dict.fromkeys((".yml", ".yaml"), _yaml),
    **dict.fromkeys((".xml", ".svg", ".xsd", ".xsl", ".csproj", ".props", ".plist"), _xml),
}
