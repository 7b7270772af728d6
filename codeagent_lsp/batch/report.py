"""The report of a batch: `report.html` for a person, `report.md` for a pull request; both from the results alone.

Not here: what is in them (`report_page.py`, `report_summary.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codeagent_lsp.batch.report_page import report_page
from codeagent_lsp.batch.report_summary import report_summary
from codeagent_lsp.batch.results import TaskResult
from codeagent_lsp.errors import UsageError

PAGE, SUMMARY = "report.html", "report.md"


def write_report(folder: Path, results: Sequence[TaskResult], language: str) -> list[Path]:
    """Write both files into the folder of a batch and return their paths. UsageError if they cannot be written."""
    written = []
    for name, content in ((PAGE, report_page(folder, results, language)), (SUMMARY, report_summary(results, language))):
        path = folder / name
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError("batch.unwritable", path=path, reason=error.strerror or error) from error
        written.append(path)
    return written
