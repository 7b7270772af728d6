"""Tools of other agents whose calls are calls of the tools that run commands, and how those write a command.

Not here: our tools (`command_tools.py`), commands that hold a patch (`files/foreign_editing.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from codeagent_lsp.call_forms import (
    Agent,
    CallForms,
    Condition,
    ForeignTool,
    Shape,
    blank,
    has,
    number,
    unpack_json,
    without,
)

_MOST_SECONDS = 600  # as `run_cmd` allows; what is above it is in milliseconds
_MOST_WAIT = 60  # as `command_output` allows
_SHELLS = ("bash", "sh", "zsh")
_END = "END_OF_PYTHON"

_COMMAND: Mapping[str, str] = MappingProxyType(
    {
        "cmd": "command",
        "command_line": "command",
        "workdir": "working_dir",
        "working_directory": "working_dir",
        "cwd": "working_dir",
        "cd": "working_dir",
        "dir_path": "working_dir",
        "directory": "working_dir",
        "run_in_background": "background",
        "is_background": "background",
    }
)


def _command_as_line(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a command that is a list as a line."""
    command = unpack_json(given.get("command"))
    return {**given, "command": _line(list(map(str, command)))} if isinstance(command, list) else given


def _line(words: list[str]) -> str:
    """Return a command given as a list, `bash -lc` unpacked, as a line."""
    if len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS and words[1].startswith("-") and "c" in words[1]:
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


def _in_seconds(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a time limit in seconds that `run_cmd` allows."""
    if str(given.get("Blocking")).lower() == "false":
        given = {**given, "background": True}
    limit, milliseconds = _amount(given.get("timeout")), _amount(given.get("timeout_ms"))
    given = without(given, "timeout", "timeout_ms", "Blocking")
    # agents that count in milliseconds use the same name, and 600 of them are too few for any command
    if milliseconds is None and limit is not None and limit > _MOST_SECONDS:
        milliseconds = limit
    seconds = limit if milliseconds is None else milliseconds / 1000
    return {**given, "timeout": min(seconds, _MOST_SECONDS)} if seconds else given


def _amount(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _all_commands(given: dict[str, Any]) -> dict[str, Any]:
    """Return a list of commands, some with a list of arguments, as the lines of one."""
    commands = unpack_json(given.get("commands"))
    lines = [_one_line(item) for item in (commands if isinstance(commands, list) else [commands])]
    return {**without(given, "commands"), "command": "\n".join(lines)}


def _one_line(item: Any) -> str:
    if not isinstance(item, Mapping):
        return str(item)
    command, words = str(item.get("command", "")), item.get("args")
    return shlex.join([command, *map(str, words)]) if isinstance(words, list) and words else command


def _python(given: dict[str, Any]) -> dict[str, Any]:
    code = str(given.get("code", ""))
    # quoted, so that the shell replaces no `$` or backtick in the code
    return {**without(given, "code"), "command": f"python - <<'{_END}'\n{code.removesuffix(chr(10))}\n{_END}"}


_TERMINAL = Condition("with a `command`", lambda given: bool(given.get("command")) and "action" not in given)
_CODEX = (
    *("login", "shell", "tty", "yield_time_ms", "max_output_tokens"),
    *("sandbox_permissions", "with_escalated_permissions"),
)
_SECONDS = Shape("`timeout_ms`, and a `timeout` above 600, are milliseconds", _in_seconds)


def _runs(
    name: str,
    *agents: Agent,
    arguments: Mapping[str, str] = MappingProxyType({}),
    when: Condition | None = None,
    ignored: tuple[str, ...] = (),
    shapes: tuple[Shape, ...] = (),
) -> ForeignTool:
    """Return a tool of other agents that runs commands."""
    return ForeignTool(name, agents, arguments, when, ignored, (*shapes, _SECONDS))


RUN_CMD = CallForms(
    names=("shell_exec", "bash", "run_command", "execute"),
    also=_COMMAND,
    shapes=(Shape("`command` may be a list", _command_as_line),),
    foreign=(
        _runs("Bash", "Claude Code", ignored=("dangerouslyDisableSandbox",)),
        _runs("bash", "opencode", "pi", "Anthropic API", when=has("command")),
        _runs("shell", "codex", ignored=_CODEX),
        _runs("shell_command", "codex", ignored=_CODEX),
        _runs("exec_command", "codex", ignored=_CODEX),
        _runs("local_shell", "codex", ignored=_CODEX),
        _runs("container.exec", "codex", ignored=_CODEX),
        _runs("execute_bash", "OpenHands", ignored=("is_input",)),
        _runs("terminal", "OpenHands", "Zed", when=_TERMINAL, ignored=("is_input", "reset")),
        _runs("execute_command", "cline", "Roo Code"),
        _runs("run_commands", "cline", shapes=(Shape("its commands are lines", _all_commands),)),
        _runs("run_shell_command", "Gemini CLI", ignored=("delay_ms",)),
        _runs("run_in_terminal", "Copilot", ignored=("goal", "mode")),
        _runs("run_terminal_cmd", "Cursor"),
        _runs("Shell", "Cursor", arguments={"block_until_ms": "timeout_ms"}),
        _runs("run_command", "Windsurf", ignored=("WaitMsBeforeAsync", "SafeToAutoRun")),
        _runs("execute_ipython_cell", "OpenHands", shapes=(Shape("`code` runs as `python -`", _python),)),
    ),
    near=("js_repl", "copy_path", "create_and_run_task", "run_task", "run_vscode_command", "install_extension"),
)


def _wait_seconds(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with how long to wait in seconds, and the id as a text."""
    waits = number(given.get("timeout", given.get("yield_time_ms")))
    block = str(given.get("block")).lower()
    given = without(given, "timeout", "yield_time_ms", "block")
    if block == "false":
        given["wait"] = 0
    elif waits is not None:
        given["wait"] = min(waits / 1000, _MOST_WAIT)
    return given


def _id_as_text(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "id": str(given["id"])} if isinstance(given.get("id"), int) else given


_ID: Mapping[str, str] = {"bash_id": "id", "task_id": "id", "shell_id": "id", "session_id": "id", "terminal_id": "id"}
_AS_TEXT = Shape("an id may be a number", _id_as_text)
_WAIT = Shape("`timeout` and `yield_time_ms` are milliseconds to wait", _wait_seconds)

COMMAND_OUTPUT = CallForms(
    also=_ID,
    shapes=(_AS_TEXT,),
    foreign=(
        ForeignTool("BashOutput", ("Claude Code",), ignored=("filter",)),
        ForeignTool("TaskOutput", ("Claude Code",), shapes=(_WAIT,)),
        ForeignTool(
            "write_stdin", ("codex",), when=blank("chars"), ignored=("chars", "max_output_tokens"), shapes=(_WAIT,)
        ),
        ForeignTool("get_terminal_output", ("Copilot",)),
    ),
    near=("write_stdin",),
)

STOP_COMMAND = CallForms(
    also=_ID,
    shapes=(_AS_TEXT,),
    foreign=(
        ForeignTool("KillShell", ("Claude Code",)),
        ForeignTool("KillBash", ("Claude Code",)),
        ForeignTool("TaskStop", ("Claude Code",)),
        ForeignTool("kill_terminal", ("Copilot",)),
    ),
)
