"""What users import to write tools of their own: the decorator `tool` and the base class `Tool`.

It runs in the worker that such tools have, never in the server. Not here: loading and running them (`tools/own`), the
agent's own tools (`tools/tool.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_OUTPUT_BYTES = 1 << 20

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({"type": "object", "properties": {}})


class Tool:
    """A tool that a model can call. Subclasses set `name`, `description` and `parameters` and define `run`. Name and
    description may be attributes of the class, of the object, or properties, or be given to `__init__`; a class without
    a description is described by its docstring.

    `parameters` is a pydantic model, whose instance `run` gets, or a JSON Schema of type object, or only its
    properties; then `run` gets a dict. A subclass may define `execute` instead, which gets each argument by its name,
    as `run` does if no `parameters` are stated and it has others than one for all. Both may be `async`.
    """

    name: str = ""
    description: str = ""
    parameters: type[BaseModel] | Mapping[str, Any] = _NO_PARAMETERS
    max_output_bytes: int = MAX_OUTPUT_BYTES

    def __init__(
        self,
        name: str = "",
        description: str = "",
        max_output_bytes: int = 0,
        parameters: type[BaseModel] | Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "name": name,
            "description": description,
            "max_output_bytes": max_output_bytes,
            "parameters": parameters,
        }
        for attribute, value in given.items():
            if value:  # else what the class says stays, which may be a property that cannot be set
                setattr(self, attribute, value)

    def run(self, arguments: Any) -> Any:
        """Do the work and return the result for the model: text, or what JSON can hold. An exception is its failure."""
        raise NotImplementedError(f"{type(self).__name__} defines neither run nor execute")

    def execute(self, **arguments: Any) -> Any:
        """Call `run` with the arguments, checked by the pydantic model if there is one, and return its result.
        pydantic's ValidationError if they do not fit it.
        """
        stated = self.parameters
        if stated is _NO_PARAMETERS and _takes_names(self.run):
            return self.run(**arguments)
        return self.run(arguments if isinstance(stated, Mapping) else stated.model_validate(arguments))

    def get_parameters_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of `parameters`; if a class states none, that of the type hints of `execute`."""
        stated = self.parameters
        if stated is _NO_PARAMETERS and type(self).execute is not Tool.execute:
            return _schema_of(self.execute, self.name)
        if stated is _NO_PARAMETERS and _takes_names(self.run):
            return _schema_of(self.run, self.name)
        if not isinstance(stated, Mapping):
            return stated.model_json_schema()
        only_properties = stated and not _SCHEMA_WORDS & set(stated)
        return {"type": "object", "properties": dict(stated)} if only_properties else dict(stated)

    def validate_args(self, **arguments: Any) -> bool:
        """Return whether the arguments may be used; called before `execute`, and with False the call fails. True unless
        a subclass overrides it.
        """
        return True

    def truncate_output(self, text: str) -> str:
        """Return the text cut to `max_output_bytes` bytes of UTF-8, never within a character, with a line after them
        that says so; a shorter text as it is.
        """
        data = text.encode("utf-8", "replace")
        if len(data) <= self.max_output_bytes:
            return text
        kept = data[: self.max_output_bytes].decode("utf-8", "ignore")
        return f"{kept}\n(Output truncated at {self.max_output_bytes} bytes)"


_SCHEMA_WORDS = frozenset(("type", "properties", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"))


def _takes_names(run: Callable[..., Any]) -> bool:
    """Return whether a `run` takes each argument by its name, and not one object or dict with all of them."""
    taken = list(inspect.signature(run).parameters.values())
    if len(taken) != 1 or taken[0].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return True
    # A text with `from __future__ import annotations`.
    stated = getattr(taken[0].annotation, "__name__", taken[0].annotation)
    return stated in ("str", "int", "float", "bool", "list")


class FunctionTool(Tool):
    """A function as a tool; its type hints are the parameters, its name and docstring stand for those that are not
    given. It can still be called as the function.
    """

    def __init__(self, function: Callable[..., Any], name: str = "", description: str = "") -> None:
        super().__init__(name or function.__name__, description or inspect.getdoc(function) or function.__name__)
        self._function = function

    def __call__(self, *values: Any, **arguments: Any) -> Any:
        """Call the function."""
        return self._function(*values, **arguments)

    def execute(self, **arguments: Any) -> Any:
        """Call the function with arguments converted to the types of its hints, and return its result. pydantic's
        ValidationError if they do not fit.
        """
        from pydantic import validate_call  # late: only the worker needs it, and only for calls

        return validate_call(self._function)(**arguments)

    def get_parameters_schema(self) -> dict[str, Any]:
        """Return the JSON Schema, an object, that follows from the type hints. TypeError for positional-only
        parameters.
        """
        return _schema_of(self._function, self.name)


Decorated = TypeVar("Decorated", bound=type[Tool])


class Decorator:
    """The object that `tool(…)` returns: called with a function it returns a `FunctionTool`; called with a class that
    derives from `Tool`, that class with the name set. TypeError for anything else.
    """

    def __init__(self, name: str = "", description: str = "") -> None:
        self._name = name
        self._description = description

    @overload
    def __call__(self, decorated: Decorated) -> Decorated: ...
    @overload
    def __call__(self, decorated: Callable[..., Any]) -> FunctionTool: ...
    def __call__(self, decorated: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool. TypeError for a class that does not derive from `Tool`, and for what is no function."""
        if not isinstance(decorated, type):
            if not callable(decorated) or not (self._name or hasattr(decorated, "__name__")):
                raise TypeError(f"@tool is for functions and for classes that derive from Tool, not for {decorated!r}")
            return FunctionTool(decorated, self._name, self._description)
        if not issubclass(decorated, Tool):
            raise TypeError(f"the class {decorated.__name__} is no tool: derive it from Tool")
        decorated.name = self._name or decorated.name or decorated.__name__
        decorated.description = self._description or decorated.description
        return decorated


@overload
def tool(decorated: Decorated, /) -> Decorated: ...
@overload
def tool(decorated: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(name: str = "", /, *, description: str = "") -> Decorator: ...
@overload
def tool(*, name: str = "", description: str = "") -> Decorator: ...
def tool(decorated: Callable[..., Any] | str = "", /, *, name: str = "", description: str = "") -> Callable[..., Any]:
    """Make a tool of a function with type hints and a docstring: `@tool`, `@tool("name")`, or `@tool(name=…,
    description=…)`. For a class that derives from `Tool` it sets the name. TypeError for anything else.
    """
    if isinstance(decorated, str):
        return Decorator(decorated or name, description)
    return Decorator(name, description)(decorated)


def _schema_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    from pydantic import TypeAdapter  # late: only the worker needs it

    schema = TypeAdapter(cast("Any", function)).json_schema()
    if schema.get("type") != "object":
        raise TypeError(f"{name}: each parameter needs a name that it can be given by")
    return schema
