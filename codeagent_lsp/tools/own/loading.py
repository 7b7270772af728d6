"""Loads a user's own tools in the worker: exactly the bytes that were trusted, or the entry point of a package.

Not here: the worker's messages (`worker.py`).
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from codeagent_lsp.own_tools import Tool
from codeagent_lsp.tools.own.tool_sources import GROUP, package_of

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,47}")
_MODULE = "codeagent_own_tools"


class NotLoaded(Exception):
    """Raised when a source has no usable tools; the message is for the user."""


def load(place: str, name: str, digest: str, *entry: str) -> dict[str, Tool]:
    """Return the tools of a source by name. NotLoaded with the reason, for any error in it."""
    try:
        found = list(_tools(_of_package(name, *entry) if place == "package" else _of_file(name, digest)))
    except NotLoaded:
        raise
    except BaseException as error:  # whatever a user's code raises at import, also SystemExit
        raise NotLoaded(described(error, name)) from error
    tools = {tool.name: tool for tool in found}
    if not tools:
        raise NotLoaded("it defines no tool: decorate a function with @tool, or derive a class from Tool")
    if len(tools) < len(found):
        raise NotLoaded("two of its tools have the same name")
    if odd := [tool for tool in tools if not isinstance(tool, str) or not _NAME.fullmatch(tool)]:
        raise NotLoaded(f"{odd[0]!r} cannot be the name of a tool: use letters, digits, - and _, at most 48")
    return tools


def described(error: BaseException, name: str) -> str:
    """Return an error as one line, with the last line of the file `name` that it passed through."""
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return f"line {lines[-1]}: {words}" if lines else words


def _of_file(name: str, digest: str) -> ModuleType:
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
    """Yield the tools that a module, a class, a tool or a list of them stands for."""
    if isinstance(found, ModuleType):
        yield from _tools(_unique(value for value in vars(found).values() if _is_here(value, found.__name__)))
    elif isinstance(found, list | tuple):
        for item in found:
            yield from _tools(item)
    elif isinstance(found, type) and issubclass(found, Tool):
        yield found()
    elif isinstance(found, Tool):
        yield found
    else:
        raise NotLoaded(f"{found!r} is no tool")


def _unique(values: Iterable[Any]) -> list[Any]:
    return list({id(value): value for value in values}.values())


def _is_here(value: Any, module: str) -> bool:
    """Return whether a name of a module is a tool; a class counts where it is defined and says its name."""
    if isinstance(value, type):
        return issubclass(value, Tool) and value.__module__ == module and bool(value.name)
    return isinstance(value, Tool)
