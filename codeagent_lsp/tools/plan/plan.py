"""A plan as an immutable value, a goal and ordered steps with their states, and the port by which tools change it; and
the plan document that a user approves before work starts: Markdown under a title.

`SECTIONS` are the expected headings of the document, as keys of the catalogue. The values are pure. Not here: the tools
(`plan_tools.py`), carrying it out, writing and approving it (`session/plan_execution.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from codeagent_lsp.errors import SessionError
from codeagent_lsp.texts import LANGUAGES, text

MOST_REPLANS = 2

StepState = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]

ENDED: tuple[StepState, ...] = ("completed", "skipped")
MARKS: Mapping[StepState, str] = {
    "pending": "[ ]",
    "running": "[>]",
    "completed": "[x]",
    "failed": "[!]",
    "skipped": "[-]",
    "cancelled": "[/]",
}

UpdateAction = Literal["replace", "append", "section"]
SECTIONS = ("plan_page.explored", "plan_page.critical", "plan_page.approach")
MOST_CHARACTERS = 100_000
LEVEL = 2
"""The level of a section's heading: that of the title is one."""

MOST_STEPS, TITLE_CHARS = 30, 200
_BOLD = re.compile(r" {0,3}(\*\*|__)[^*_\n]+\1[:：]?[ \t]*$")
_UNDERLINE = re.compile(r"[ ]{0,3}(={3,}|-{3,})[ \t]*$")
_NUMBER = re.compile(r"^\d{1,2}(?:\.\d{1,2})*[.)、]\s*(?=\S)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: its id, unique in the plan, its title and description, and its state. `expected_tools` are
    names of tools; `error` is the reason why it failed or was skipped, '' for none.
    """

    step_id: str
    title: str
    description: str = ""
    expected_tools: tuple[str, ...] = ()
    state: StepState = "pending"
    error: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return the step as plain data, as in events, an object with the fields of this class; an empty error is left
        out.
        """
        data: dict[str, Any] = {
            "step_id": self.step_id,
            "title": self.title,
            "description": self.description,
            "expected_tools": list(self.expected_tools),
            "state": self.state,
        }
        return {**data, "error": self.error} if self.error else data

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> PlanStep:
        """Return the step from the result of `to_data`. KeyError or ValueError if it is malformed."""
        state = data.get("state", "pending")
        if state not in MARKS:
            raise ValueError(f"no state of a step: {state!r}")
        tools = tuple(map(str, data.get("expected_tools", ())))
        described = str(data.get("description", ""))
        return PlanStep(str(data["step_id"]), str(data["title"]), described, tools, state, str(data.get("error", "")))


class PlanSteps(tuple[PlanStep, ...]):
    """The steps of a plan in order, as an immutable value; their ids differ."""

    __slots__ = ()

    @staticmethod
    def drafted(drafts: Iterable[StepDraft], first: int = 1) -> PlanSteps:
        """Return new steps, in the order of the drafts, pending, whose ids are the numbers from `first` on, as
        texts.
        """
        return PlanSteps(
            PlanStep(str(number), draft.title, draft.description, draft.expected_tools)
            for number, draft in enumerate(drafts, first)
        )

    @staticmethod
    def from_data(data: Iterable[Mapping[str, Any]]) -> PlanSteps:
        """Return the steps from the result of `to_data`. KeyError or ValueError if one is malformed."""
        return PlanSteps(map(PlanStep.from_data, data))

    def to_data(self) -> tuple[dict[str, Any], ...]:
        """Return the steps as in events, each with its `index`, from 1."""
        return tuple({"index": number, **step.to_data()} for number, step in enumerate(self, 1))

    def by_id(self, step_id: str) -> PlanStep:
        """Return the step with that id. SessionError if there is none."""
        found = next((step for step in self if step.step_id == step_id), None)
        if found is None:
            known = ", ".join(step.step_id for step in self)
            raise SessionError("plan.no_step", step=step_id, known=known)
        return found

    def number(self, step_id: str) -> int:
        """Return the 1-based number of a step. SessionError if there is none with that id."""
        return self.index(self.by_id(step_id)) + 1

    def label(self, step_id: str) -> str:
        """Return the label of a step for people: "2/5 title". SessionError if there is none with that id."""
        return f"{self.number(step_id)}/{len(self)} {self.by_id(step_id).title}"

    @property
    def next(self) -> PlanStep | None:
        """The first step that is neither completed nor skipped; None if there is none left."""
        return next((step for step in self if step.state not in ENDED), None)

    @property
    def unused(self) -> int:
        """The smallest number from which on no step has it as its id."""
        # As we make them, ids are numbers; those of a stored plan need not be.
        return 1 + max((int(step.step_id) for step in self if step.step_id.isdecimal()), default=0)

    @property
    def running(self) -> PlanStep | None:
        """The running step; None if there is none."""
        return next((step for step in self if step.state == "running"), None)

    @property
    def progress(self) -> int:
        """The share of ended steps in percent, 0 to 100; 100 without steps."""
        ended = sum(step.state in ENDED for step in self)
        return 100 * ended // len(self) if self else 100

    def changed(self, step_id: str, state: StepState, error: str = "") -> PlanSteps:
        """Return the steps with another state and error of one. SessionError if there is no such step."""
        self.by_id(step_id)
        return PlanSteps(replace(step, state=state, error=error) if step.step_id == step_id else step for step in self)


@dataclass(frozen=True, slots=True)
class Plan:
    """The goal and its steps in order, as an immutable value. `replans` counts the changes by the model after failures;
    `complexity` is the model's estimate.
    """

    goal: str
    steps: PlanSteps
    complexity: str = ""
    replans: int = 0

    @staticmethod
    def create(goal: str, drafts: Iterable[StepDraft], complexity: str = "") -> Plan:
        """Return a new plan; its steps are named "1", "2" and so on."""
        return Plan(goal, PlanSteps.drafted(drafts), complexity)

    @property
    def status(self) -> StepState:
        """The state of the whole: that of the step that runs or stopped it, else `pending` while steps are left, else
        `completed`.
        """
        for state in ("running", "failed", "cancelled"):
            if any(step.state == state for step in self.steps):
                return state
        return "completed" if self.steps.next is None else "pending"

    @property
    def may_replan(self) -> bool:
        """Whether the model may change the plan once more, which it may twice."""
        return self.replans < MOST_REPLANS

    def started(self, step_id: str) -> Plan:
        """Return the plan with a step running. SessionError if it is not the next one, or one is running already."""
        self._must_be_next(step_id)
        return self._with(step_id, "running")

    def completed(self, step_id: str) -> Plan:
        """Return the plan with a step completed. SessionError if there is none with that id."""
        return self._with(step_id, "completed")

    def failed(self, step_id: str, error: str) -> Plan:
        """Return the plan with a step failed, for this reason. SessionError if there is none with that id."""
        return self._with(step_id, "failed", error)

    def cancelled(self) -> Plan:
        """Return the plan with the running step cancelled; unchanged if none is running."""
        running = self.steps.running
        return self if running is None else self._with(running.step_id, "cancelled")

    def retried(self, step_id: str) -> Plan:
        """Return the plan with a step pending again. SessionError if it is completed or running, or not the
        next one.
        """
        self._must_be_open(step_id, "completed", "running")
        opened = self._with(step_id, "pending", self.steps.by_id(step_id).error)
        # asked of the opened plan, as only a step that is open can be the next one
        opened._must_be_next(step_id)
        return opened

    def skipped(self, step_id: str, reason: str = "") -> Plan:
        """Return the plan with a step skipped; without a `reason`, its error stays. SessionError if it is completed or
        unknown.
        """
        self._must_be_open(step_id, "completed")
        return self._with(step_id, "skipped", reason or self.steps.by_id(step_id).error)

    def replanned(self, drafts: Iterable[StepDraft]) -> Plan:
        """Return the plan with the pending steps replaced, and `replans` one higher, whatever `may_replan` says; steps
        already tried stay, failed and cancelled ones as skipped.
        """
        # A step that stayed failed would hold up the new ones: a step begins only when all before it have ended.
        kept = tuple(
            replace(step, state="skipped") if step.state in ("failed", "cancelled", "running") else step
            for step in self.steps
            if step.state != "pending"
        )
        steps = PlanSteps((*kept, *PlanSteps.drafted(drafts, self.steps.unused)))
        return replace(self, steps=steps, replans=self.replans + 1)

    def arranged(self, wanted: Iterable[StepEdit]) -> Plan:
        """Return the plan with the steps that have not begun as wanted: in this order, with these words, without those
        that are not named. Steps that have begun stay. SessionError if a step is unknown, has begun, is named twice or
        has no title, or if no step is left.
        """
        kept = [step for step in self.steps if step.state != "pending"]
        arranged: list[PlanStep] = []
        unused = self.steps.unused
        for edit in wanted:
            title = " ".join(edit.title.split())
            if not title:
                raise SessionError("plan.no_title", number=len(arranged) + 1)
            if not edit.step_id:
                arranged.append(PlanStep(str(unused), title, edit.description or ""))
                unused += 1
                continue
            step = self.steps.by_id(edit.step_id)
            if step.state != "pending" or any(other.step_id == step.step_id for other in arranged):
                raise SessionError("plan.begun", step=self.steps.label(step.step_id))
            description = step.description if edit.description is None else edit.description
            arranged.append(replace(step, title=title, description=description))
        if not (kept or arranged):
            raise SessionError("plan.empty")
        return replace(self, steps=PlanSteps((*kept, *arranged)))

    def text(self) -> str:
        """Return the plan for the model: the goal and a line for each step with its state, id, title and error."""
        lines = [f"{MARKS[step.state]} {step.step_id}. {step.title}{_why(step)}" for step in self.steps]
        return "\n".join([f"Goal: {self.goal}", *lines])

    def _must_be_open(self, step_id: str, *closed: StepState) -> None:
        state = self.steps.by_id(step_id).state
        if state in closed:
            raise SessionError("plan.not_open", step=self.steps.label(step_id), state=state)

    def _must_be_next(self, step_id: str) -> None:
        following = self.steps.next
        if following is None or following.step_id != step_id or following.state == "running":
            awaited = self.steps.label(following.step_id) if following else "-"
            raise SessionError("plan.order", step=self.steps.label(step_id), next=awaited)

    def _with(self, step_id: str, state: StepState, error: str = "") -> Plan:
        return replace(self, steps=self.steps.changed(step_id, state, error))


def _why(step: PlanStep) -> str:
    return f" ({step.state}: {step.error})" if step.error else ""


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as the model proposes it; `expected_tools` are the names of tools it expects to need."""

    title: str
    description: str = ""
    expected_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepEdit:
    """A step that has not begun, as the user wants it; '' as `step_id` is a new one, and a description of None stays as
    it is.
    """

    step_id: str
    title: str
    description: str | None = None


class Planner(Protocol):
    """Port: the plans of one run. Every method returns a sentence for the model; ToolRetry says what to correct."""

    @property
    def plan_id(self) -> str:
        """The id of the run's plan document, which the tools give to the model."""

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        """Make a plan of these steps, which the run works on from now on; return what to do next."""

    def enter(self, title: str) -> str:
        """Begin a plan document with this title; only reading is allowed until the user approves it."""

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        """Change the plan document: replace or append `content`, or write it as the section `section`."""

    async def exit(self) -> str:
        """Ask the user to approve the plan document and wait; return the sentence for the model on what to do now."""


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan document as an immutable value. `body` is Markdown without the title; `approved` is the user's last
    decision.
    """

    title: str
    body: str = ""
    approved: bool = False

    @staticmethod
    def parse(markdown: str) -> PlanDocument:
        """Return a document that is not approved; its title is the first line of the Markdown, with or without `#`."""
        title, _, body = markdown.partition("\n")
        return PlanDocument(title.removeprefix("# ").strip(), body.strip())

    @property
    def markdown(self) -> str:
        """The whole document as Markdown."""
        return f"# {self.title}\n\n{self.body.strip()}\n" if self.body.strip() else f"# {self.title}\n"

    def replaced(self, content: str) -> PlanDocument:
        """Return the document with another body, cut at 100,000 characters, and not approved any more, without white
        space around it; a first line that repeats the title is dropped.
        """
        lines = content.strip().splitlines()
        if lines and lines[0].strip() == f"# {self.title}":
            lines = lines[1:]
        return self._with("\n".join(lines).strip())

    def appended(self, content: str) -> PlanDocument:
        """Return the document with text appended as a new paragraph, not approved any more, its body cut at 100,000
        characters.
        """
        return self._with(f"{self.body}\n\n{content.strip()}".strip())

    def with_section(self, name: str, content: str) -> PlanDocument:
        """Return the document with one section (`name`, in any case, with or without `#`) replaced, or appended with a
        heading of level two if it is missing.

        All sections of that name are replaced by one. A heading that repeats the name is dropped from `content`, and
        its other headings are put below the section's, so that they are a part of it when it is replaced again.
        """
        wanted = name.strip().lstrip("#").strip()
        before, after, level = _around(self.body, wanted)
        written = f"{'#' * level} {wanted}\n\n{_below(content, wanted, level, self.title)}".strip()
        return self._with("\n\n".join(filter(None, (before, written, after))))

    def has_section(self, name: str) -> bool:
        """Return whether there is a section of this name, ignoring case, a number before it, and marks of Markdown
        around it.
        """
        return any(heading.name == _plain(name) for heading in _headings(self.body.splitlines()))

    def with_explored(self, files: Iterable[str], language: str) -> PlanDocument:
        """Return the document with a section, headed in this language, that lists these files (paths as shown), unless
        it has such a section in any language.
        """
        # In any: the user's language may be another one than when the plan was begun.
        listed = "\n".join(f"- `{name}`" for name in dict.fromkeys(files))
        if not listed or any(self.has_section(text(SECTIONS[0], known)) for known in LANGUAGES):
            return self
        return self.with_section(text(SECTIONS[0], language), listed)

    def _with(self, body: str) -> PlanDocument:
        # An approval is for the words that the user has read.
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
        mark = FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line[mark.end() :].strip() else fence
        elif mark:
            fence = mark[1]
        elif match := _HEADING.match(line):
            found.append(_Heading(number, len(match[1]), _plain(match[2])))
        elif (level := _underline_level(lines, number)) is not None:
            found.append(_Heading(number, level, _plain(line)))
    return found


def _underline_level(lines: Sequence[str], number: int) -> int | None:
    """Return the level of a heading that the line below makes of a line, by `===` or `---`; None if it makes none."""
    below = _UNDERLINE.match(lines[number + 1]) if number + 1 < len(lines) else None
    alone = number == 0 or not lines[number - 1].strip()
    if below is None or not alone or not lines[number].strip() or not lines[number].lstrip()[0].isalnum():
        return None
    return 1 if below[1].startswith("=") else 2


def _around(body: str, name: str) -> tuple[str, str, int]:
    """Return the text before and after the sections of a name, and the level of the first; all text before it, and
    level two, if there is none. The names of `SECTIONS` in all languages are one.
    """
    lines = body.splitlines()
    headings = _headings(lines)
    same = _same_names(name)
    sections = [heading for heading in headings if heading.name in same]
    # a heading further down with the same name is a part of another section
    sections = [heading for heading in sections if heading.level <= LEVEL] or sections[:1]
    if not sections:
        # Some models write headings in bold; where none is written as one, such a line is.
        bold = [_Heading(number, LEVEL, _plain(line)) for number, line in enumerate(lines) if _BOLD.match(line)]
        headings = sorted([*headings, *bold], key=lambda heading: heading.line)
        sections = [heading for heading in bold if heading.name in same][:1]
        # All of them are, or the next one would be taken for a part of this section once it has a heading.
        for heading in bold if sections else ():
            lines[heading.line] = f"{'#' * LEVEL} {lines[heading.line].strip(' *_:：')}"
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


def _below(content: str, name: str, level: int, title: str) -> str:
    """Return a section's text without headings that repeat its name or the title; its others are below `level`."""
    lines = content.strip().splitlines()
    repeats = {*_same_names(name), _plain(title)}
    while lines and _plain(lines[0].strip().lstrip("#")) in repeats:
        height = 2 if _underline_level(lines, 0) is not None else 1
        lines = "\n".join(lines[height:]).strip("\n").splitlines()
    headings = _headings(lines)
    lower = level + 1 - min((heading.level for heading in headings), default=level + 1)
    for heading in headings if lower > 0 else ():
        # Markdown has no more than six levels.
        marks = "#" * min(6, heading.level + lower)
        if _underline_level(lines, heading.line) is not None:
            lines[heading.line + 1] = ""
        lines[heading.line] = f"{marks} {lines[heading.line].lstrip().lstrip('#').strip()}"
    return "\n".join(lines).strip()


def _in_all_languages(key: str) -> set[str]:
    return {_plain(text(key, language)) for language in LANGUAGES}


def _same_names(name: str) -> set[str]:
    """Return the names of a section: those of `SECTIONS` in all languages are one."""
    return next((all_of for all_of in map(_in_all_languages, SECTIONS) if _plain(name) in all_of), {_plain(name)})


def _plain(heading: str) -> str:
    return _NUMBER.sub("", heading.strip(" \t*_#:：")).strip(" \t*_#:：").casefold()
