"""Generates the page `docs/tools.md`: all built-in tools with parameters, effect, permission, errors and an example.

All of it is read from the tools. Not here: writing the file (`__main__.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.tools.catalogue import BUILTIN, SMALL_SET
from codeagent_lsp.tools.own.tool_sources import MAX_BYTES, MAX_SOURCES, USER_FOLDER
from codeagent_lsp.tools.permissions.policy import effects_of
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import CORE, EXTENDED, Effect

COMMON = (
    ErrorCode.INVALID_PARAM,
    ErrorCode.PERMISSION_DENIED,
    ErrorCode.EXECUTION_ERROR,
    ErrorCode.CIRCUIT_OPEN,
    ErrorCode.TOOL_DISABLED,
)
"""The error codes that any call may end with."""

_PERMISSIONS: Mapping[Effect, str] = {
    "read": "runs without a question",
    "write": "is staged without a question; you decide about the whole change",
    "run": "by `shell.confirm`: without a question where commands are isolated completely, else it asks",
    "net": "asks",
    "ask": "is a question itself",
}
_SPECIAL = {
    "compose": "each step is judged by itself",
    "delegate": "runs without a question; what the other agent calls is judged like calls of this one",
    "web_scrape": "asks, unless the host is in `web.allowedHosts`",
    "export_artifact": "runs without a question; a file that usually holds secrets asks",
    "batch_export_artifacts": "runs without a question; a file that usually holds secrets asks",
    "import_file": "asks, unless nothing is fetched or the host is in `web.allowedHosts`; staged like an edit",
    "import_files_batch": "asks, unless nothing is fetched or all hosts are in `web.allowedHosts`; staged like an edit",
    "skill_installer": "asks, and shows what would be installed",
    "generate_tests": "like `run_tests`; the file is staged, and you decide about it with the whole change",
}
_MEANINGS = {
    ErrorCode.INVALID_PARAM: "arguments that do not fit; the message says what to correct",
    ErrorCode.NOT_FOUND: "there is no such file, symbol, repository, test or page",
    ErrorCode.PERMISSION_DENIED: "a rule, the mode or the user said no, or the path leads outside",
    ErrorCode.EXECUTION_ERROR: "the tool could not do its work",
    ErrorCode.TIMEOUT: "it took longer than its limit and was stopped",
    ErrorCode.CIRCUIT_OPEN: "the tool failed too often in a row and rests",
    ErrorCode.PARSE_ERROR: "what a model answered cannot be used",
    ErrorCode.NETWORK_ERROR: "a model or a server was not reached",
    ErrorCode.EDIT_REFUSED: "there is no single safe place for the edit; nothing was changed",
    ErrorCode.TOOL_DISABLED: "the tool is switched off",
}
_INTRODUCTION = """\
What the agent can call. Tools of the group *core* are offered to every model, models with small windows get only
those marked ◆; the other groups are switched on by the model (`enable_tools`), a skill or a setting. Tools of
[MCP servers](mcp.md) and [your own](#own-tools) come beside them, and [other agents](sandbox.md) can use most of these.

*Effect* says what a call can do: `read` looks, `write` stages a change, `run` starts programs in the shadow, `net`
reaches the network, `ask` asks you. In the mode `readOnly` only `read` and `ask` are offered. Your rules come first
in every mode. Files that usually hold secrets, or that can run code later, ask whatever stands below. In the mode
`bypass` only your rules, files that can run code later without a build, and commands in your real folder ask. More in
[security](security.md)."""

_OWN = """\
## Own tools

A Python function with type hints and a docstring is a tool. Save this as `{user}/word_count.py`:

    from codeagent_lsp.own_tools import tool

    @tool
    def word_count(text: str, shortest: int = 1) -> dict:
        \"\"\"Count the words of a text that have at least `shortest` letters.\"\"\"
        words = [word for word in text.split() if len(word) >= shortest]
        return {{"words": len(words), "different": len(set(words))}}

At the next run you are asked whether to trust the file; then the model can call `own.word_count`. A run does not wait
for your answer: the tools are offered from the model's next step after it.

**Places.** Files `*.py` in `{user}` of your state folder (`~/.local/state/codeagent-lsp` on Linux, or what
`CODEAGENT_STATE_DIR` says), beside your skills; files `*.py` in `.codeagent/tools` of a workspace folder; and installed
packages, in the environment of this server, with an entry point that names a module, a tool or a list of tools:

```toml
[project.entry-points."codeagent_lsp.tools"]
counting = "my_package.tools"
```

Subfolders, links in a workspace, files above {mib} MiB, and names that begin with `_` or `.` or cannot be printed, are
left out. A file may import what is installed, but not its neighbours: those were not shown to you. At most {sources}
sources count.

**Classes.** For more than a function, derive from `codeagent_lsp.own_tools.Tool`: set `name`, `description` and
`parameters` (a pydantic model, or a JSON Schema) and define `run(self, arguments)`. Or define `execute`, whose
parameters and type hints count; `validate_args(self, **arguments)` can refuse a call. Name and description may also be
properties, fields of a dataclass, given to `super().__init__(name, description)`, or by `@tool(name=…)` above the
class; without a description the docstring counts. One tool is made of each class; of one that needs arguments, or of
which there are to be several, make them in the file. What cannot be a tool is told with what is missing.
Functions and methods may be `async`. A result is text, or what JSON can hold; an exception is the result of a call that
failed.

**Trust.** No code of a source runs before you said yes, and the question shows the file; for one of a workspace it may
be about [all that it brings](knowledge.md#what-a-workspace-brings). Trust is for a path with the SHA-256 of its bytes,
or for an entry point of one version of a package: what changed is asked about again, and its tools are off until then.
A *no* holds until the editor is started again, or `codeagent.trust` asks. `codeagent.approvals.list` has what you
trust, `codeagent.approvals.revoke` takes it back. Trusted code runs as you, outside of the shadow in which commands
run.

**Calls** ask like those of [MCP servers](mcp.md): each time, unless you allow that exact call, or the tool by a rule
(`"codeagent.permissions.allow": ["own.word_count"]`). `readOnly` does not offer own tools. Each source has a process of
its own, in the workspace's folder, with the environment that commands get: no secrets, no access to services. Calls of
one source run one after another. The time limit, also of loading, is `tools.timeoutSeconds`; after it, or when you
cancel, the process is killed, and the next call starts another. A result is cut at 1 MiB (`max_output_bytes` of a
class), and the model is shown `tools.maxOutputBytes` of it. A tool that fails again and again rests, as any other. What
a tool prints is not shown, except its last lines when its process ends.

A source with an error is left out with a message that names file, line and error; the next run tries again. Of two own
tools with the same name the first is used. Names of built-in tools have no dot, so none clashes with them.
"""


def tools_page(note: str) -> str:
    """Return the page, with `note` saying that it is generated."""
    lines = ["# Tools", "", note, "", _INTRODUCTION, "", *_errors_table()]
    tools = [tool() for tool in BUILTIN]
    for group, purpose in {CORE: "offered to every model", **EXTENDED}.items():
        members = [tool for tool in tools if tool.traits.group == group]
        if members:
            lines += [f"## {group}", "", f"{purpose[0].upper()}{purpose[1:]}.", ""]
            lines += [line for tool in members for line in _section(tool)]
    lines += [_OWN.format(user=USER_FOLDER, mib=MAX_BYTES >> 20, sources=MAX_SOURCES)]
    return "\n".join(lines)


def errors_of(tool: Tool[Any]) -> tuple[ErrorCode, ...]:
    """Return the error codes that a call of this tool may end with, besides those of any call."""
    traits = tool.traits
    codes = [ErrorCode.NOT_FOUND] if traits.path_parameters else []
    codes += [ErrorCode.EDIT_REFUSED] if traits.effect == "write" else []
    codes += [ErrorCode.TIMEOUT] if traits.timeout is not None else []
    codes += traits.errors
    return tuple(code for code in dict.fromkeys(codes) if code not in COMMON)


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema in words, limits included."""
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}{_limits(schema, 'minItems', 'maxItems', '')}"
    if schema.get("type") == "object":
        return f"{{{', '.join(_fields(schema))}}}" if schema.get("properties") else "object"
    words = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false"}
    unit = " characters"
    limits = _limits(schema, "minimum", "maximum", "") + _limits(schema, "minLength", "maxLength", unit)
    above = f", more than {schema['exclusiveMinimum']:g}" if "exclusiveMinimum" in schema else ""
    return words.get(str(schema.get("type")), "any value") + above + limits


def _errors_table() -> Iterable[str]:
    yield from ("## Errors", "")
    common = ", ".join(f"`{code}`" for code in COMMON)
    yield from (f"Any call may end with {common}; what else may happen stands with each tool.", "")
    yield from ("| code | type | worth a retry | meaning |", "|---|---|---|---|")
    for code, meaning in _MEANINGS.items():
        yield f"| `{code}` | `{code.advice.type}` | {'yes' if code.advice.retry else 'no'} | {meaning} |"
    yield ""


def _section(tool: Tool[Any]) -> Iterable[str]:
    traits = tool.traits
    yield f"### `{traits.name}`{' ◆' if traits.name in SMALL_SET else ''}"
    yield from ("", traits.description, "")
    schema = tool.input_schema()
    if schema.get("properties"):
        yield from ("| parameter | type | default | |", "|---|---|---|---|", *_rows(schema), "")
    errors = ", ".join(f"`{code}`" for code in errors_of(tool)) or "only what any call may end with"
    yield f"- Effect: `{traits.effect}`; offered in `readOnly`: {_offered(traits.effect)}"
    yield f"- Permission: {_SPECIAL.get(traits.name, _PERMISSIONS[traits.effect])}"
    yield f"- Time limit: {_time(traits.timeout)}"
    yield f"- Errors: {errors}"
    example = json.dumps(dict(tool.example), ensure_ascii=False)
    yield from ("", "```json", example, "```", "")


def _rows(schema: Mapping[str, Any]) -> Iterable[str]:
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        default = f"`{json.dumps(value['default'])}`" if value.get("default") is not None else "–"
        shown = "required" if name in required else default
        words = value.get("description", "").replace("|", "\\|")
        yield f"| `{name}` | {kind_of(value)} | {shown} | {words} |"


def _fields(schema: Mapping[str, Any]) -> Iterable[str]:
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        yield f"`{name}{'' if name in required else '?'}`: {kind_of(value)}"


def _limits(schema: Mapping[str, Any], low: str, high: str, unit: str) -> str:
    if low in schema and high in schema:
        return f", {schema[low]:g}–{schema[high]}{unit}"
    if high in schema:
        return f", at most {schema[high]}{unit}"
    return f", at least {schema[low]:g}{unit}" if low in schema else ""


def _offered(effect: Effect) -> str:
    return "yes" if effect in effects_of("readOnly") else "no"


def _time(limit: float | str | None) -> str:
    if limit is None:
        return "its own"
    return "`tools.timeoutSeconds`" if limit == "setting" else f"{limit:g} s"
