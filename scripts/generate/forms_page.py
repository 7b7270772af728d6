"""Generates the page `docs/forms.md`: the other spellings of tool calls that are understood, and those of settings.

All of it is read from the tools' `forms`. Not here: writing the file (`__main__.py`), applying them (`call_forms.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from codeagent_lsp.call_forms import ANSWERS, Agent, CallForms, ForeignTool
from codeagent_lsp.settings_layers import OTHER_KEYS, OtherKey
from codeagent_lsp.tools.catalogue import BUILTIN

_INTRODUCTION = """\
Models have learned other tools, so they call this agent's tools by other names. What is listed here is understood and
becomes the tool's own call before anything judges it: rules, questions and records see only the names of
[tools.md](tools.md). The same holds for steps of `compose` and for clients of `codeagent-lsp sandbox-mcp`. Two
spellings of one parameter with different values are an error; a parameter that is neither here nor there is passed
over. Names of parameters may be written in another way, `filePath` for `file_path`.

Rules (`permissions.allow`, `.ask`, `.deny`), `tools.disabled` and the `tools` of a skill may use these names, too:
`bash(make *)` is `run_cmd(make *)`."""

_TEXT = """\
In a text, a call may also be an action at the start of a line, the last that the reply says:
`Action: read_file[{"path": "a.py"}]` or `Action: read_file(path="a.py")`. An observation that the model makes up after
it is dropped. An action in a sentence or in a fence, or of a tool that does not exist, is text."""

_FOREIGN = """\
What other agents call their tools, with capitals as they have them, for models that learned to call those. Each call
becomes the call of ours that means the same, with the other tool's own counting of lines. Parameters that stand above
or have the same name are not repeated. It is not for clients of `codeagent-lsp sandbox-mcp`, which have its schemas."""

_ANSWERS = """\
These are no tools here: what they say becomes the answer, and the run ends with it: {answers}. With a plan open,
`ExitPlanMode` and `exit_plan_mode` show the plan to you.

Calls of `use_mcp_tool` and `CallMcpTool` are calls of the MCP server's tool. Calls in `multi_tool_use.parallel` and
`batch` run as if each had been made alone.

What no tool of ours can do is refused with the parameters of the one that comes nearest: {near}."""

_SETTINGS = """\
These keys of the section `codeagent` are understood beside those of [settings.md](settings.md), which win. From what an
editor answers for a workspace, a spelling of a setting marked † is not taken: write it as its own key."""


def forms_page(note: str) -> str:
    """Return the page; `note` is the line that says that it is generated."""
    lines = ["# Other spellings that are understood", "", note, "", _INTRODUCTION, ""]
    lines += ["| tool | other names | parameters | dropped | also |", "|---|---|---|---|---|"]
    lines += [_row(tool.traits.name, tool.forms) for tool in BUILTIN if _has_own(tool.forms)]
    lines += ["", "## Tools of other agents", "", _FOREIGN, *_by_agent()]
    answers = ", ".join(f"`{name}` (`{keys[0]}`)" for name, keys in ANSWERS.items())
    near = "; ".join(
        f"{', '.join(f'`{name}`' for name in tool.forms.near)}: `{tool.traits.name}`"
        for tool in BUILTIN
        if tool.forms.near
    )
    lines += ["", "### Answers, and what holds other calls", "", _ANSWERS.format(answers=answers, near=near)]
    lines += ["", "## Calls in a text", "", _TEXT]
    lines += ["", "## Settings", "", _SETTINGS, "", "| spelling | setting | values |", "|---|---|---|"]
    lines += [_setting_row(name, other) for name, other in OTHER_KEYS.items() if other.key != name]
    return "\n".join([*lines, ""])


def _by_agent() -> Iterator[str]:
    """Yield a table for each agent, in the order of the alphabet."""
    known = [(tool.traits.name, foreign) for tool in BUILTIN for foreign in tool.forms.foreign]
    for agent in sorted(get_args(Agent), key=str.casefold):
        found = [_foreign_row(name, foreign) for name, foreign in known if agent in foreign.agents]
        yield from ("", f"### {agent}", "", "| its tool | ours | parameters | also |", "|---|---|---|---|", *found)


def _foreign_row(name: str, foreign: ForeignTool) -> str:
    words = (*((foreign.when.words,) if foreign.when else ()), *(shape.words for shape in foreign.shapes))
    fixed = [f"`{key}` is `{value}`" for key, value in foreign.fixed.items() if value != ""]
    cells = (
        f"`{foreign.name}`",
        f"`{name}`",
        ", ".join(f"`{other}` = `{own}`" for other, own in foreign.arguments.items()),
        "; ".join((*words, *fixed)),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') or '–' for cell in cells)} |"


def _setting_row(name: str, other: OtherKey) -> str:
    values = ", ".join(f"`{json.dumps(given)}` = `{value}`" for given, value in other.values.items())
    return f"| `{name}` | `{other.key}` | {values or '–'} |"


def _has_own(forms: CallForms) -> bool:
    """Return whether a tool has other spellings that stand in no agent's table."""
    return replace(forms, foreign=(), near=()) != CallForms()


def _row(name: str, forms: CallForms) -> str:
    cells = (
        f"`{name}`",
        ", ".join(f"`{other}`" for other in forms.names),
        ", ".join(_parameters(forms)),
        ", ".join(f"`{other}`" for other in forms.ignored),
        "; ".join(_others(forms)),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') or '–' for cell in cells)} |"


def _parameters(forms: CallForms, place: str = "") -> Iterator[str]:
    for other, own in forms.parameters.items():
        yield f"`{place}{other}` = `{own}`"
    for own, values in forms.values.items():
        yield from (f"`{place}{own}`: `{other}` = `{value}`" for other, value in values.items())
    for own, inner in forms.items.items():
        yield from _parameters(inner, f"{place}{own}.")


def _others(forms: CallForms) -> Iterator[str]:
    for own, text in forms.plain.items():
        yield f"a text in `{own}` is its `{text}`"
    yield from (shape.words for shape in forms.shapes)
    for inner in forms.items.values():
        yield from _others(inner)
