"""Parser of untrusted JUnit XML, as pytest and node write it: no DTD, no entities, bounded in size and depth.

Not here: extras of other dialects; only the fields of `reports.py` are read. `expat` is imported late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeagent_lsp.tools.testing.reports import (
    MAX_CASES,
    CaseOutcome,
    Parsed,
    ReportBroken,
    TestCase,
    message,
    relative,
)
from codeagent_lsp.workspace.text.numbers import whole_number

if TYPE_CHECKING:
    from pyexpat import XMLParserType

_MAX_DEPTH = 64
_OUTCOMES: Mapping[str, CaseOutcome] = {"failure": "failed", "error": "error", "skipped": "skipped"}
_FRAME = re.compile(r"^(?:.*\()?([^\s:()][^:\n()]*):(\d{1,9})(?::|\)|$)", re.MULTILINE)


def parse(data: bytes, folder: str) -> Parsed:
    """Return the cases of a report in JUnit's XML; `folder` is where the tests ran, to which files are relative.
    ReportBroken if it is malformed or too large.
    """
    from xml.parsers import expat  # late: an idle server does without it

    reader, parser = _JUnitReader(folder), expat.ParserCreate()
    reader.listen(parser)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ReportBroken(f"is not whole XML (line {error.lineno})") from None
    if reader.root not in ("testsuites", "testsuite"):
        raise ReportBroken("is not JUnit XML")
    return Parsed(tuple(reader.cases))


class _JUnitReader:
    """Collects the test cases while the parser reads the file."""

    def __init__(self, folder: str) -> None:
        self.cases: list[TestCase] = []
        self.root = ""
        self._folder = folder
        self._suites: list[str] = []
        self._depth = 0
        self._case: Mapping[str, str] = {}
        self._found: list[tuple[CaseOutcome, str]] = []
        self._outcome: CaseOutcome | None = None
        self._text: list[str] = []

    def listen(self, parser: XMLParserType) -> None:
        """Register the handlers of this reader with `parser`."""
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self.root = self.root or tag
        if self._depth > _MAX_DEPTH or len(self.cases) >= MAX_CASES:
            raise ReportBroken("is larger than any test run")
        if tag == "testsuite":
            self._suites.append(attributes.get("name", ""))
        elif tag == "testcase":
            self._case, self._found = attributes, []
        elif tag in _OUTCOMES:
            self._outcome, self._text = _OUTCOMES[tag], [attributes.get("message", "")]

    def _characters(self, text: str) -> None:
        if self._outcome is not None:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag in _OUTCOMES and self._outcome is not None:
            headline, *rest = self._text
            body = "".join(rest).strip("\n")
            # pytest repeats the headline in the body; a skip has only the headline worth showing
            text = headline if self._outcome == "skipped" or not body else body
            self._found.append((self._outcome, text))
            self._outcome = None
        elif tag == "testsuite":
            self._suites.pop()
        elif tag == "testcase":
            # node gives every test the class `test`; what it belongs to are the suites around it
            owner = " > ".join(self._suites) if self._case.get("classname") == "test" else None
            self.cases.append(_case(self._case, self._found, self._folder, owner))


def _refuse(*_: object) -> None:
    raise ReportBroken("has a document type, which no test framework writes")


def _case(
    attributes: Mapping[str, str], found: list[tuple[CaseOutcome, str]], folder: str, suites: str | None
) -> TestCase:
    # A test can fail and then fail again when it is torn down: the first is what it is about.
    outcome, text = found[0] if found else ("passed", "")
    file = relative(attributes["file"], folder) if attributes.get("file") else None
    # pytest counts from 0.
    stated = whole_number(attributes.get("line", ""))
    line = stated + 1 if file and stated is not None else None
    if outcome in ("failed", "error"):
        file, line = _place(text, file, line, folder)
    name = _identity(attributes, file) if suites is None else " > ".join(filter(None, (suites, attributes.get("name"))))
    return TestCase(name, outcome, _seconds(attributes.get("time", "")), message(text), file, line)


def _place(text: str, file: str | None, line: int | None, folder: str) -> tuple[str | None, int | None]:
    """Return the place of a failure: the last frame in the test's own file, else the test's place."""
    places = [(relative(match[1], folder), int(match[2])) for match in _FRAME.finditer(text)]
    if file is None:
        return places[-1] if places else (None, None)
    return next(((file, number) for name, number in reversed(places) if name == file), (file, line))


def _identity(attributes: Mapping[str, str], file: str | None) -> str:
    """Return pytest's id of a test if possible: `tests/test_a.py::TestB::test_c[1]`."""
    name, owner = attributes.get("name", "?"), attributes.get("classname", "")
    declared = attributes.get("file", "")
    module = declared.removesuffix(".py").replace("/", ".")
    if declared.endswith(".py") and owner.startswith(module):
        return "::".join([declared, *filter(None, owner[len(module) :].split(".")), name])
    if not owner and file and name.replace(".", "/") + ".py" == file:
        return file
    return f"{owner}::{name}" if owner else name


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
