"""The tools that another agent gets of the editor: their names and descriptions, and the tools of ours behind them.

The only module that knows these names. Not here: running a call (`lent_run.py`), the protocol to the agent
(`mcp_server/editor_serving.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.call_forms import plain, translate_arguments
from codeagent_lsp.errors import FileRefused
from codeagent_lsp.tools.code.graph_tools import FindDefinition, FindReferences
from codeagent_lsp.tools.code.server_tools import Hover, RenameSymbol
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.diagnostics.diagnostic_tools import GetDiagnostics
from codeagent_lsp.tools.files.edit_tools import EditFile, WriteFile
from codeagent_lsp.tools.files.read_tools import ReadFile
from codeagent_lsp.tools.questions.question_tools import AskUser
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.workspace.files.file_view import FileView

OPEN_FILES, PROPOSE = "open_files", "propose"
MOST_FILES = 200
_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_STAGED = "Staged, not written: the user reviews it in the editor and decides, so do not write the file yourself, too."


@dataclass(frozen=True, slots=True)
class LentTool:
    """A tool as the other agent sees it. `tool` is the class of ours behind it, None for what is done here; its
    parameters in `hidden` are neither listed nor accepted; `reads` if it changes nothing.
    """

    name: str
    description: str
    tool: type[Tool[Any]] | None = None
    hidden: tuple[str, ...] = ()
    reads: bool = True

    @property
    def own_name(self) -> str:
        """The name of our tool behind it; its own name if there is none."""
        return self.name if self.tool is None else self.tool.traits.name

    def refused(self, arguments: Mapping[str, Any]) -> str:
        """Return the name of the first argument that this tool does not accept here, in whatever spelling; '' for
        none.
        """
        given = {} if self.tool is None else translate_arguments(arguments, self.tool.forms)
        hidden = set(map(plain, self.hidden))
        return next((name for name in given if plain(name) in hidden), "")

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments, an object, without the hidden ones."""
        if self.tool is None:
            return dict(_NOTHING)
        schema = self.tool().input_schema()
        kept = {name: value for name, value in schema.get("properties", {}).items() if name not in self.hidden}
        return {**schema, "type": "object", "properties": kept}


LENT_TOOLS: tuple[LentTool, ...] = (
    LentTool(
        OPEN_FILES,
        "List the files that are open in the user's editor, and which of them hold text that is not saved.",
    ),
    LentTool(
        "read",
        "Read a file with line numbers as the editor has it: the unsaved text, with what you have staged. Prefer it to "
        "reading the disk.",
        ReadFile,
    ),
    LentTool(
        "diagnostics",
        "Errors and warnings as the editor's language servers report them, for unsaved and staged text, too.",
        GetDiagnostics,
    ),
    LentTool("definition", "Find where a function, class, method or constant is defined.", FindDefinition),
    LentTool("references", "Find where a function, class, method or constant is used.", FindReferences),
    LentTool("hover", "What the language server says of a name: its type, signature and documentation.", Hover),
    LentTool(
        "rename",
        f"Rename a function, class, variable or other name in all files. Give symbol, or line, or both. {_STAGED}",
        RenameSymbol,
        reads=False,
    ),
    LentTool(
        "edit",
        "Replace old_str by new_str in a file, on the unsaved text. old_str must occur exactly once; copy it from read "
        f"without the line numbers. {_STAGED}",
        EditFile,
        reads=False,
    ),
    LentTool(
        "write",
        f"Create a file, or replace its whole text; for a small change use edit. {_STAGED}",
        WriteFile,
        reads=False,
    ),
    LentTool(
        "run",
        "Run a command in a private copy of the workspace, without network, in which unsaved text and your staged "
        "edits are present. Text files that it writes are staged.",
        RunCmd,
        hidden=("allow_network", "env_vars", "background", "ready"),
        reads=False,
    ),
    LentTool("ask_user", "Ask the user in the editor what only they can know; waits for the answer.", AskUser),
    LentTool(
        PROPOSE,
        "Show the user what you have staged and wait for their decision. Call it when your change is complete; "
        "otherwise they are asked when you have been quiet for a while, or leave.",
        reads=False,
    ),
)


def lent_tool(name: str) -> LentTool | None:
    """Return the tool of that name; None if there is none."""
    return next((tool for tool in LENT_TOOLS if tool.name == name), None)


def in_lent_names(text: str) -> str:
    """Return a message for the other agent in which the names of our tools are replaced, as whole words, by those that
    it knows.
    """
    names = {tool.own_name: tool.name for tool in LENT_TOOLS}
    return re.sub(rf"\b(?:{'|'.join(names)})\b", lambda found: names[found.group()], text)


def with_kept_named(text: str) -> str:
    """Return a result in which the tool that reads a stored output (`@output/3.txt`) has the name that the other agent
    knows. Nothing else is changed: the rest is text of files and commands.
    """
    return re.sub(rf"\b{ReadFile.traits.name}(?= @output/\d+\.txt\b)", "read", text)


def open_files(view: FileView) -> str:
    """Return the open files, as lines for the model, at most 200, each with what is not saved of it, below the folders
    that paths are relative to. Blocks.
    """
    folders = ", ".join(view.roots.folders) or "none"
    lines = [f"Workspace: {folders}"]
    paths = view.open_paths()
    for path in paths[:MOST_FILES]:
        notes = _notes(view, path)
        lines.append(view.roots.relative(path) + (f" ({', '.join(notes)})" if notes else ""))
    if len(paths) > MOST_FILES:
        lines.append(f"and {len(paths) - MOST_FILES} more")
    return "\n".join(lines) if paths else f"{lines[0]}\nNo file is open."


def _notes(view: FileView, path: str) -> list[str]:
    """Return what is to be said of an open file."""
    try:
        base, saved = view.base(path), view.saved(path)
    except FileRefused:  # what is on the disk is no text, or too large
        return ["not as on the disk"]
    notes = []
    if saved is None:
        notes.append("not on the disk")
    elif base is not None and saved.text != base.text:
        notes.append("not saved")
    if view.text(path) != (None if base is None else base.text):
        notes.append("with your staged changes")
    return notes
