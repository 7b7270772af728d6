"""The program that runs one source of own tools: one JSON message per line, a call at a time.

Requests are `{"id", "tool"?, "arguments"?}`; without a tool it lists them. Answers are `{"id", "result"}`, of a call in
the form of MCP, or `{"id", "error"}`. Not here: the server's side (`worker_connection.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from codeagent_lsp.own_tools import Tool
from codeagent_lsp.tools.own.tool_sources import GROUP, package_of

PLACE = 2  # index of the source's first argument
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,47}")
_MODULE = "codeagent_own_tools"
MOST_NAMED = 5


def main(argv: Sequence[str]) -> None:
    """Answer requests from standard input until it ends. `argv` has place, name, digest and entry of the source from
    the third word on. It is loaded with the first request; its errors are answers.
    """
    requests, answers = _channels()
    tools: dict[str, Tool] | None = None
    for line in requests:
        request = json.loads(line)
        try:
            tools = load(*argv[PLACE:]) if tools is None else tools
            answer = {"result": _result(tools, argv[PLACE + 1], request)}
        except NotLoaded as error:
            answer = {"error": str(error)}
        answers.write(json.dumps({"id": request["id"], **answer}, default=str) + "\n")
        answers.flush()


def _channels() -> tuple[IO[str], IO[str]]:
    """Return the channels of the messages, and keep them from the tools: what those print goes to standard error."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _result(tools: Mapping[str, Tool], source: str, request: Mapping[str, Any]) -> Any:
    if "tool" not in request:
        return [_tool_row(tool) for tool in tools.values()]
    tool = tools.get(request["tool"])
    if tool is None:
        return _failure(f"there is no tool {request['tool']!r} any more")
    try:
        return _call(tool, request["arguments"])
    except BaseException as error:  # noqa: BLE001 - what a user's code raises, also SystemExit, is the call's result
        return _failure(describe_error(error, source))


def _tool_row(tool: Tool) -> dict[str, Any]:
    try:
        schema = tool.get_parameters_schema()
    except Exception as error:
        raise NotLoaded(f"{tool.name}: {error}") from error
    return {"name": tool.name, "description": description_of(tool), "schema": schema}


def _call(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not tool.validate_args(**arguments):
        return _failure("it does not accept these arguments")
    result = tool.execute(**arguments)
    if inspect.isawaitable(result):
        # asyncio.run takes only coroutines, and a tool may return any awaitable.
        result = asyncio.run(_await_result(result))
    return _result_of(tool, result)


async def _await_result(result: Any) -> Any:
    return await result


def _result_of(tool: Tool, result: Any) -> dict[str, Any]:
    """Return a result in the form of MCP; data that is too long becomes cut text."""
    result = _plain(result) if not isinstance(result, str | Mapping) else result
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=_plain)
    cut = tool.truncate_output(text)
    if isinstance(result, dict) and cut == text:
        return {"content": [], "structuredContent": json.loads(text)}
    return {"content": [{"type": "text", "text": cut}]}


