"""The base class of tools: traits, pydantic parameters, and one coroutine that runs a call.

Not here: who may call it (`permissions/policy.py`), how a call runs (`executor.py`), which tools exist (`registry.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from codeagent_lsp.call_forms import NO_FORMS, CallForms
from codeagent_lsp.config import Settings
from codeagent_lsp.messages import Image, ToolSpec
from codeagent_lsp.tools.composition import Transformation, arguments_for, composable, plain, transform
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.traits import ToolTraits

UNTOLD: Mapping[str, Any] = MappingProxyType({"untold": True})
"""The `json_schema_extra` of a parameter that only calls of other agents' tools have: models are not shown it."""


class Parameters(BaseModel):
    """Base of all parameter classes. Unknown keys are an error, so that a model learns of a misspelt one."""

    model_config = ConfigDict(extra="forbid", defer_build=True, str_strip_whitespace=False)


P = TypeVar("P", bound=Parameters)

Example = Mapping[str, Any]
"""The arguments of a call, by name."""

FILE_PATH: Mapping[str, str] = MappingProxyType({"file_path": "path"})
"""The other name of the parameter `path`, for `CallForms.arguments`."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a tool: `text` for the model, `data` for programs (None if it is only text). `failed` says in a few
    words how a program that the tool has run has failed, '' if it did not; the call of the tool itself has succeeded.
    `artifacts` are files that it kept for the user, `images` are for models that take pictures, `summary` says the same
    as `text` in a few words, for a user; `todos` is the whole todo list, None unless the tool has changed it.
    """

    text: str
    data: Any = None
    failed: str = ""
    artifacts: tuple[Mapping[str, Any], ...] = ()
    images: tuple[Image, ...] = ()
    summary: str = ""
    todos: tuple[Mapping[str, Any], ...] | None = None


class Tool(ABC, Generic[P]):
    """Base class of tools; subclasses set `traits` and `parameters` and implement `run`. One object serves all runs of
    a server, also at the same time. `output` is the type of the data it returns, None if it returns only text;
    `example` are valid arguments, for the page about the tools; `forms` are other spellings of its calls that are
    understood.
    """

    traits: ClassVar[ToolTraits]
    parameters: ClassVar[type[Parameters]]
    output: ClassVar[Any] = None
    example: ClassVar[Example] = MappingProxyType({})
    forms: ClassVar[CallForms] = NO_FORMS

    @property
    def news(self) -> str:
        """The changes of the tool's description since the user approved it, as words for the user; '' for most."""
        return ""

    @property
    def caution(self) -> str:
        """The reason, for the user, why every call asks for approval despite the settings; '' if there is none."""
        return ""

    def accepted(self) -> None:
        """Take note that the user has approved one of its calls; does nothing by default."""

    def approves(self, arguments: P, settings: Settings) -> bool:
        """Return whether the user's settings approve this call, judged by its arguments, so that no approval is asked
        for; by default as the tool's traits say (`approved`).
        """
        return self.traits.approved

    @abstractmethod
    async def run(self, arguments: P, context: ToolContext) -> ToolOutput:
        """Run one call and return its output. AgentError, with a sentence for the model, if it fails. It may be
        cancelled at any wait.
        """

    def spec(self) -> ToolSpec:
        """Return the name, description and compact JSON Schema that are sent to the model, with `forms`, which
        are not.
        """
        return ToolSpec(
            name=self.traits.name,
            description=self.traits.description,
            parameters=self.input_schema(),
            forms=self.forms,
        )

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters: the same object each time, which callers must not change."""
        return _schema_of(self.parameters, untold=False)

    def accepted_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all parameters that calls may have, also those that models are not shown; callers
        must not change it.
        """
        return _schema_of(self.parameters, untold=True)

    def output_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the data; None if the tool returns text."""
        return None if self.output is None else compact_schema(TypeAdapter(self.output).json_schema())

    def can_compose_with(self, other: Tool[Any]) -> bool:
        """Return whether the output of this tool, its data or else its text, can be an argument of `other`."""
        return composable(self.output_schema(), other.input_schema())

    def compose_output(
        self, output: ToolOutput, target: Tool[Any], transformation: Transformation, given: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return arguments for `target`, besides those `given` (their names), from this tool's output as
        `transformation` changes it; an `extract_path` of `$text` takes the text in place of the data. ToolRetry if it
        does not fit.
        """
        value: Any = plain(output.data) if output.data is not None else output.text
        if transformation.extract_path == "$text":
            value, transformation = output.text, transformation.model_copy(update={"extract_path": ""})
        return arguments_for(transform(value, transformation), target.input_schema(), transformation, given)


def compact_schema(schema: dict[str, Any], *, untold: bool = False) -> dict[str, Any]:
    """Return a pydantic JSON Schema without titles, empty defaults and object descriptions, with references resolved.
    `schema` is not changed; a recursive one cannot be given. With `untold` it has the parameters that models are not
    shown as well.
    """
    definitions = schema.get("$defs", {})

    def clean(node: Any) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            return clean(definitions[node["$ref"].rsplit("/", 1)[-1]])
        # A parameter that may be null is one that may be left out: null says no more to a model.
        if "anyOf" in node and (single := [option for option in node["anyOf"] if option != {"type": "null"}]):
            merged = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
            if len(single) == 1:
                return clean({**single[0], **merged})
        # Where `title` is an object, it is a property of that name.
        dropped = {"$defs"} if isinstance(node.get("title"), dict) else {"$defs", "title"}
        if node.get("type") == "object":  # the docstring of a parameter class is for people who read the code
            dropped.add("description")
        if node.get("default") == "":
            dropped.add("default")
        kept = {key: value for key, value in node.items() if key not in dropped}
        if not untold:
            kept = {key: value for key, value in kept.items() if not (isinstance(value, dict) and value.get("untold"))}
        return {key: clean(value) for key, value in kept.items()}

    cleaned: dict[str, Any] = clean(schema)
    return cleaned


@lru_cache(maxsize=256)
def _schema_of(parameters: type[Parameters], *, untold: bool) -> dict[str, Any]:
    """Return the cached schema of a parameter class: pydantic needs half a millisecond for one, a turn offers
    dozens.
    """
    return compact_schema(parameters.model_json_schema(), untold=untold)
