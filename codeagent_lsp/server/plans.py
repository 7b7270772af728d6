"""Shows the plans of runs as virtual documents, made when first requested and kept up to date from then on, and reads
what the user has made of a plan there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.transcript import inert
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import MARKS, Plan, PlanStep, StepEdit
from codeagent_lsp.tools.plan.written_steps import ListedStep, listed_steps

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.server.virtual_documents import VirtualDocuments

_CHANGES = (
    events.PlanCreated,
    events.PlanModified,
    events.PlanApproved,
    events.PlanCompleted,
    events.StepStarted,
    events.StepCompleted,
    events.StepError,
)


class PlanDocuments:
    """The pages of plans of one server; as a listener for events it keeps shown ones up to date. `record` finds a run,
    SessionError when there is none. `buffers` are the documents that the user has open.
    """

    def __init__(
        self,
        documents: VirtualDocuments,
        record: Callable[[str], RunRecord],
        language: Callable[[], str],
        buffers: Documents,
    ) -> None:
        self._buffers = buffers
        self._documents = documents
        self._record = record
        self._language = language
        self._shown: dict[str, list[list[ListedStep]]] = {}  # by run, the list of each page that was shown

    def observe(self, event: events.Event) -> None:
        """Update the page of a plan that was shown, if the event changes the plan; others are ignored."""
        if event.run_id in self._shown and isinstance(event, _CHANGES):
            self.put(event.run_id)

    def put(self, run_id: str) -> str:
        """Write the page of a run's plan and return its text. SessionError for an unknown run, or one without a
        plan.
        """
        page = plan_page(self._record(run_id), self._language(), writable=self.writable)
        if not page:
            raise SessionError("plan.none", run=run_id)
        self._shown.setdefault(run_id, []).append(list(listed_steps(page)))
        self._documents.put(plan_name(run_id), page)
        return page

    @property
    def writable(self) -> bool:
        """Whether the user can edit the pages."""
        return self._documents.writable

    async def offer(self, run_id: str) -> None:
        """Open the document of a plan that has not begun, unless the client has a better place to change it."""
        if self.writable or not self._documents.client_has_windows:
            await self.show(run_id)

    async def show(self, run_id: str, *, take_focus: bool = False) -> bool:
        """Write and open the page of a run's plan, which gets the keyboard with `take_focus`, wait at most 10 s, and
        return whether the client opened it. SessionError for a run without a plan.
        """
        self.put(run_id)
        return await self._documents.show(plan_name(run_id), take_focus=take_focus)

    def written(self, run_id: str) -> list[StepEdit] | None:
        """Return the steps that have not begun as the user has written them into the document, saved or not; None
        without a change.
        """
        name, plan = plan_name(run_id), self._record(run_id).plan
        buffer = self._buffers.get(self._documents.uri(name))
        words = buffer.text if buffer is not None else self._documents.written(name)
        if plan is None or words is None or list(listed_steps(words)) in self._shown.get(run_id, ()):
            return None  # perhaps an older page, which the editor has not read anew
        return step_edits(words, plan, self._language())


def plan_name(run_id: str) -> str:
    """Return the name of a run's plan among the virtual documents: `plan/ID.md`."""
    return f"plan/{run_id}.md"


# Renders a run's plan as Markdown: the steps with their states, and the document that the user approves. Pure.


def plan_page(record: RunRecord, language: str, *, writable: bool = False) -> str:
    """Return the page of a run as Markdown: the steps of its plan, its plan document; in the language `en` or `zh-cn`,
    made inert; '' if it has neither. With `writable` it says that the list can be edited before the plan begins.
    """
    parts = []
    if record.plan is not None:
        parts.append(_steps(record.plan, language, writable=writable))
    if record.document is not None:
        state = text("plan_page.approved" if record.document.approved else "plan_page.unapproved", language)
        parts.append(f"{record.document.markdown}\n*{state}*\n")
    # its words are the model's
    return inert("\n".join(parts))


def _steps(plan: Plan, language: str, *, writable: bool) -> str:
    done = sum(step.state == "completed" for step in plan.steps)
    progress = text("plan_page.progress", language, done=done, count=len(plan.steps), percent=plan.steps.progress)
    if writable and all(step.state == "pending" for step in plan.steps):
        progress = text("plan_page.edit", language)
    return f"# {_line(plan.goal)}\n\n{progress}\n\n{_list(plan, language)}"


def _list(plan: Plan, language: str) -> str:
    return "".join(_step(number, step, language) for number, step in enumerate(plan.steps, 1))


def _step(number: int, step: PlanStep, language: str) -> str:
    plain = step.state in ("pending", "completed")
    mark = MARKS[step.state] if plain else "[ ]"
    state = "" if plain else " *" + text(f"plan_page.{step.state}", language) + "*"
    id_note = "" if step.step_id == str(number) else text("plan_page.id", language, step=step.step_id)
    lines = [f"- {mark} {number}. **{_line(step.title)}**{id_note}{state}"]
    lines += [f"  {_line(words)}" for words in (step.description, step.error) if words.strip()]
    return "\n".join(lines) + "\n"


def _line(words: str) -> str:
    return " ".join(words.split())


# Reads the steps of such a page after the user has written in it, in any form of a list. Pure.


def step_edits(page: str, plan: Plan, language: str) -> list[StepEdit] | None:
    """Return the steps that have not begun as an edited page has them, in the page's order; a step is known again by
    its title, else by its number. None if nothing differs from the plan.
    """
    # Read from what is shown, as characters may be escaped there.
    shown = list(listed_steps(inert(_list(plan, language))))
    items = list(listed_steps(page))
    if items == shown or len(shown) != len(plan.steps):
        return None
    known = {item.title: step for item, step in zip(reversed(shown), reversed(plan.steps), strict=True)}
    described = {step.step_id: item.description for item, step in zip(shown, plan.steps, strict=True)}
    kept = {known[item.title].step_id for item in items if item.title in known}
    by_number = {item.number: step for item, step in zip(shown, plan.steps, strict=True) if step.step_id not in kept}
    edits: list[StepEdit] = []
    for item in items:
        same = known.pop(item.title, None)
        step = same or by_number.pop(item.number, None)
        if step is None:
            edits.append(StepEdit("", item.title, item.description))
        elif step.state == "pending":
            title = step.title if same else item.title
            description = None if item.description == described[step.step_id] else item.description
            edits.append(StepEdit(step.step_id, title, description))
    return edits