def _plain(value: Any) -> Any:
    """Return what a user's code gives back as what JSON knows: data for objects and collections, else its text."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if inspect.isgenerator(value) or isinstance(value, set | frozenset):
        return list(value)
    return value if isinstance(value, list | tuple | dict | int | float | None) else str(value)


def _failure(reason: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": reason}], "isError": True}


# Loads a user's own tools in the worker: exactly the bytes that were trusted, or the entry point of a package.


class NotLoaded(Exception):
    """Raised when a source has no usable tools; the message is for the user."""


def load(place: str, name: str, digest: str, *entry: str) -> dict[str, Tool]:
    """Return the tools of a source by name; this runs its code. `place`, `name`, `digest` and `entry` are those of its
    `ToolSource`. NotLoaded with the reason for any error in it, and if it has changed since it was trusted.
    """
    try:
        found = list(_tools(_of_package(name, *entry) if place == "package" else _of_file(name, digest)))
        for tool in found:
            _check(tool)
        tools = {tool.name: tool for tool in found}
    except NotLoaded:
        raise
    except BaseException as error:  # whatever a user's code raises at import or in a property, also SystemExit
        raise NotLoaded(describe_error(error, name)) from error
    if len(tools) < len(found):
        raise NotLoaded("two of its tools have the same name")
    return tools


def describe_error(error: BaseException, name: str) -> str:
    """Return an error in words, for the user, such as `line 3: NameError: …`, with the last line of the file `name`
    that it passed through.
    """
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return f"line {lines[-1]}: {words}" if lines else words


def _of_file(name: str, digest: str) -> ModuleType:
    # Read once: the bytes whose hash is checked are those that run, though the file may be exchanged meanwhile.
    data = Path(name).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise NotLoaded("it changed since it was trusted; it is asked about again at the next run")
    module = ModuleType(_MODULE)
    module.__file__ = name
    sys.modules[_MODULE] = module  # dataclasses and type hints look their module up
    exec(compile(data, name, "exec"), vars(module))  # noqa: S102 - the purpose of this process, after the user's trust
    return module


def _of_package(name: str, entry_name: str, value: str) -> Any:
    for entry in entry_points(group=GROUP):
        if (entry.name, entry.value) == (entry_name, value) and name == f"{package_of(entry)}: {entry_name}":
            return entry.load()
    raise NotLoaded("the package is not installed in the environment of this Python any more")


def _tools(found: Any) -> Iterator[Tool]:
    """Yield the tools that a module, a class, a tool or a list of them stands for. NotLoaded for what is none."""
    if isinstance(found, ModuleType):
        yield from _of_module(found)
    elif isinstance(found, list | tuple):
        for item in found:
            yield from _tools(item)
    elif isinstance(found, type) and issubclass(found, Tool):
        yield _make_tool(found)
    elif isinstance(found, Tool):
        yield found
    else:
        raise NotLoaded(f"{found!r} is no tool")


def _of_module(module: ModuleType) -> Iterator[Tool]:
    """Yield the tools of a module: its objects, those in its lists, and one of each class that it defines, unless it
    makes objects of that itself or only derives others from it.
    """
    values = list(vars(module).values())
    listed = [item for value in values if _is_list_of_tools(value) for item in value]
    tools = _unique(value for value in (*values, *listed) if isinstance(value, Tool))
    classes = _unique(
        value
        for value in (*values, *listed)
        if isinstance(value, type) and issubclass(value, Tool) and value.__module__ == module.__name__
    )
    used = [*map(type, tools), *classes]
    alone = [kind for kind in classes if not any(other is not kind and issubclass(other, kind) for other in used)]
    named = [kind for kind in classes if kind not in alone and isinstance(kind.name, str) and kind.name]
    chosen = [kind for kind in (*alone, *named) if kind not in map(type, tools)]
    if not tools and not chosen:
        raise NotLoaded(
            "it defines no tool: decorate a function with @tool, or derive a class from Tool" + _instead(module)
        )
    yield from tools
    yield from map(_make_tool, chosen)


def _make_tool(kind: type[Tool]) -> Tool:
    """Return a tool of this class. NotLoaded if it cannot be made without arguments."""
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
        raise NotLoaded(f"the class {kind.__name__} is no tool yet: it does not define {missing}")
    try:
        inspect.signature(kind).bind()
    # Classes without a signature, such as those made in C: calling them tells.
    except ValueError:
        pass
    except TypeError as error:
        raise NotLoaded(
            f"the class {kind.__name__} cannot be made without arguments ({error}): give them defaults, or make the "
            f"tools in the file, such as `first = {kind.__name__}(…)`"
        ) from None
    return kind()


def _check(tool: Tool) -> None:
    """Raise NotLoaded, with what is missing, unless this can be offered as a tool."""
    kind = type(tool)
    what = f"the class {kind.__name__}" if kind.__module__ != Tool.__module__ else f"the tool {tool.name!r}"
    if not tool.name:
        raise NotLoaded(f'{what} has no name: set `name = "…"` in it, or call `super().__init__("…")` in its __init__')
    if not isinstance(tool.name, str) or not _NAME.fullmatch(tool.name):
        raise NotLoaded(f"{tool.name!r} cannot be the name of a tool: use letters, digits, - and _, at most 48")
    if kind.run is Tool.run and kind.execute is Tool.execute:
        raise NotLoaded(f"{what} defines neither `run(self, arguments)` nor `execute(self, …)`, so it does nothing")
    if not description_of(tool):
        raise NotLoaded(f"{what} has no description: give it a docstring, or set `description`")


def description_of(tool: Tool) -> str:
    """Return how a tool describes itself: by its description, else by the docstring of its class, of `run` or of
    `execute`; '' for none, as what it inherits of ours is not about it.
    """
    if tool.description:
        return str(tool.description)
    kind = type(tool)
    made = f"{kind.__name__}("  # how the docstring begins that a dataclass gets
    documented = [each for each in kind.__mro__ if each.__module__ != Tool.__module__ and each is not object]
    own = [each.__doc__ for each in documented if each.__doc__ and not each.__doc__.startswith(made)]
    methods = [method.__doc__ for method in (kind.run, kind.execute) if method.__module__ != Tool.__module__]
    return inspect.cleandoc(next(filter(None, (*own, *methods)), ""))


def _instead(module: ModuleType) -> str:
    """Return what a module without tools has that may have been meant; '' for nothing."""
    here = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    names = [
        f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
        for value in here
        if isinstance(value, type) or inspect.isfunction(value)
    ]
    return f"; {', '.join(names[:MOST_NAMED])} {'is' if len(names) == 1 else 'are'} neither" if names else ""


def _is_list_of_tools(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, Tool) or (isinstance(item, type) and issubclass(item, Tool)) for item in value
    )


def _unique(values: Iterable[Any]) -> list[Any]:
    # By identity: a user's tools need not be hashable, and equal ones may be two.
    return list({id(value): value for value in values}.values())
