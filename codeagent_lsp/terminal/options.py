"""The validated options of `codeagent-lsp run` and `codeagent-lsp apply`. Not here: doing it (`run.py`)."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import SettingError, UsageError
from codeagent_lsp.settings_files import read_policy
from codeagent_lsp.settings_layers import catalogue, load
from codeagent_lsp.state import workspace_state

LAST = "last"
"""Stands for the id of the last session."""
LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run. `mode` is `auto`, `direct` or `plan`; `settings` are pairs of flat key, as in the section
    `codeagent`, and value; `accept_all` approves every prompt; `width` is in columns, None for the terminal's;
    `session` is the id of the session to continue, '' for a new one.
    """

    task: str
    workspace: Path
    mode: str = "auto"
    attempts: int = 1
    accept_all: bool = False
    as_json: bool = False
    width: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    session: str = ""


def from_namespace(options: Namespace) -> RunOptions:
    """Return the options of a command line, as the parser of `codeagent-lsp run` makes it. UsageError if the folder
    does not exist, the task is blank or a setting is invalid.
    """
    workspace = folder_of(options.workspace)
    if not options.task.strip():
        raise UsageError("terminal.no_task")
    settings = dict(settings_of(options.set))
    settings.setdefault("edits.apply", options.apply)
    return RunOptions(
        task=options.task,
        workspace=workspace,
        mode=options.mode,
        attempts=options.attempts,
        accept_all=options.yes,
        as_json=options.json,
        width=options.width,
        settings=tuple(settings.items()),
        session=_last_session(workspace) if options.session == LAST else options.session,
    )


def _last_session(workspace: Path) -> str:
    """Return the id of the session of the user's last run in a folder. UsageError if there is none."""
    from codeagent_lsp.session.history.listing import history_in  # late: with SQLite, and most runs begin a session
    from codeagent_lsp.session.request import FOREIGN, LENT  # late: for this alone

    history = history_in(workspace_state([str(workspace)]))
    try:
        own = (run for run in history.runs(LOOKED_AT) if run.kind not in (FOREIGN, LENT))
        found = next(own, None)
    finally:
        history.close()
    if found is None:
        raise UsageError("terminal.no_runs", folder=workspace)
    return found.session_id


def folder_of(workspace: str) -> Path:
    """Return the absolute path of an existing folder without links; a relative one is relative to the current folder.
    UsageError if it is no folder.
    """
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise UsageError("terminal.folder", folder=workspace)
    return folder.resolve()


def settings_of(assignments: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Return the settings in `KEY=VALUE` arguments as pairs of flat key and value, which is read as JSON if the setting
    accepts that, else as text. UsageError if one is invalid, raised while iterating.
    """
    return map(_setting, assignments)


def _setting(assignment: str) -> tuple[str, Any]:
    """Parse `key=value`; the value is JSON if the setting accepts that, else text. UsageError if it is invalid."""
    key, equals, value = assignment.partition("=")
    key = key.strip().removeprefix("codeagent.")
    if not equals or not key:
        raise UsageError("terminal.set", value=repr(assignment))
    policy = read_policy()
    for candidate in _readings(value):
        problems = [item for item in load({key: candidate}, policy=policy)[1] if item.key != "policy.unknown"]
        if not problems:
            return key, candidate
    raise _refusal(key, problems[0])


def _refusal(key: str, problem: SettingError) -> UsageError:
    """Return the error of a setting that a command line cannot have: nothing is ignored there, and nothing runs."""
    if problem.key == "setting.unknown":
        import difflib  # late: only a mistake needs it

        known = [setting.key for setting in catalogue()]
        near = difflib.get_close_matches(key, known, 1) or [name for name in known if name.endswith(f".{key}")]
        return UsageError("terminal.set_like" if near else "terminal.set_unknown", key=key, near="".join(near[:1]))
    if problem.key == "setting.bad":
        return UsageError("terminal.set_bad", **{**problem.values, "key": key})
    return UsageError(problem.key, **problem.values)


def _readings(value: str) -> Iterable[Any]:
    try:
        yield json.loads(value)
    except ValueError:
        pass  # plain text
    yield value
