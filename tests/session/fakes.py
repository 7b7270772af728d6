"""What a run needs, as fakes: buffers in a dictionary, an editor over them, a user who answers, a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import SessionError
from codeagent_lsp.events import Event, RunCompleted, StatusChanged
from codeagent_lsp.index.port import Indexing
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.session.inbox import Answer, Inbox, OpenQuestion
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.memory.knowledge import knowledge_in
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.services import (
    ModelPorts,
    Services,
    SessionEnvironments,
    SessionStorage,
    Shells,
    UserPorts,
    WorkspacePorts,
)
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from codeagent_lsp.tools.permissions.policy import Mode
from codeagent_lsp.tools.plan.plan import StepEdit
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.workspace.changes.changeset import Applied, ApplyOutcome, Changeset, Current
from codeagent_lsp.workspace.files.file_view import FileText, FileView, StagedView
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.shells import FakeEnvironments
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

MIDDLING = ModelInfo("middling", "scripted", facts=window_known(16_384), tool_calling="native")
"""A model with tools whose window is not that of a capable one."""


class FakeEditor:
    """The `Editor` port over buffers; `forced` says what it pretends, `delay` is in seconds."""

    def __init__(self, buffers: FakeBuffers) -> None:
        self.buffers = buffers
        self.forced: ApplyOutcome | None = None
        self.delay = 0.0
        self.failure: Exception | None = None
        self.applied: list[Changeset] = []
        self.unsaved: set[str] = set()
        self.may_lose: list[frozenset[str]] = []

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        self.may_lose.append(may_lose)
        await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        if self.forced in ("none", "unknown"):
            unconfirmed = changeset.paths if self.forced == "unknown" else ()
            return Applied(self.forced, left=changeset, reason="the editor said no", unconfirmed=unconfirmed)
        current = {
            change.moved_from or change.path: self._current(change.path, change.moved_from) for change in changeset
        }
        rebased = changeset.rebase(current)
        for change in rebased.changeset:
            if change.moved_from:
                self.buffers.documents.pop(change.moved_from, None)
            if change.text is None:
                self.buffers.documents.pop(change.path, None)
            else:
                self.buffers.open(change.path, change.text, (change.version or 0) + 1)
        self.applied.append(rebased.changeset)
        outcome: ApplyOutcome = "partial" if rebased.conflicts else "full"
        moved = {change.path for change in rebased.changeset if change.moved_from}
        left = Changeset(
            tuple(
                replace(c, moved_from=None) if c.path in moved else c
                for c in changeset
                if any(item.path == c.path for item in rebased.conflicts)
            )
        )
        return Applied(outcome, rebased.changeset, left, rebased.conflicts)

    async def open_unclear(self, paths: Iterable[str]) -> None:
        return None

    def set_mode(self, path: str, *, runs: bool) -> bool:
        return False

    def still_shows(self, path: str) -> bool:
        return False

    def has_unsaved_text(self, path: str) -> bool:
        return path in self.unsaved

    def _current(self, path: str, moved_from: str | None) -> Current:
        document = self.buffers.get_by_path(moved_from or path)
        return Current(None) if document is None else Current(document.text, document.version)


class FakeUser:
    """A presenter that answers with the first choice named in `says`, or leaves the question open."""

    def __init__(self, says: Iterable[str] = ()) -> None:
        self.says = list(says)
        self.shown: list[OpenQuestion] = []
        self.withdrawn: list[OpenQuestion] = []
        self.inbox: Inbox | None = None

    def show(self, question: OpenQuestion) -> None:
        self.shown.append(question)
        if self.says:
            asyncio.get_running_loop().call_soon(self._answer, question, self.says.pop(0))

    def withdraw(self, question: OpenQuestion, answer: Answer) -> None:
        self.withdrawn.append(question)

    def _answer(self, question: OpenQuestion, word: str) -> None:
        assert self.inbox is not None
        try:
            self.inbox.respond(question.request_id, (word,))
        except SessionError:  # no choice of this question, or nobody waits for it any more
            if self.says and question not in self.withdrawn:
                self._answer(question, self.says.pop(0))


@dataclass
class FakePlans:
    """Pages of plans that are opened, in which nobody writes."""

    told: list[Event]
    writable: bool = False

    async def offer(self, run_id: str) -> None:
        await self.show(run_id)

    async def show(self, run_id: str, *, take_focus: bool = False) -> bool:
        self.told.append(StatusChanged(message=f"plan {run_id}"))
        return True

    def written(self, run_id: str) -> Sequence[StepEdit] | None:
        return None


@dataclass
class World:
    """One server's inside: everything a run touches, with the events it told."""

    root: Path
    buffers: FakeBuffers
    editor: FakeEditor
    user: FakeUser
    inbox: Inbox
    store: SessionStore
    manager: SessionManager
    events: list[Event] = field(default_factory=list)
    problems: list[OSError] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def open(self, name: str, text: str) -> str:
        self.buffers.open(self.path(name), text)
        return self.path(name)

    def text(self, name: str) -> str | None:
        document = self.buffers.get_by_path(self.path(name))
        return None if document is None else document.text

    def read(self, path: str) -> FileText:
        """A file as the user sees it now."""
        return FileView(Roots([str(self.root)]), self.buffers, FakeStaged()).read(path)

    def script(self, *replies: ScriptedReply) -> ScriptedModel:
        model = ScriptedModel(replies)
        self.models["model"] = model
        return model

    async def run(self, task: str = "do it", session_id: str | None = None) -> RunCompleted:
        run_id = self.manager.start(RunRequest("run", task, task), session_id)
        return await self.finished(run_id)

    async def finished(self, run_id: str) -> RunCompleted:
        await until(lambda: run_id not in self.manager.runs.active())
        await asyncio.sleep(0)
        return self.completed(run_id)

    def completed(self, run_id: str) -> RunCompleted:
        found = [event for event in self.events if isinstance(event, RunCompleted) and event.run_id == run_id]
        assert len(found) == 1, f"run_completed came {len(found)} times"
        return found[0]

    def of(self, cls: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, cls)]


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Let others run until `condition` holds; looked at after every turn of the loop, so that nothing is missed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, "it never came"
        await asyncio.sleep(0)
        _rest(loop)


