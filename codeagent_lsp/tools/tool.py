"""What a tool is: a name, a sentence for the model, pydantic parameters, an effect, and one coroutine.

Not here: who may call it (`permissions/policy.py`), how a call runs (`executor.py`), which tools exist (`registry.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from codeagent_lsp.config import Settings
from codeagent_lsp.environments.serving import Screens
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.messages import ToolCall, ToolResult, ToolSpec
from codeagent_lsp.shadow.shell import OnOutput, Shell, no_output
from codeagent_lsp.texts import text
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.asking import Asker
from codeagent_lsp.tools.composition import Transformation, arguments_for, composable, plain, transformed
from codeagent_lsp.tools.diagnostics.port import Diagnostics
from codeagent_lsp.tools.groups import ToolGroups
from codeagent_lsp.tools.orchestration.delegates import Delegates
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.plan.planner_port import Planner
from codeagent_lsp.tools.skills.desk import SkillDesk
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView


class Parameters(BaseModel):
    """Base of all parameter classes: unknown keys are an error, so that a model learns of its typo."""

    model_config = ConfigDict(extra="forbid", defer_build=True, str_strip_whitespace=False)


class NoParameters(Parameters):
    """For tools that take nothing."""


P = TypeVar("P", bound=Parameters)

Complete = Callable[[str, str], Awaitable[str]]
"""Instructions and a text for the model; its answer as plain text. Raises ModelError."""


Decided = Callable[[str, str, str, str], None]
"""Hears of a tool, what it works on, the verdict, and why."""


def nobody_hears(tool: str, subject: str, verdict: str, reason: str) -> None:
    """The default of `decided`."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of a test run; `failed` counts what could not run, too. `whole`: every result is known."""

    passed: int
    failed: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What tools work on during one run.

    `note` sends a short status line to the user, `output` what a command prints; `shell` runs commands (where
    it is None, `no_shell` says why), `complete` asks the model;
    `tested` takes the numbers of tests that ran on what is staged; `outputs` keeps results that are too long;
    `diagnostics` asks for what the client shows; `planner` takes plans, None where there are none; `skills` hands
    out skills, `delegates` has other agents do a part; `words` gives sentences in the user's language; `groups`
    switches more tools on, `variables` keeps values for commands, `call` runs another tool like a call of the model,
    and `tool` gives it (ToolFailed where there is none); `hide` puts marks where a text has secrets and `reveal`
    takes them back in what a tool writes; `decided` hears every decision about a call; `index` knows the code,
    None where there is no index; `artifacts` keeps files for the user.
    """

    view: FileView
    staging: Staging
    asker: Asker
    todos: TodoList
    settings: Settings
    note: Callable[[str], None] = lambda line: None
    output: OnOutput = no_output
    shell: Shell | None = None
    no_shell: str = "Commands cannot run here."
    complete: Complete | None = None
    outputs: OutputStore | None = None
    tested: Callable[[Tally], None] = lambda tally: None
    diagnostics: Diagnostics | None = None
    planner: Planner | None = None
    skills: SkillDesk | None = None
    delegates: Delegates | None = None
    words: Callable[..., str] = text
    groups: ToolGroups | None = None
    variables: Variables | None = None
    call: Callable[[ToolCall], Awaitable[ToolResult]] | None = None
    hide: Callable[[str], str] = str
    reveal: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    decided: Decided = nobody_hears
    tool: Callable[[str], Tool[Any]] | None = None
    index: CodeIndex | None = None
    screens: Screens | None = None
    artifacts: ArtifactStore | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gives: `text` for the model, `data` for programs."""

    text: str
    data: Any = None


class Tool(ABC, Generic[P]):
    """A tool; subclasses set `traits` and `parameters` and implement `run`.

    `output` is the type of the data it gives, None when that is only text.
    """

    traits: ClassVar[ToolTraits]
    parameters: ClassVar[type[Parameters]]
    output: ClassVar[Any] = None

    @property
    def caution(self) -> str:
        """Why its calls ask whatever the settings allow, in words for the user; '' for no reason."""
        return ""

    def accepted(self) -> None:
        """The user was asked about a call of it and allowed it."""

    def approves(self, arguments: P, settings: Settings) -> bool:
        """Whether the user's settings allow this very call, by what it reaches."""
        return self.traits.approved

    @abstractmethod
    async def run(self, arguments: P, context: ToolContext) -> ToolOutput:
        """Do the work; raise `errors.AgentError` with a sentence for the model when it cannot be done."""

    def spec(self) -> ToolSpec:
        """What the model is told, with a compact JSON Schema."""
        return ToolSpec(
            name=self.traits.name,
            description=self.traits.description,
            parameters=self.input_schema(),
        )

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters: the same object each time, not to be changed."""
        return _schema_of(self.parameters)

    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the data it gives; None when it gives text."""
        return None if self.output is None else compact_schema(TypeAdapter(self.output).json_schema())

    def can_compose_with(self, other: Tool[Any]) -> bool:
        """Whether what this tool gives can be an argument of `other`."""
        return composable(self.output_schema(), other.input_schema())

    def compose_output(
        self, output: ToolOutput, target: Tool[Any], transformation: Transformation, given: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Arguments for `target`, besides those `given`, from what this tool gave. ToolRetry when it does not fit."""
        value: Any = plain(output.data) if output.data is not None else output.text
        if transformation.extract_path == "$text":
            value, transformation = output.text, transformation.model_copy(update={"extract_path": ""})
        return arguments_for(transformed(value, transformation), target.input_schema(), transformation, given)


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A pydantic JSON Schema without titles and defaults that say nothing, references resolved: fewer tokens."""
    definitions = schema.get("$defs", {})

    def clean(node: Any) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            return clean(definitions[node["$ref"].rsplit("/", 1)[-1]])
        if "anyOf" in node and (single := [option for option in node["anyOf"] if option != {"type": "null"}]):
            merged = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
            if len(single) == 1:
                return clean({**single[0], **merged})
        dropped = {"$defs"} if isinstance(node.get("title"), dict) else {"$defs", "title"}
        if node.get("type") == "object":  # the docstring of a parameter class is for people who read the code
            dropped.add("description")
        if node.get("default") == "":
            dropped.add("default")
        return {key: clean(value) for key, value in node.items() if key not in dropped}

    cleaned: dict[str, Any] = clean(schema)
    return cleaned


@lru_cache(maxsize=256)
def _schema_of(parameters: type[Parameters]) -> dict[str, Any]:
    """Kept, as pydantic takes half a millisecond for one and every turn offers dozens."""
    return compact_schema(parameters.model_json_schema())
