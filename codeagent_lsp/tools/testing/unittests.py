"""Parser of the report that `unittest_runner.py` writes, also of truncated ones.

Not here: running the tests.
"""

from __future__ import annotations

import json
from importlib.resources import files

from codeagent_lsp.tools.testing.reports import (
    MAX_REPORT_BYTES,
    Parsed,
    ReportBroken,
    TestCase,
    bounded,
    message,
    relative,
)


def source() -> str:
    """Return the source text of the runner program, for `python -c`."""
    return files(__package__).joinpath("unittest_runner.py").read_text("utf-8")


def parse(data: bytes, folder: str) -> Parsed:
    """Parse the cases of a report; `folder` is where the tests ran. Without its end mark the report is marked as
    broken.
    """
    if len(data) > MAX_REPORT_BYTES:
        raise ReportBroken("is too large")
    cases: list[TestCase] = []
    ended = False
    for line in data.splitlines():
        try:
            record = json.loads(line)
            if record.get("end"):
                ended = True
            else:
                cases.append(_case(record, folder))
        except (ValueError, KeyError, TypeError, AttributeError):
            return Parsed(bounded(cases), "has a line that cannot be read")
    return Parsed(bounded(cases), "" if ended else "breaks off")


def _case(record: dict[str, object], folder: str) -> TestCase:
    file, line = record.get("file"), record.get("line")
    outcome = record["outcome"]
    if outcome not in ("passed", "failed", "skipped", "error"):
        raise ValueError(outcome)
    return TestCase(
        str(record["id"]),
        outcome,
        float(str(record["seconds"])),
        message(str(record["message"])),
        relative(str(file), folder) if file else None,
        line if isinstance(line, int) else None,
    )
