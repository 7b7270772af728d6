"""Syntax errors from the syntax tree, and of data files: simple, but without a program and for any text.

Macros of C and C++ look like errors, so there only what a change breaks is one (`broken_syntax`). Not here: anything
that needs types or other files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.index.enclosing import syntax_tree
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.literals import loose_comments
from codeagent_lsp.index.parse import faults_of
from codeagent_lsp.tools.diagnostics.difference import Diagnostic
from codeagent_lsp.workspace.edits.line_matching import LineMatcher
from codeagent_lsp.workspace.text.position import split_lines

if TYPE_CHECKING:
    from tree_sitter import Node

SOURCE = "syntax"
MAX_PER_FILE = 10
_MAX_NODES = 20_000
_MACROS = frozenset({"c", "cpp"})
_CAPITALS = re.compile(rb"\b[A-Z][A-Z0-9_]{2,}\b")
_MAX_LINES = 200
_MAX_QUOTE = 40
DATA_SOURCE = "syntax"
MAX_CHARS = 2_000_000

_JSON = frozenset(
    ".json .webmanifest .geojson .har .map .topojson .avsc .jsonld .gltf .tfstate .arb .resjson".split()  # noqa: SIM905
)
_LINES = frozenset((".jsonl", ".ndjson"))
_WITH_COMMENTS = re.compile(  # what the programs of these files read with comments in it
    r"(?:^|/)(?:[tj]sconfig[^/]*\.json|\.(?:vscode|zed|devcontainer)/[^/]+\.json|devcontainer\.json"
    r"|(?:deno|turbo|tslint|rush|biome|wrangler|nx|typedoc|tsdoc|cspell|knip|api-extractor|pyrightconfig|renovate"
    r"|language-configuration|\.?(?:eslintrc|luarc|oxlintrc|markdownlint|hintrc|swcrc|jscpd|stylelintrc))\.json"
    r"|rush/[^/]+\.json|\.(?:swcrc|hintrc)"
    r"|[^/]+\.(?:jsonc|code-workspace|code-snippets|sublime-[a-z]+))$"
)
# Strings first, so that `//` in one is kept; then comments, and commas before a closing bracket.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*[}\]])', re.DOTALL)
_TEMPLATE = re.compile(r"^[ \t]*\{[{%]-?[ \t/]", re.MULTILINE)  # of Helm or Jinja, a line that is none of YAML
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$| \(at end of document\)$")

Error = tuple[int, int, str]
"""A 1-based line and column, and what is wrong there."""


def syntax_errors(path: str, text: str) -> tuple[Diagnostic, ...] | None:
    """Return the syntax errors of code or of a data file, at most 10, () for none; None if the language, by the name
    `path`, is not known, is C or C++, or the text cannot be parsed. Pure.
    """
    if (data := data_errors(path, text)) is not None:
        return data
    if not is_for_syntax(path):
        return None
    tree = syntax_tree(path, text)
    if tree is None:
        return None
    source = text.encode("utf-8", "replace")
    found = [_diagnostic(path, source, node) for node in faults_of(tree.root_node)]
    return tuple(found[:MAX_PER_FILE])


def broken_syntax(path: str, before: str, after: str) -> tuple[Diagnostic, ...] | None:
    """Return the syntax errors that a change brings into C or C++, without lines with names in capitals, which may be
    macros. None for other files, and if the text before had errors itself.
    """
    grammar = grammar_of(path)
    if grammar is None or grammar.name not in _MACROS or not before.strip():
        return None
    old, new = syntax_tree(path, before), syntax_tree(path, after)
    if old is None or new is None or old.root_node.has_error:
        return None
    source, lines = after.encode("utf-8", "replace"), after.encode("utf-8", "replace").split(b"\n")
    plain = (
        node
        for node in faults_of(new.root_node)
        # In the line above may be a macro that is a whole declaration or statement.
        if not any(_CAPITALS.search(line) for line in _lines_of(node, lines))
    )
    return tuple(_diagnostic(path, source, node) for node in islice(plain, MAX_PER_FILE))


def _lines_of(node: Node, lines: list[bytes]) -> list[bytes]:
    return lines[max(0, node.start_point.row - 1) : node.end_point.row + 1][:_MAX_LINES]


def is_for_syntax(name: str) -> bool:
    """Return whether `syntax_errors` can check files of this name: data and code of a known language but C and C++."""
    grammar = grammar_of(name)
    return is_data(name) or (grammar is not None and grammar.name not in _MACROS)


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
    """Return the first error that keeps a data file (JSON, YAML and the like, by the ending of `path`) from being
    parsed; () if there is none, None for a file of another kind or with more than 2,000,000 characters.
    """
    check = _check_for(path)
    if check is None or len(text) > MAX_CHARS:
        return None
    found = check(text.removeprefix("\ufeff")) if text.strip() else None
    if found is None:
        return ()
    line, column, message = found
    return (Diagnostic(path, line, column, "error", message, DATA_SOURCE),)


def is_data(path: str) -> bool:
    """Return whether files of this name are data, such as JSON, whose syntax can be checked."""
    return _check_for(path) is not None


def _check_for(path: str) -> Callable[[str], Error | None] | None:
    name = path.replace("\\", "/")
    suffix = PurePosixPath(name).suffix.lower()
    if _WITH_COMMENTS.search(name):
        return lambda text: _json(_plain(text))
    if suffix in _JSON:
        return _json
    return _BY_NAME.get(PurePosixPath(name).name.lower()) or _CHECKS.get(suffix)


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


def _json5(text: str) -> Error | None:
    """Return what keeps JSON5 from being read, which is a value of JavaScript that has no code in it."""
    # In brackets, so that a `{` begins an object and no block.
    tree = syntax_tree("value.js", f"({text}\n)")
    if tree is None:
        return None
    pending = [tree.root_node]
    for _ in range(_MAX_NODES):
        if not pending:
            break
        node = pending.pop()
        known = node.type not in ("identifier", "unary_expression") or _is_number(node)
        holes = node.type == "array" and re.search(rb"[\[,]\s*,", re.sub(rb"//[^\n]*|/\*.*?\*/", b"", _own(node)))
        if node.is_error or node.is_missing or not known or holes or (node.is_named and node.type not in _OF_JSON5):
            row, column = node.start_point
            return row + 1, max(1, column + (row > 0)), f"not valid JSON5: {_message(tree.root_node.text or b'', node)}"
        pending.extend(reversed(node.children))
    return None


def _own(node: Node) -> bytes:
    """Return the text of a node without that of its children which have a name."""
    return b"".join(child.text or b"" if not child.is_named else b"_" for child in node.children)


def _is_number(node: Node) -> bool:
    """Return whether a name or an expression is a number of JSON5."""
    text = (node.text or b"").lstrip(b"+-")
    return text in (b"Infinity", b"NaN") or (node.type != "identifier" and text[:1] in b"0123456789.")


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


def _json_or_yaml(text: str) -> Error | None:
    return _json(_plain(text)) if text.lstrip().startswith(("{", "//", "/*")) else _yaml(text)


def _yaml(text: str) -> Error | None:
    found = _composed(text)
    return None if found and _TEMPLATE.search(text) else found  # a template becomes YAML only when it is filled in


def _composed(text: str) -> Error | None:
    import yaml  # slow to load, and few runs write YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Composed, not loaded: no objects are made, and tags of other programs are no error.
        for _ in yaml.compose_all(text, Loader=loader):
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


def _ini(text: str) -> Error | None:
    import configparser  # only where such a file is written

    try:
        configparser.RawConfigParser(allow_no_value=True).read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next(iter(getattr(error, "errors", ())), (1,))[0]
        return int(line), 1, f"not a valid INI file: {str(error).splitlines()[0]}"
    return None


_YAML = (".yml", ".yaml")
_XML = """
.xml .svg .xsd .xsl .xslt .csproj .vbproj .fsproj .vcxproj .props .targets .nuspec .plist .entitlements .xaml .axaml
.resx .xlf .xliff .storyboard .xib .xcscheme .wsdl .rng .rss .atom .kml .gpx .iml .urdf .qrc .fxml .jrxml .wxs .dita
""".split()  # noqa: SIM905
_CHECKS: dict[str, Callable[[str], Error | None]] = {
    **dict.fromkeys(_LINES, _json_lines),
    ".ipynb": _notebook,
    ".json5": _json5,
    ".toml": _toml,
    **dict.fromkeys((*_YAML, ".cff"), _yaml),
    **dict.fromkeys(_XML, _xml),
}
_OF_JSON5 = frozenset(
    (
        *("program", "expression_statement", "parenthesized_expression", "object", "pair", "property_identifier"),
        *("string", "string_fragment", "escape_sequence", "number", "array", "true", "false", "null", "comment"),
        *("identifier", "unary_expression"),
    )
)
_BY_NAME: dict[str, Callable[[str], Error | None]] = {
    **dict.fromkeys(("composer.lock", "pipfile.lock", "flake.lock", "deno.lock", ".jsbeautifyrc"), _json),
    **dict.fromkeys(("cargo.lock", "poetry.lock", "uv.lock", "pdm.lock", "pipfile"), _toml),
    **dict.fromkeys((".babelrc", ".jshintrc"), _json5),
    **dict.fromkeys((".eslintrc", ".prettierrc", ".stylelintrc"), _json_or_yaml),
    **dict.fromkeys((".clang-format", ".clang-tidy", ".clangd", ".yamllint", "pubspec.lock"), _yaml),
    # Those that programs read with the same parser; other files that end so have a grammar of their own.
    **dict.fromkeys(("setup.cfg", "tox.ini", "pytest.ini", "mypy.ini", "alembic.ini", ".coveragerc", ".flake8"), _ini),
}
"""Files that their name tells more of than its end."""


# What a change of YAML does to lines that it does not touch: there the indentation of one line decides where the next
# ones belong.


class _Entry(NamedTuple):
    """A key, or a value that is no collection: its 0-based line and column, its text, the number of its document, the
    lines of what it stands in, from the outside inwards, and its `owner`, the last of these in words. `last` is the
    line in which its text ends, -1 for a text in a block, which has its own lines.
    """

    line: int
    column: int
    text: str
    document: int
    above: tuple[int, ...]
    owner: str
    last: int


def broken_comments(path: str, before: str, after: str) -> tuple[Diagnostic, ...]:
    """Return one error, at the first changed line, if a change removes the beginning or the end of a comment, in a
    language with or without a grammar: the code up to the next such sign is then a comment, which no parser reports. ()
    if it does not.
    """
    if max(len(before), len(after)) > MAX_CHARS or loose_comments(path, after) <= loose_comments(path, before):
        return ()
    lines = zip_longest(split_lines(before), split_lines(after))
    line = next((number for number, (old, new) in enumerate(lines, 1) if old != new), 1)
    return (Diagnostic(path, line, 1, "error", "a comment has no beginning or no end", SOURCE),)


def moved_entries(path: str, before: str, after: str) -> tuple[Diagnostic, ...]:
    """Return at most 10 warnings about entries of a YAML file on lines that a change does not touch, but that now
    belong to another parent, have become text, or were text before.
    """
    if PurePosixPath(path).suffix.lower() not in _YAML or max(len(before), len(after)) > MAX_CHARS:
        return ()
    old, new = _entries(before), _entries(after)
    if old is None or new is None:
        return ()
    blocks = LineMatcher(None, split_lines(before), split_lines(after)).get_matching_blocks()
    kept = {i + step: j + step for i, j, size in blocks for step in range(size)}
    images, there, here = frozenset(kept.values()), _by_line(old), _by_line(new)
    documents: dict[int, int] = {}
    found: list[Diagnostic] = []
    for line, image in kept.items():
        for was, now in zip_longest(there.get(line, ()), here.get(image, ())):
            told = _move_words(was, now, kept, images)
            if was is not None and now is not None and documents.setdefault(was.document, now.document) != now.document:
                told = f"{now.text!r} stands in another document by a change of other lines"
            if told:
                found.append(Diagnostic(path, image + 1, now.column + 1 if now else 1, "warning", told, SOURCE))
                break
    return tuple(found[:MAX_PER_FILE])


def _move_words(was: _Entry | None, now: _Entry | None, kept: Mapping[int, int], images: Collection[int]) -> str:
    """Return what has happened to an entry whose line is the same; '' for nothing."""
    if now is None:
        return f"{was.text!r} was an entry, and is a part of a text by a change of other lines" if was else ""
    if was is None:
        return f"{now.text!r} was a part of a text, and is an entry by a change of other lines"
    if [kept.get(line) for line in was.above] != [line if line in images else None for line in now.above]:
        return f"{now.text!r} stood in {was.owner}, and stands in {now.owner} by a change of other lines"
    runs_on = was.last >= 0 and now.last - now.line > was.last - was.line
    if runs_on and all(line in kept for line in range(was.line, was.last + 1)):
        return f"the text of {was.text!r} goes on in the lines below by a change of these"
    return ""


def _by_line(entries: Iterable[_Entry]) -> dict[int, list[_Entry]]:
    found: dict[int, list[_Entry]] = {}
    for each in entries:
        found.setdefault(each.line, []).append(each)
    return found


def _entries(text: str) -> list[_Entry] | None:
    """Return the entries of a YAML text; None if it cannot be read."""
    import yaml  # slow to load, and few runs write YAML

    seen: set[int] = set()

    def walk(node: yaml.Node, document: int, above: tuple[int, ...], owner: str) -> Iterator[_Entry]:
        if id(node) in seen:  # an alias
            return
        seen.add(id(node))
        start, end = node.start_mark, node.end_mark
        if isinstance(node, yaml.ScalarNode):
            if node.value or node.style:
                last = -1 if node.style in ("|", ">") else end.line
                yield _Entry(start.line, start.column, node.value[:_MAX_QUOTE], document, above, owner, last)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                line = item.start_mark.line
                yield from walk(item, document, (*above, line), f"the item of line {line + 1}")
        else:
            for key, value in node.value:
                line = key.start_mark.line
                yield from walk(key, document, above, owner)
                yield from walk(value, document, (*above, line), f"{str(key.value)[:_MAX_QUOTE]!r} of line {line + 1}")

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        roots = enumerate(yaml.compose_all(text, Loader=loader))
        return [entry for document, root in roots for entry in walk(root, document, (), "the top")]
    except (yaml.YAMLError, RecursionError):
        return None
