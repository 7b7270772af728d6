"""Parsers of the output of linters. Pure functions; unknown lines are skipped, as programs may print anything.

Paths are returned as the linter wrote them, relative to its folder or absolute; `linters.py` makes them absolute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from codeagent_lsp.tools.diagnostics.port import Diagnostic, Severity

Read = Callable[[str], Iterator[Diagnostic]]

_MYPY = re.compile(
    r"^(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<severity>error|warning|note): (?P<message>.*?)"
    r"(?:  \[(?P<code>[\w-]+)\])?$"
)
_TSC = re.compile(
    r"^(?P<path>.+?)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning|message) (?P<code>TS\d+):"
    r" (?P<message>.*)$"
)
_GO = re.compile(r"^(?:vet: )?(?P<path>[^\s:][^:]*\.go):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)$")
_GO_PLACE = re.compile(r"^(?P<path>.+):(?P<line>\d+):(?P<column>\d+)$")
_RUFF_ERRORS = ("invalid-syntax", "E9", "F7", "F82")
_LEVELS: dict[str, Severity] = {
    "error": "error",
    "failure-note": "error",
    "warning": "warning",
    "information": "info",
    "info": "info",
    "note": "info",
    "message": "info",
    "help": "hint",
    "hint": "hint",
}


def read_ruff(output: str) -> Iterator[Diagnostic]:
    """Parse `ruff check --output-format json`; syntax errors and undefined names are errors, all else warnings."""
    for item in _items(_json(output)):
        place, code = _dict(item.get("location")), _text(item.get("code"))
        severity: Severity = "error" if code.startswith(_RUFF_ERRORS) or not code else "warning"
        yield from _made(item.get("filename"), place.get("row"), place.get("column"), severity,
                         item.get("message"), "ruff", "" if code == "invalid-syntax" else code)  # fmt: skip


def read_mypy(output: str) -> Iterator[Diagnostic]:
    """Parse `mypy --show-column-numbers`; notes, which belong to the error before them, are skipped."""
    for match in filter(None, map(_MYPY.match, output.splitlines())):
        if match["severity"] != "note":
            yield from _made(match["path"], match["line"], match["column"] or 1, _LEVELS[match["severity"]],
                             match["message"], "mypy", match["code"])  # fmt: skip


def read_pyright(output: str) -> Iterator[Diagnostic]:
    """Parse `pyright --outputjson`, whose lines and columns are 0-based."""
    for item in _items(_dict(_json(output)).get("generalDiagnostics")):
        start = _dict(_dict(item.get("range")).get("start"))
        yield from _made(item.get("file"), _plus_one(start.get("line")), _plus_one(start.get("character")),
                         _LEVELS.get(_text(item.get("severity")), "info"), item.get("message"), "pyright",
                         item.get("rule"))  # fmt: skip


def read_tsc(output: str) -> Iterator[Diagnostic]:
    """Parse `tsc --pretty false`."""
    for match in filter(None, map(_TSC.match, output.splitlines())):
        severity = _LEVELS[match["severity"]]
        yield from _made(
            match["path"], match["line"], match["column"], severity, match["message"], "tsc", match["code"]
        )


def read_eslint(output: str) -> Iterator[Diagnostic]:
    """Parse `eslint -f json`."""
    for file in _items(_json(output)):
        for item in _items(file.get("messages")):
            severity: Severity = "error" if item.get("severity") == 2 else "warning"
            yield from _made(file.get("filePath"), item.get("line") or 1, item.get("column") or 1, severity,
                             item.get("message"), "eslint", item.get("ruleId"))  # fmt: skip


def read_cargo(output: str) -> Iterator[Diagnostic]:
    """Parse `cargo check --message-format json`: one JSON object per line."""
    for line in output.splitlines():
        row = _dict(_json(line))
        message = _dict(row.get("message"))
        spans = [span for span in _items(message.get("spans")) if span.get("is_primary")]
        if row.get("reason") == "compiler-message" and spans:
            severity = _LEVELS.get(_text(message.get("level")), "error")
            code = _dict(message.get("code")).get("code")
            yield from _made(spans[0].get("file_name"), spans[0].get("line_start"), spans[0].get("column_start"),
                             severity, message.get("message"), "cargo", code)  # fmt: skip


def read_go(output: str) -> Iterator[Diagnostic]:
    """Parse `go vet -json`: objects by package and analyzer between other lines; compile errors are plain text."""
    for match in filter(None, map(_GO.match, output.splitlines())):
        yield from _made(match["path"], match["line"], match["column"], "error", match["message"], "go vet", "")
    for package in _objects(output):
        for analyzers in filter(None, map(_dict, package.values())):
            for analyzer, items in analyzers.items():
                for item in _items(items):
                    place = _GO_PLACE.match(_text(item.get("posn")))
                    if place is not None:
                        yield from _made(place["path"], place["line"], place["column"], "warning",
                                         item.get("message"), "go vet", analyzer)  # fmt: skip


def read_python(output: str) -> Iterator[Diagnostic]:
    """Parse our own syntax check by the workspace's Python: one JSON array per line."""
    for line in output.splitlines():
        row = _json(line)
        if isinstance(row, list) and len(row) == 4:
            yield from _made(row[0], row[1] or 1, row[2] or 1, "error", row[3], "python", "")


def _made(
    path: Any, line: Any, column: Any, severity: Severity, message: Any, source: str, code: Any
) -> Iterator[Diagnostic]:
    """Yield a diagnostic; none if a value has the wrong type."""
    numbers = [int(number) for number in (line, column) if str(number).isdecimal()]
    if isinstance(path, str) and path and len(numbers) == 2 and isinstance(message, str):
        yield Diagnostic(path, max(numbers[0], 1), max(numbers[1], 1), severity, message, source, _text(code))


def _objects(output: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    position = output.find("{")
    while position >= 0:
        try:
            value, position = decoder.raw_decode(output, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield _dict(value)
        position = output.find("\n{", position) + 1 or -1


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _plus_one(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else value
