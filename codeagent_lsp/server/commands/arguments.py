"""Checks a command's arguments against its declaration: one JSON object, known keys, right types. Pure functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from codeagent_lsp.errors import UsageError
from codeagent_lsp.protocol import Argument, Command

Arguments = Mapping[str, Any]
"""The checked arguments of a command, by name."""

Table = dict[str, Callable[[Arguments], Any]]
"""Handlers of commands by name: each returns the answer, or a coroutine that returns it."""

Later = Callable[[Awaitable[Any]], None]
"""A function that runs work after the answer has been sent; its errors are shown to the user."""

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "uri": lambda value: isinstance(value, str) and bool(value),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "range": lambda value: is_range(value),
    "any": lambda value: True,
}


def checked(command: Command, arguments: list[Any]) -> dict[str, Any]:
    """Return the argument object; members that are null count as missing. UsageError says what is wrong with it."""
    if len(arguments) > 1 or (arguments and not isinstance(arguments[0], Mapping)):
        raise UsageError("command.arguments", command=command.name)
    given = {key: value for key, value in (arguments[0] if arguments else {}).items() if value is not None}
    known = {argument.name: argument for argument in command.arguments}
    for name in given:
        if name not in known:
            raise UsageError("command.unknown_key", command=command.name, name=name, known=", ".join(known) or "-")
    for name, argument in known.items():
        if name in given:
            _check(command, argument, given[name])
        elif argument.required:
            raise UsageError("command.missing", command=command.name, name=name)
    return given


def _check(command: Command, argument: Argument, value: Any) -> None:
    if not _CHECKS[argument.kind](value):
        raise UsageError("command.kind", command=command.name, name=argument.name, kind=argument.kind)
    if argument.choices and value not in argument.choices:
        raise UsageError("command.kind", command=command.name, name=argument.name, kind=" | ".join(argument.choices))


def is_range(value: Any) -> bool:
    """Return whether this is a range of LSP."""
    return isinstance(value, Mapping) and all(_is_position(value.get(end)) for end in ("start", "end"))


def _is_position(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), int) and not isinstance(value.get(name), bool) and value[name] >= 0
        for name in ("line", "character")
    )
