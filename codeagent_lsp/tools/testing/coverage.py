"""Test coverage: the report as a value, the parsers of four formats, and the text for the model.

Not here: the commands that measure it (`framework.py` and the frameworks).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.tools.testing.reports import ReportBroken, relative

Ranges = tuple[tuple[int, int], ...]

# `shop/cart.go:3.14,5.2 2 1`: the file, from and to, statements, how often they ran.
_BLOCK = re.compile(
    r"^(?P<file>.+):(?P<first>\d{1,9})\.\d{1,9},(?P<last>\d{1,9})\.\d{1,9} (?P<size>\d{1,9}) (?P<count>\d{1,9})$"
)
_RANGES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """The coverage of one file, relative to the tests' folder: covered and countable lines (for Go statements).

    `missing` are the uncovered ranges of lines, 1-based, both ends included.
    """

    path: str
    covered: int
    total: int
    missing: Ranges

    @property
    def percent(self) -> float:
        """The covered share in percent; 100 for a file without countable lines."""
        return 100 * self.covered / self.total if self.total else 100.0


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """The coverage of all files, the lowest first; `unit` is what was counted, such as lines. With a `problem`, a
    sentence in English, the numbers are incomplete.
    """

    framework: str
    files: tuple[FileCoverage, ...] = ()
    problem: str = ""
    unit: str = "lines"

    @property
    def total(self) -> int:
        """The number of countable lines of all files."""
        return sum(file.total for file in self.files)

    @property
    def percent(self) -> float:
        """The covered share of all lines in percent; 0 without files."""
        return 100 * sum(file.covered for file in self.files) / self.total if self.total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data, `{framework, percent, total, problem, files}`, with `{path, percent,
        total, missing}` for each file, percentages rounded to two places.
        """
        return {
            "framework": self.framework,
            "percent": round(self.percent, 2),
            "total": self.total,
            "problem": self.problem,
            "files": [
                {"path": file.path, "percent": round(file.percent, 2), "total": file.total, "missing": file.missing}
                for file in self.files
            ],
        }


def worst_first(files: Iterable[FileCoverage]) -> tuple[FileCoverage, ...]:
    """Return the files sorted by coverage, lowest first; of equal ones that with the most uncovered lines first, then
    by path.
    """
    return tuple(sorted(files, key=lambda file: (file.percent, file.covered - file.total, file.path)))


def parse(form: str, data: bytes, folder: str, module: str = "") -> tuple[FileCoverage, ...]:
    """Return the files of a report in the form `coverage.py` (JSON), `istanbul`, `go` or `lcov`, the lowest coverage
    first. ReportBroken if it is malformed.

    `folder` is where the tests ran, to which paths are relative, `module` the path of the Go module.
    """
    forms: Mapping[str, Callable[[], Iterator[FileCoverage]]] = {
        "coverage.py": lambda: _coverage_py(json.loads(data), folder),
        "istanbul": lambda: _istanbul(json.loads(data), folder),
        "go": lambda: _go(data.decode("utf-8", "replace"), module),
        "lcov": lambda: _lcov(data.decode("utf-8", "replace"), folder),
    }
    try:
        return worst_first(forms[form]())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReportBroken("is not whole") from None


def ranges(missing: Iterable[int], covered: Iterable[int]) -> Ranges:
    """Return uncovered lines as ranges; pairs of the first and the last line, 1-based; lines that are neither covered
    nor uncovered do not split a range.
    """
    reached = frozenset(covered)
    found: list[tuple[int, int]] = []
    for line in sorted(frozenset(missing)):
        if found and not any(between in reached for between in range(found[-1][1], line)):
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    return tuple(found)


def describe_coverage(report: CoverageReport, locate: Callable[[str], str], state: str, budget: int) -> str:
    """Return the report as text for the model, about `budget` characters; `locate` makes shown paths, `state` says
    which texts the tests ran on: the sum, then the files with uncovered lines.
    """
    lines = [_sum(report, state)]
    lines += [report.problem] if report.problem else []
    left = budget - sum(map(len, lines))
    open_files = [file for file in report.files if file.missing]
    for number, file in enumerate(open_files):
        line = f"{locate(file.path)} {file.percent:.0f} %, uncovered: {_ranges(file.missing)}"
        left -= len(line) + 1
        if left < 0:
            lines.append(f"... and {len(open_files) - number} more files. Ask for a part of them with path.")
            break
        lines.append(line)
    return "\n".join(lines)


def _sum(report: CoverageReport, state: str) -> str:
    if not report.files:
        return f"coverage: nothing was measured ({report.framework}){state}"
    files = f"{len(report.files)} file{'s' if len(report.files) > 1 else ''}"
    return f"coverage: {report.percent:.1f} % of {report.total} {report.unit} in {files} ({report.framework}){state}"


def _ranges(found: Ranges) -> str:
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in found[:_RANGES_SHOWN]]
    more = f" and {len(found) - _RANGES_SHOWN} more places" if len(found) > _RANGES_SHOWN else ""
    return f"{', '.join(shown)}{more}"


def _of_lines(path: str, counts: Mapping[int, int]) -> FileCoverage:
    covered = [line for line, count in counts.items() if count]
    missing = [line for line, count in counts.items() if not count]
    return FileCoverage(path, len(covered), len(counts), ranges(missing, covered))


def _coverage_py(report: Any, folder: str) -> Iterator[FileCoverage]:
    for path, file in report["files"].items():
        counts = dict.fromkeys(file["executed_lines"], 1) | dict.fromkeys(file["missing_lines"], 0)
        yield _of_lines(relative(path, folder), counts)


def _istanbul(report: Any, folder: str) -> Iterator[FileCoverage]:
    for path, file in report.items():
        counts: dict[int, int] = {}
        for key, place in file["statementMap"].items():
            line = place["start"]["line"]
            # Several statements may begin on one line.
            counts[line] = max(counts.get(line, 0), file["s"][key])
        yield _of_lines(relative(path, folder), counts)


def _go(profile: str, module: str) -> Iterator[FileCoverage]:
    """Yield the files of a Go cover profile; a block that several packages report counts with its highest count."""
    head, *lines = profile.splitlines() or [""]
    if not head.startswith("mode: "):
        raise ValueError(head)
    files: dict[str, dict[tuple[int, int, int], int]] = defaultdict(dict)
    for line in lines:
        match = _BLOCK.match(line)
        if match is None:
            raise ValueError(line)
        block = (int(match["first"]), int(match["last"]), int(match["size"]))
        blocks = files[match["file"].removeprefix(f"{module}/")]
        blocks[block] = max(blocks.get(block, 0), int(match["count"]))
    for path, blocks in files.items():
        covered = sum(size for (_, _, size), count in blocks.items() if count)
        missing = tuple(sorted((first, last) for (first, last, _), count in blocks.items() if not count))
        yield FileCoverage(path, covered, sum(size for _, _, size in blocks), missing)


def _lcov(report: str, folder: str) -> Iterator[FileCoverage]:
    path, counts = "", dict[int, int]()
    for line in report.splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            path, counts = relative(value, folder), {}
        elif key == "DA":
            number, count = value.split(",")[:2]
            counts[int(number)] = max(counts.get(int(number), 0), int(count))
        elif key == "end_of_record":
            yield _of_lines(path, counts)
            path = ""
    if path:
        raise ValueError("cut short")
