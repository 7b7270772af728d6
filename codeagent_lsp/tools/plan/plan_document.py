"""The plan document that a user approves before work starts: Markdown under a title, as an immutable value.

`SECTIONS` are its expected headings, as keys of the catalogue. Not here: who writes it and who approves it
(`session/plan/run_planner.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codeagent_lsp.texts import LANGUAGES, text

SECTIONS = ("plan_page.explored", "plan_page.critical", "plan_page.approach")
MOST_CHARACTERS = 100_000
LEVEL = 2
"""The level of a section's heading: that of the title is one."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan document. `body` is Markdown; `approved` is the user's last decision."""

    title: str
    body: str = ""
    approved: bool = False

    @staticmethod
    def parse(markdown: str) -> PlanDocument:
        """Parse a document from its Markdown."""
        title, _, body = markdown.partition("\n")
        return PlanDocument(title.removeprefix("# ").strip(), body.strip())

    @property
    def markdown(self) -> str:
        """The whole document as Markdown."""
        return f"# {self.title}\n\n{self.body.strip()}\n" if self.body.strip() else f"# {self.title}\n"

    def replaced(self, content: str) -> PlanDocument:
        """Return the document with another body; a heading that repeats the title is dropped."""
        lines = content.strip().splitlines()
        if lines and lines[0].strip() == f"# {self.title}":
            lines = lines[1:]
        return self._with("\n".join(lines).strip())

    def appended(self, content: str) -> PlanDocument:
        """Return the document with text appended."""
        return self._with(f"{self.body}\n\n{content.strip()}".strip())

    def with_section(self, name: str, content: str) -> PlanDocument:
        """Return the document with one section replaced, or appended with a heading of level two if it is missing.

        All sections of that name are replaced by one. A heading that repeats the name is dropped from `content`, and
        its other headings are put below the section's, so that they are a part of it when it is replaced again.
        """
        wanted = name.strip().lstrip("#").strip()
        before, after, level = _around(self.body, wanted)
        written = f"{'#' * level} {wanted}\n\n{_below(content, wanted, level)}".strip()
        return self._with("\n\n".join(filter(None, (before, written, after))))

    def has_section(self, name: str) -> bool:
        """Return whether there is a section of this name, ignoring case."""
        return any(heading.name == _plain(name) for heading in _headings(self.body.splitlines()))

    def with_explored(self, files: Iterable[str], language: str) -> PlanDocument:
        """Return the document with a list of the files read, unless it has such a section in any language."""
        listed = "\n".join(f"- `{name}`" for name in dict.fromkeys(files))
        if not listed or any(self.has_section(text(SECTIONS[0], known)) for known in LANGUAGES):
            return self
        return self.with_section(text(SECTIONS[0], language), listed)

    def _with(self, body: str) -> PlanDocument:
        return replace(self, body=body[:MOST_CHARACTERS], approved=False)


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading: the 0-based number of its line, its level, and its text without decoration, case-folded."""

    line: int
    level: int
    name: str


def _headings(lines: Sequence[str]) -> list[_Heading]:
    """Return the headings of a Markdown text; what looks like one inside a code block is none."""
    found, fence = [], ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line[mark.end() :].strip() else fence
        elif mark:
            fence = mark[1]
        elif match := _HEADING.match(line):
            found.append(_Heading(number, len(match[1]), _plain(match[2])))
    return found


def _around(body: str, name: str) -> tuple[str, str, int]:
    """Return the text before and after the sections of a name, and the level of the first; all text before it, and
    level two, if there is none. The names of `SECTIONS` in all languages are one.
    """
    lines = body.splitlines()
    headings = _headings(lines)
    same = next((all_of for all_of in map(_in_all_languages, SECTIONS) if _plain(name) in all_of), {_plain(name)})
    sections = [heading for heading in headings if heading.name in same]
    # a heading further down with the same name is a part of another section
    sections = [heading for heading in sections if heading.level <= LEVEL] or sections[:1]
    if not sections:
        return body.strip(), "", LEVEL
    level = max(LEVEL, sections[0].level)
    inside: set[int] = set()
    for section in sections:
        following = (each.line for each in headings if each.line > section.line and each.level <= level)
        inside |= set(range(section.line, next(following, len(lines))))
    outside = [number for number in range(len(lines)) if number not in inside]
    first = sections[0].line
    before = "\n".join(lines[number] for number in outside if number < first)
    return before.strip(), "\n".join(lines[number] for number in outside if number > first).strip(), level


def _below(content: str, name: str, level: int) -> str:
    """Return a section's text without a heading that repeats its name, and with its headings below `level`."""
    lines = content.strip().splitlines()
    if lines and _plain(lines[0].lstrip("#")) == _plain(name):
        lines = "\n".join(lines[1:]).strip("\n").splitlines()
    headings = _headings(lines)
    lower = level + 1 - min((heading.level for heading in headings), default=level + 1)
    for heading in headings if lower > 0 else ():
        marks = "#" * min(6, heading.level + lower)
        lines[heading.line] = f"{marks} {lines[heading.line].lstrip().lstrip('#').strip()}"
    return "\n".join(lines).strip()


def _in_all_languages(key: str) -> set[str]:
    return {_plain(text(key, language)) for language in LANGUAGES}


def _plain(heading: str) -> str:
    return heading.strip(" \t*_#:：").casefold()