def _rest(loop: Any) -> None:
    """When nothing is ready to run, all wait for threads, processes or clocks: leave them the processor until one of
    them wakes the loop. What it hears is not consumed; a thread that tells the loop nothing is seen after 2 ms.
    """
    if not loop._ready:
        due = min((timer.when() - loop.time() for timer in loop._scheduled[:1]), default=1.0)
        loop._selector.select(min(0.002, max(0.0, due)))


STORES: list[SessionStore] = []
"""The stores of all worlds of a test, closed at its end: each holds files open."""


def world(
    root: Path,
    *replies: ScriptedReply,
    says: Iterable[str] = (),
    apply: Literal["review", "auto", "live"] = "review",
    mode: Mode = "ask",
    language: str = "en",
    state: Path | None = None,
    deadline: float = 30.0,
    settings: Callable[[Settings], Settings] = lambda value: value,
    on_event: Callable[[Event], None] = lambda event: None,
    environments: SessionEnvironments | None = None,
    indexing: Indexing | None = None,
    info: ModelInfo | None = None,
) -> World:
    """A world over the folder `root`; sessions are kept in `state`; `info` describes its model, else a capable one."""
    root.mkdir(parents=True, exist_ok=True)
    buffers = FakeBuffers()
    editor, user = FakeEditor(buffers), FakeUser(says)
    inbox = user.inbox = Inbox(user, deadline)
    roots, told = Roots([str(root)]), list[Event]()
    problems, own = list[OSError](), root.parent / "own"
    models: dict[str, Model] = {"model": ScriptedModel(replies, info=info)}
    base = Settings()
    chosen = settings(replace(base, edits=replace(base.edits, apply=apply)))

    async def open_model() -> Model:
        return models["model"]

    async def show_review(run_id: str) -> bool:
        told.append(StatusChanged(message=f"review {run_id}"))
        return False

    plans = FakePlans(told)

    def view(staged: StagedView) -> FileView:
        return FileView(roots, buffers, staged)

    services = Services(
        user=UserPorts(lambda: chosen, lambda: mode, lambda: language, inbox, show_review, plans),
        models=ModelPorts(open_model),
        workspace=WorkspacePorts(lambda: Environment((str(root),), "fake"), view, editor, indexing=indexing),
        shells=Shells(environments or FakeEnvironments()),
        kept=SessionStorage(
            outputs=lambda session_id: OutputStore(root.parent / "outputs" / session_id),
            artifacts=lambda session_id: ArtifactStore(root.parent / "artifacts" / session_id),
        ),
        registry=ToolRegistry(tool() for tool in BUILTIN),
        standing=StandingApprovals(root.parent / "approvals.json"),
        knowledge=knowledge_in(
            own,
            root.parent,
            lambda: chosen.skills.paths,
            lambda: chosen.memory.enabled,
            permissions=lambda: chosen.permissions,
        ),
    )
    store = SessionStore(state or root.parent / "sessions", problems.append)
    STORES.append(store)
    manager = SessionManager(store, services, [told.append, on_event])
    return World(root.resolve(), buffers, editor, user, inbox, store, manager, told, problems, models)


def reloaded(made: World) -> Session:
    """The current session as another server reads it from its file."""
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    return again


def know(made: World, known: Any) -> None:
    """The runs of this world know the answer forms of its model."""
    services = made.manager._services
    made.manager._services = replace(services, models=replace(services.models, answer_forms=known))


def call(name: str, /, **arguments: object) -> ToolCall:
    return ToolCall(name, arguments)


def calls(*wanted: ToolCall, text: str = "") -> ScriptedReply:
    return ScriptedReply(text, tuple(wanted))


def write(path: str, content: str) -> ScriptedReply:
    return calls(call("write_file", path=path, content=content))


def say(text: str = "Done.") -> ScriptedReply:
    return ScriptedReply(text)


def assert_well_formed(messages: Iterable[Message]) -> None:
    """Every call is answered exactly once before anybody else speaks, and no result stands alone."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in waiting, f"orphaned result {message.tool_call_id!r}"
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting, f"unanswered calls {waiting}"
        waiting = [item.id for item in message.tool_calls]
        assert all(waiting), "a call without an id"
        assert len(set(waiting)) == len(waiting), "doubled ids"
        assert not seen & set(waiting), "an id used twice in the conversation"
        seen |= set(waiting)
    assert not waiting, f"unanswered calls at the end {waiting}"


def names(stream: Iterable[Event], run_id: str) -> list[str]:
    return [event.type for event in stream if event.run_id == run_id]
