"""Parser of the JSON reports of jest (`--json`) and vitest (`--reporter=json`), which share one format.

Not here: coverage (`coverage.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codeagent_lsp.tools.testing.reports import (
    MAX_REPORT_BYTES,
    CaseOutcome,
    Parsed,
    ReportBroken,
    TestCase,
    bounded,
    message,
    plain,
    relative,
)

_OUTCOMES: Mapping[str, CaseOutcome] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "skipped",
    "disabled": "skipped",
}
_FRAME = re.compile(r"^\s*(?:at |❯ )(?:.*?\()?((?:file://)?[^\s():]+):(\d+):\d+\)?$", re.MULTILINE)


def parse(data: bytes, folder: str) -> Parsed:
    """Parse the cases of a report; `folder` is where the tests ran. ReportBroken if it is malformed or too large."""
    if len(data) > MAX_REPORT_BYTES:
        raise ReportBroken("is too large")
    try:
        report = json.loads(data)
        return Parsed(bounded(case for suite in report["testResults"] for case in _suite(suite, folder)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReportBroken("is not whole") from None


def _suite(suite: Mapping[str, Any], folder: str) -> Iterator[TestCase]:
    file = relative(str(suite["name"]), folder)
    cases = [_case(item, file, folder) for item in suite["assertionResults"]]
    yield from cases
    if suite["status"] == "failed" and not any(case.outcome == "failed" for case in cases):
        text = str(suite.get("message") or "") or "The file could not be run."
        yield TestCase(file, "error", 0.0, message(text), file, _line(text, file, folder))


def _case(item: Mapping[str, Any], file: str, folder: str) -> TestCase:
    outcome = _OUTCOMES[item["status"]]
    text = _focused("\n".join(item.get("failureMessages") or ())) if outcome == "failed" else ""
    location = item.get("location") or {}
    name = " > ".join([*item.get("ancestorTitles", ()), item["title"]])
    return TestCase(
        f"{file} > {name}",
        outcome,
        float(item.get("duration") or 0) / 1000,
        message(text),
        file,
        _line(text, file, folder) or location.get("line"),
    )


def _line(text: str, file: str, folder: str) -> int | None:
    """Return the 1-based line in the test file from the stack frame nearest to the failure; None if there is none."""
    frames = ((relative(match[1], folder), int(match[2])) for match in _FRAME.finditer(plain(text)))
    return next((line for name, line in frames if name == file), None)


def _focused(text: str) -> str:
    """Return a failure's text without the stack frames of libraries."""
    lines = plain(text).splitlines()
    return "\n".join(
        line for line in lines if not re.match(r"\s+at .*(?:node_modules/|node:internal|file:///.*/node_modules)", line)
    )
