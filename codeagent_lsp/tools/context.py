"""The context of a tool call in one run: files, user, shell, and further parts looked up by the type of their port.

`tool_context` is the only constructor of `ToolContext` in the program. Not here: what a tool is (`tool.py`), what a run
puts into its context (`session/toolbox.py`), running a call (`executor.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import OnOutput, Shell, no_output
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Asker, Question
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

P = TypeVar("P")

NO_SHELL = "Commands cannot run here."


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a test run. `failed` includes tests that could not run; `whole` is True if every result is known.
    `passing` and `failing` are the names of tests, where they are known; `as_before` those of the failing ones that
    failed in the same way before the change, and `mended` of the passing ones that failed before. `green` has the
    files, relative to the workspace, of which all tests ran and passed, and the folders (`pkg/`, `/` for the workspace)
    below which they did; '' is in it if these were all tests of the workspace.
    """

    passed: int
    failed: int
    whole: bool = True
    passing: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    as_before: frozenset[str] = frozenset()
    mended: frozenset[str] = frozenset()
    green: frozenset[str] = frozenset()
    skipped: int = 0

    @property
    def passes(self) -> bool:
        """Whether at least one test ran, every result is known, and none failed."""
        return self.whole and not self.failed and bool(self.passed)

    @property
    def red(self) -> bool:
        """Whether something fails that did not fail before in the same way, or a result is not known."""
        return not self.whole or self.failed > len(self.as_before)


class Complete(Protocol):
    """Port: sends one request to the model that is not part of the conversation, and returns its answer."""

    async def __call__(self, instructions: str, text: str) -> str:
        """Return the model's answer as plain text. ModelError if there is none."""


class SmallComplete(Complete, Protocol):
    """Port: as `Complete`, by the model for small work if one is set, else by the run's own."""


class OnTested(Protocol):
    """Port: receives the results of every test run on the staged changes, with the state of the texts before it."""

    def __call__(self) -> Callable[[Tally], None]:
        """Note the state of the texts before a test run; return what receives its results."""


class PresentTexts(Protocol):
    """Port: the texts of files as the user has them in the editor now, unsaved changes included."""

    async def refresh(self, paths: Iterable[str]) -> None:
        """Ask an editor that does not report changes by itself for the present texts of these files and of all open
        ones, and wait for them at most some seconds; nothing for other editors. Paths are absolute. Never raises.
        """

    def unknown(self, paths: Iterable[str]) -> Sequence[str]:
        """Return the paths of the open files, among these paths or below them, whose text in the editor is not known
        any more.
        """


@dataclass(frozen=True, slots=True)
class Calls:
    """Port: other tools. `execute` runs a call as if the model had made it, permissions included; `tool` returns a tool
    (ToolFailed if unknown).
    """

    execute: Callable[[ToolCall], Awaitable[ToolResult]]
    tool: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Redaction:
    """Port: masking of secrets and the audit log. `hide` replaces the secrets in a text with marks, `reveal` puts them
    back into the arguments of a tool that writes, `lost` returns the marks that it cannot put back; `decided` logs a
    permission decision: tool, subject, verdict, reason.
    """

    hide: Callable[[str], str] = str
    reveal: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    lost: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda arguments: ()
    decided: Callable[[str, str, str, str], None] = lambda tool, subject, verdict, reason: None


@dataclass(frozen=True, slots=True)
class Reader:
    """Port: what is known of the model that reads the results: its context window in tokens (`window`)."""

    window: int


@dataclass(frozen=True, slots=True)
class TaskWords:
    """Port: the keywords of the task in lower case, by which lines of long texts are chosen to be kept."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The environment of the tools of one run. `view` reads files as the run sees them, `staging` stages its changes;
    `asker` asks the user, `words` returns sentences in the user's language, `note` shows a status line, `output`
    receives a command's output; `shell` runs commands, and `no_shell` is the reason if it is None. `ports` maps the
    type of a port to the part that only some tools need.
    """

    view: FileView
    staging: Staging
    settings: Settings
    asker: Asker
    words: Callable[..., str]
    note: Callable[[str], None]
    output: OnOutput
    shell: Shell | None
    no_shell: str
    ports: Mapping[type[Any], Any]

    def open_shell(self) -> Shell:
        """Return the shell of this run, which the run closes. ToolFailed with the reason if there is none."""
        if self.shell is None:
            raise ToolFailed(self.no_shell, ErrorCode.EXECUTION_ERROR)
        return self.shell

    def get(self, port: type[P]) -> P | None:
        """Return the part for a port; None if this run has none."""
        part: P | None = self.ports.get(port)
        return part

    def need(self, port: type[P], missing: str, code: ErrorCode = ErrorCode.EXECUTION_ERROR) -> P:
        """Return the part for a port. ToolFailed with the message `missing` and `code` if this run has none."""
        part = self.get(port)
        if part is None:
            raise ToolFailed(missing, code)
        return part

    def having(self, *parts: tuple[type[Any], Any]) -> ToolContext:
        """Return a copy of the context with these parts for their ports; None for a part removes the port."""
        ports = {port: part for port, part in {**self.ports, **dict(parts)}.items() if part is not None}
        return replace(self, ports=MappingProxyType(ports))

    @property
    def redaction(self) -> Redaction:
        """The redaction of this run; one that hides nothing if the run has no records."""
        return self.get(Redaction) or Redaction()


class NobodyToAsk:
    """An asker for runs without a user: never answers, which counts as a denial."""

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Return None at once."""
        return None


def tool_context(
    view: FileView,
    staging: Staging,
    settings: Settings,
    *parts: tuple[type[Any], Any],
    asker: Asker | None = None,
    words: Callable[..., str] = text,
    note: Callable[[str], None] = lambda line: None,
    output: OnOutput = no_output,
    shell: Shell | None = None,
    no_shell: str = NO_SHELL,
) -> ToolContext:
    """Return a context with these parts, each given as (port, part); a part of None is left out. By default there is no
    shell, questions get no answer, and notes and output are dropped.
    """
    empty = ToolContext(
        view, staging, settings, asker or NobodyToAsk(), words, note, output, shell, no_shell, MappingProxyType({})
    )
    return empty.having(*parts)
