"""The system prompt and the first words of a task: short, stable, the same bytes for the same workspace.

What changes during a session is told in the latest user message, never here, so that a prompt cache holds.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from codeagent_lsp.workspace.files import FileView
from codeagent_lsp.workspace.lines import split_lines

INSTRUCTIONS_FILE = "AGENTS.md"
INSTRUCTIONS_LIMIT = 32 * 1024
SELECTION_LIMIT = 12_000


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the agent works: stable for a session. `commands` says where commands run."""

    folders: tuple[str, ...]
    editor: str = ""
    commands: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user points at: lines are 1-based and included; `text` is the selected text."""

    name: str
    start_line: int
    end_line: int
    text: str


def system_prompt(
    kind: str, environment: Environment, view: FileView | None = None, limit: int = INSTRUCTIONS_LIMIT
) -> str:
    """The system message for `kind` (`system`, `ask` or `rewrite`); `limit` bounds the instructions, in bytes."""
    parts = [
        load(kind),
        f"Environment: {platform.system()}, workspace {', '.join(environment.folders) or '-'}",
    ]
    if environment.editor:
        parts[-1] += f", editor {environment.editor}"
    if environment.commands and kind == "system":
        parts.append(environment.commands)
    instructions = project_instructions(environment.folders, limit)
    if instructions and kind != "rewrite":
        parts.append(f"Project instructions ({INSTRUCTIONS_FILE}):\n{instructions}")
    return "\n\n".join(part.strip() for part in parts)


def load(name: str) -> str:
    """The text of `prompts/<name>.md`."""
    return resources.files("codeagent_lsp.agent").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def project_instructions(folders: Sequence[str], limit: int = INSTRUCTIONS_LIMIT) -> str:
    """The instructions of the first folder that has any, at most 32 KiB; a link or an unreadable file is none."""
    limit = min(limit, INSTRUCTIONS_LIMIT)
    for folder in folders:
        path = Path(folder) / INSTRUCTIONS_FILE
        if path.is_symlink() or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                return file.read(limit).decode("utf-8", "ignore").strip()
        except OSError:
            continue
    return ""


def task_message(task: str, selection: Selection | None = None, diagnostics: Sequence[str] = ()) -> str:
    """The user's request with what it is about."""
    parts = [task.strip()]
    if selection is not None:
        where = f"{selection.name}, lines {selection.start_line}-{selection.end_line}"
        parts.append(f"Selected in {where}:\n```\n{shorten(selection.text)}\n```")
    if diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in diagnostics))
    return "\n\n".join(parts)


def shorten(text: str, limit: int = SELECTION_LIMIT) -> str:
    """`text`, or its first whole lines that fit into `limit` characters and a hint."""
    if len(text) <= limit:
        return text
    kept: list[str] = []
    size = 0
    for line in split_lines(text):
        size += len(line)
        if size > limit:
            break
        kept.append(line)
    return "".join(kept) + f"\n(… {len(text) - sum(map(len, kept))} more characters)"
