"""What a session knows: the conversation, the files in focus, its runs with their plans and changes, what was told
and what may be done. Values and plain state, no effects.

Its stored form is the session's events: `replay.py` makes an equal one of them. Not here: stamping and storing events
(`session.py`), what a run does (`run.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.focus import FocusedFile, FocusedFiles
from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.messages import Message
from codeagent_lsp.session.conversation.repo_maps import Overviews
from codeagent_lsp.session.memory.background import Background
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.plan.plan import Plan
from codeagent_lsp.tools.plan.plan_document import PlanDocument
from codeagent_lsp.tools.todos.todo_list import TodoList, render
from codeagent_lsp.workspace.changes.changeset import Changeset


@dataclass(frozen=True, slots=True)
class AppliedPart:
    """Changes that are in the user's buffers, and the plan's step in which they got there ('' without a plan)."""

    changeset: Changeset
    step_id: str = ""


@dataclass(frozen=True, slots=True)
class StepMark:
    """How things stood before a step: what a roll back brings back."""

    plan: Plan
    staged: Changeset


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction in a run left: `messages` stand for the run's own first `own` messages and for the first
    `base` of the session, as long as that is of the same `generation`.
    """

    messages: tuple[Message, ...]
    own: int
    base: int
    generation: int


@dataclass(slots=True)
class RunRecord:
    """What is known of a run: `staged` waits for a decision, `applied` (oldest first) can be undone.

    `step_id` is the step that was started last, `marks` tell how it was before each step, `document` is the
    written plan. The first `joined` messages are part of the session's conversation already; `messages`
    are always all of the run's own, `compacted` is what the next run gets in the place of some. `torn` is a run whose
    process is gone while the file does not say so yet; `unanswered` are the questions that were open then.
    """

    run_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    staged: Changeset = field(default_factory=Changeset)
    applied: list[AppliedPart] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    joined: int = 0
    torn: bool = False
    compacted: Compacted | None = None
    unanswered: dict[str, events.ApprovalRequested | events.QuestionAsked] = field(default_factory=dict)
    plan: Plan | None = None
    step_id: str = ""
    marks: dict[str, StepMark] = field(default_factory=dict)
    document: PlanDocument | None = None

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """Files that it has changed, applied or still staged."""
        applied = (path for part in self.applied for path in part.changeset.paths)
        return tuple(dict.fromkeys((*applied, *self.staged.paths)))

    def roll_marks_back(self, step_id: str) -> tuple[str, ...]:
        """Forget how it was before that step and all that began after it; returns these steps."""
        begun = list(self.marks)
        gone = tuple(begun[begun.index(step_id) :])
        for name in gone:
            del self.marks[name]
        self.step_id = next(reversed(self.marks), "")
        return gone


@dataclass(slots=True)
class CodeAgentContext:
    """One per session. `conversation` is what ended runs have left, `generation` counts how often its beginning was
    replaced by a compaction; `runs` hold plans and changes; `background` is what was told of the project's
    instructions and memory, `overviews` of its code; `environment` is where the latest run works, `approvals` what
    the user allows.
    """

    conversation: list[Message] = field(default_factory=list)
    generation: int = 0
    runs: dict[str, RunRecord] = field(default_factory=dict)
    todos: TodoList = field(default_factory=TodoList)
    focused: FocusedFiles = field(default_factory=FocusedFiles)
    background: Background = field(default_factory=Background)
    overviews: Overviews = field(default_factory=Overviews)
    environment: Environment = Environment(())
    approvals: Approvals = field(default_factory=Approvals)

    @property
    def title(self) -> str:
        """The first task's title."""
        return next((run.title for run in self.runs.values() if run.title), "")

    def begin(self, record: RunRecord) -> None:
        """A new run."""
        self.runs[record.run_id] = record

    def join(self, record: RunRecord) -> None:
        """A run's part of the conversation becomes the session's; a run that went on later adds what is new.

        What it made shorter stays so, unless another run has replaced the same messages meanwhile.
        """
        compacted, record.compacted = record.compacted, None
        if compacted is not None and compacted.generation == self.generation:
            later = self.conversation[compacted.base :]
            self.conversation = [*compacted.messages, *record.messages[compacted.own :], *later]
            self.generation += 1
        else:
            self.conversation.extend(record.messages[record.joined :])
        record.joined = len(record.messages)

    def kept(self, record: RunRecord, name: Callable[[str], str]) -> KeptFacts:
        """What every compaction in that run says again; `name` tells how a path is called."""
        items, plan = self.todos.items, record.plan
        changed = tuple(map(name, record.changed_paths))
        return KeptFacts(render(items) if items else "", plan.text() if plan else "", changed, self.focused)

    def stored_focus(self) -> list[dict[str, object]]:
        """The files in focus as events store them."""
        return [{"path": file.path, "editing": file.editing} for file in self.focused.files]

    def restore(self, event: events.StateChanged) -> None:
        """What an event stored; the texts of files come when they are needed."""
        if event.todos is not None:
            self.todos.restore(event.todos)
        if event.focused is not None:
            files = tuple(FocusedFile(str(file["path"]), "", bool(file["editing"])) for file in event.focused)
            self.focused = replace(self.focused, files=files)
