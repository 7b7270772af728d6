"""A real workspace under a temporary folder for tools to work in, and a user who answers from a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.config import PermissionsSettings, Settings, ToolsSettings
from codeagent_lsp.errors import FileRefused
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Shell
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.permissions.policy import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView, StagedFile
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.shells import OPEN_COPY, FakeShell
from tests.workspace.file_fakes import FakeBuffers


@dataclass
class FakeAsker:
    """Gives the next answer: a title, several, or None; None for ever when the list is used up."""

    answers: list[str | tuple[str, ...] | None] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        self.asked.append(question)
        answer = self.answers.pop(0) if self.answers else None
        return (answer,) if isinstance(answer, str) else answer


class _LateStaging:
    """The view needs the staging and the staging the view."""

    staging: Staging

    def lookup(self, path: str) -> StagedFile | None:
        return self.staging.lookup(path)

    def paths(self) -> Iterable[str]:
        return self.staging.paths()


class Bench:
    """A workspace, the tools, and one executor over them."""

    def __init__(self, root: Path, tools: Iterable[Tool[Any]] | None = None, settings: Settings | None = None) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self.buffers = FakeBuffers()
        self.told: list[tuple[str, FileChange | None]] = []
        late = _LateStaging()
        self.view = FileView(Roots([str(root)]), self.buffers, late)
        self.staging = late.staging = Staging(self.base, lambda path, change: self.told.append((path, change)))
        self.asker = FakeAsker()
        self.todos = TodoList()
        self.approvals = Approvals()
        self.mode: Mode = "ask"
        self.shell: Shell | None = FakeShell(isolation=OPEN_COPY, staging=self.staging)
        self.ports: list[tuple[type[Any], Any]] = []
        self.registry = ToolRegistry([cls() for cls in BUILTIN] if tools is None else tools)
        self.configure(settings or Settings())

    def configure(self, settings: Settings) -> None:
        ports = ((TodoList, self.todos), *self.ports)
        self.context = tool_context(self.view, self.staging, settings, *ports, asker=self.asker, shell=self.shell)
        self.executor = ToolExecutor(self.registry, self.context, lambda: self.mode, self.approvals)

    def add(self, part: tuple[type[Any], Any]) -> None:
        """Give the tools one more part, by its port."""
        self.ports.append(part)
        self.configure(self.context.settings)

    def rules(self, **rules: tuple[str, ...]) -> None:
        self.configure(replace(Settings(), permissions=replace(PermissionsSettings(), **rules)))  # type: ignore[arg-type]

    def limits(self, **limits: int) -> None:
        self.configure(replace(Settings(), tools=replace(ToolsSettings(), **limits)))  # type: ignore[arg-type]

    def base(self, path: str) -> FileText | None:
        try:
            return self.view.base(path)
        except FileRefused:
            return None

    def write(self, name: str, content: str | bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def open(self, name: str, text: str, version: int = 1) -> None:
        self.buffers.open(self.path(name), text, version)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def text(self, name: str) -> str:
        """What the run sees."""
        return self.view.read(self.path(name)).text

    def seen(self, name: str) -> bool:
        return self.view.exists(self.path(name))

    @property
    def changeset(self) -> Changeset:
        return self.staging.changeset

    def disk(self) -> dict[str, bytes]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.executor.execute(ToolCall(name, arguments))
