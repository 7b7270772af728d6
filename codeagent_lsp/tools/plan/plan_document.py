"""The plan document that a user approves before work starts: Markdown under a title, as an immutable value.

`SECTIONS` are its expected headings, as keys of the catalogue. Not here: who writes it and who approves it
(`session/plan/run_planner.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from codeagent_lsp.texts import LANGUAGES, text

SECTIONS = ("plan_page.explored", "plan_page.critical", "plan_page.approach")
MOST_CHARACTERS = 100_000


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
        """Return the document with one section (a heading of level two) replaced, or appended if it is missing."""
        wanted = name.strip().lstrip("#").strip()
        before, after = _around(self.body, wanted)
        written = f"## {wanted}\n\n{content.strip()}"
        return self._with("\n\n".join(filter(None, (before, written, after))))

    def has_section(self, name: str) -> bool:
        """Return whether there is a section of this name, ignoring case."""
        return any(_heading(line) == name.casefold() for line in self.body.splitlines())

    def with_explored(self, files: Iterable[str], language: str) -> PlanDocument:
        """Return the document with a list of the files read, unless it has such a section in any language."""
        listed = "\n".join(f"- `{name}`" for name in dict.fromkeys(files))
        if not listed or any(self.has_section(text(SECTIONS[0], known)) for known in LANGUAGES):
            return self
        return self.with_section(text(SECTIONS[0], language), listed)

    def _with(self, body: str) -> PlanDocument:
        return replace(self, body=body[:MOST_CHARACTERS], approved=False)


def _around(body: str, name: str) -> tuple[str, str]:
    """Return the text before and after a section; all text before it if there is none."""
    lines = body.splitlines()
    starts = [index for index, line in enumerate(lines) if _heading(line) == name.casefold()]
    if not starts:
        return body.strip(), ""
    following = (index for index in range(starts[0] + 1, len(lines)) if _heading(lines[index]) is not None)
    end = next(following, len(lines))
    return "\n".join(lines[: starts[0]]).strip(), "\n".join(lines[end:]).strip()


def _heading(line: str) -> str | None:
    """Return the case-folded text of a heading of level one or two; None for other lines."""
    level = len(line) - len(line.lstrip("#"))
    return line[level:].strip().casefold() if level in (1, 2) and line[level : level + 1] == " " else None
