"""Checks a command's arguments against its declaration: one JSON object, known keys, right types. Pure functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.protocol import Argument, Command

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.session.run import Run

Arguments = Mapping[str, Any]
"""The checked arguments of a command, by name."""

Table = dict[str, Callable[[Arguments], Any]]
"""Handlers of commands by name: each returns the answer, or a coroutine that returns it."""

Later = Callable[[Awaitable[Any]], None]
"""A function that runs work after the answer has been sent; its errors are shown to the user."""

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "uri": lambda value: isinstance(value, str) and bool(value),
    # True is an int.
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
    # Lua and Emacs Lisp clients send null for what they leave out.
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


# Finds runs of the workspace by their ids, also those whose session is not loaded, as lists of runs name them.


async def recorded_run(backend: Backend, run_id: str) -> Run:
    """Return a run; its session is loaded for it if need be. SessionError if there is none, or another process works
    with its session.
    """
    try:
        return backend.manager.runs.get(run_id)
    except SessionError:
        await load_session_of(backend, run_id)
        return backend.manager.runs.get(run_id)


async def load_session_of(backend: Backend, run_id: str) -> None:
    """Load the session of a run, or of a task that waits to be one, if it is recorded and not loaded. SessionError if
    another process works with it.
    """
    await backend.ready()  # what is done with it is stored
    session_id = await asyncio.to_thread(backend.kept.history.session_of, run_id)
    if session_id is not None:
        backend.manager.resume(session_id, enter=False)
