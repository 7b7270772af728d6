"""Whether data files can be read: JSON, notebooks, TOML, YAML and XML, by the parsers that programs read them with.

One error for each file, as what follows it means nothing. Not here: code (`syntax.py`), schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from codeagent_lsp.tools.diagnostics.port import Diagnostic

SOURCE = "syntax"
MAX_CHARS = 2_000_000

_JSON = frozenset((".json", ".webmanifest", ".geojson", ".har", ".map", ".topojson"))
_LINES = frozenset((".jsonl", ".ndjson"))
_WITH_COMMENTS = re.compile(r"(?:^|/)(?:[tj]sconfig[^/]*\.json|\.vscode/[^/]+\.json|devcontainer\.json|[^/]+\.jsonc)$")
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*[}\]])', re.DOTALL)
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$| \(at end of document\)$")

Error = tuple[int, int, str]
"""A 1-based line and column, and what is wrong there."""


def data_errors(path: str, text: str) -> tuple[Diagnostic, ...] | None:
    """Return what keeps a data file from being read, at most one error; None for a file of another kind."""
    check = _check_for(path)
    if check is None or len(text) > MAX_CHARS:
        return None
    found = check(text.removeprefix("\ufeff")) if text.strip() else None
    if found is None:
        return ()
    line, column, message = found
    return (Diagnostic(path, line, column, "error", message, SOURCE),)


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
