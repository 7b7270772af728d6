"""What users import to write tools of their own: the decorator `tool` and the base class `Tool`.

It runs in the worker that such tools have, never in the server. Not here: loading and running them (`tools/own`), the
agent's own tools (`tools/tool.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, overload

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_OUTPUT_BYTES = 1 << 20


class Tool:
    """A tool that a model can call. Subclasses set `name`, `description` and `parameters` and define `run`.

    `parameters` is a pydantic model, whose instance `run` gets, or a JSON Schema of type object; then `run` gets a
    dict. A subclass may define `execute` instead, which gets each argument by its name. Both may be `async`.
    """

    name: str = ""
    description: str = ""
    parameters: type[BaseModel] | Mapping[str, Any] = MappingProxyType({"type": "object", "properties": {}})
    max_output_bytes: int = MAX_OUTPUT_BYTES

    def __init__(self, name: str = "", description: str = "", max_output_bytes: int = 0) -> None:
        self.name = name or self.name
        self.description = description or self.description or inspect.getdoc(self) or ""
        self.max_output_bytes = max_output_bytes or self.max_output_bytes

    def run(self, arguments: Any) -> Any:
        """Do the work and return the result for the model: text, or what JSON can hold. An exception is its failure."""
        raise NotImplementedError(f"{type(self).__name__} defines neither run nor execute")

    def execute(self, **arguments: Any) -> Any:
        """Call `run` with the arguments, checked by the pydantic model if there is one."""
        stated = self.parameters
        return self.run(arguments if isinstance(stated, Mapping) else stated.model_validate(arguments))

    def get_parameters_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters."""
        stated = self.parameters
        return dict(stated) if isinstance(stated, Mapping) else stated.model_json_schema()

    def validate_args(self, **arguments: Any) -> bool:
        """Return whether the arguments may be used; called before `execute`."""
        return True

    def truncate_output(self, text: str) -> str:
        """Return the text cut to `max_output_bytes`, with a line that says so."""
        data = text.encode("utf-8", "replace")
        if len(data) <= self.max_output_bytes:
            return text
        kept = data[: self.max_output_bytes].decode("utf-8", "ignore")
        return f"{kept}\n(Output truncated at {self.max_output_bytes} bytes)"


class FunctionTool(Tool):
    """A function as a tool; its type hints are the parameters. It can still be called as the function."""

    def __init__(self, function: Callable[..., Any], name: str = "", description: str = "") -> None:
        super().__init__(name or function.__name__, description or inspect.getdoc(function) or function.__name__)
        self._function = function

    def __call__(self, *values: Any, **arguments: Any) -> Any:
        """Call the function."""
        return self._function(*values, **arguments)

    def execute(self, **arguments: Any) -> Any:
        """Call the function with arguments converted to the types of its hints."""
        from pydantic import validate_call  # late: only the worker needs it, and only for calls

        return validate_call(self._function)(**arguments)

    def get_parameters_schema(self) -> dict[str, Any]:
        """Return the JSON Schema that follows from the type hints. TypeError for positional-only parameters."""
        from pydantic import TypeAdapter  # late, as above

        schema = TypeAdapter(cast("Any", self._function)).json_schema()
        if schema.get("type") != "object":
            raise TypeError(f"{self.name}: each parameter needs a name that it can be given by")
        return schema


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(*, name: str = "", description: str = "") -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str = "", description: str = ""
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function with type hints and a docstring: `@tool`, or `@tool(name=…, description=…)`."""
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, name, description)
