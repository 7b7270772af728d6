"""What `codeagent-lsp run` was asked to do, checked, as a value. Not here: doing it (`run.py`)."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.config import load
from codeagent_lsp.errors import UsageError


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`settings` has flat keys as in the section `codeagent`; `width` is None for the terminal's own."""

    task: str
    workspace: Path
    mode: str = "auto"
    accept_all: bool = False
    as_json: bool = False
    width: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()


def from_namespace(options: Namespace) -> RunOptions:
    """The options of a command line. UsageError names what is wrong."""
    workspace = Path(options.workspace).absolute()
    if not workspace.is_dir():
        raise UsageError("terminal.folder", folder=options.workspace)
    if not options.task.strip():
        raise UsageError("terminal.no_task")
    settings = dict(settings_of(options.set))
    settings.setdefault("edits.apply", options.apply)
    return RunOptions(
        task=options.task,
        workspace=workspace.resolve(),
        mode=options.mode,
        accept_all=options.yes,
        as_json=options.json,
        width=options.width,
        settings=tuple(settings.items()),
    )


def settings_of(assignments: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """The settings of `KEY=VALUE` words, by flat keys. UsageError names what is wrong."""
    return map(_setting, assignments)


def _setting(assignment: str) -> tuple[str, Any]:
    """`key=value`; the value is read as JSON where the setting takes that, else as text."""
    key, equals, value = assignment.partition("=")
    key = key.strip().removeprefix("codeagent.")
    if not equals or not key:
        raise UsageError("terminal.set", value=repr(assignment))
    for candidate in _readings(value):
        _, problems = load({key: candidate})
        if not problems:
            return key, candidate
    raise UsageError(problems[0].key, **problems[0].values)


def _readings(value: str) -> Iterable[Any]:
    try:
        yield json.loads(value)
    except ValueError:
        pass  # plain text
    yield value
