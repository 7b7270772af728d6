"""The system prompt and the first message of a task: short, and the same bytes for the same workspace.

What changes during a session goes into the latest user message, never here, so that a prompt cache holds.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.workspace.text.position import split_lines

SELECTION_LIMIT = 12_000

OVERVIEW = """Repo map: what holds the workspace together, by the code itself, as it was when this session began. Files
with signatures first, then names by folder; there are more files."""
PIECES = "Code that may answer, found by the words of the question, best first, with its lines in the file:"
TASK_MAP = "Files that may matter to the task, found by its words and by how the code hangs together, best first:"


@dataclass(frozen=True, slots=True)
class Environment:
    """What a run's prompt says of its surroundings: the workspace folders (absolute paths), the editor's name and
    sentences on how commands run, each '' if not known. It stays the same during a run.
    """

    folders: tuple[str, ...]
    editor: str = ""
    commands: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection in a file: `name` is the file's path relative to the workspace; lines are 1-based and inclusive;
    `text` is the selected text.
    """

    name: str
    start_line: int
    end_line: int
    text: str


def system_prompt(kind: str, environment: Environment, background: str = "") -> str:
    """Return the system message for `kind` (`agent`, `system`, `ask`, `rewrite`), with `background` on the project at
    its end. Only the first two are told how commands run. FileNotFoundError for another kind.
    """
    # Runs that only answer or rewrite are offered no commands, so they are not told how these run.
    return agent_prompt(
        load(kind), environment if kind in ("system", "agent") else replace(environment, commands=""), background
    )


def agent_prompt(instructions: str, environment: Environment, background: str = "") -> str:
    """Return the system message of an agent as paragraphs: its instructions, the environment (system, folders, editor,
    commands), and `background` on the project, if any.
    """
    parts = [
        instructions,
        f"Environment: {_system()}, workspace {', '.join(environment.folders) or '-'}",
    ]
    if environment.editor:
        parts[-1] += f", editor {environment.editor}"
    parts += [environment.commands, background]
    return "\n\n".join(part.strip() for part in parts if part)


def _system() -> str:
    """Return the operating system's name and version, without what its builder added."""
    # `6.8.0-45-generic` is `6.8.0`: an update of the system's package would else change every prompt.
    version = platform.release().partition("-")[0]
    return f"{platform.system()} {version}".strip()


def load(name: str) -> str:
    """Return the text of `prompts/<name>.md` of this package, stripped. Blocks. FileNotFoundError if there is none."""
    from importlib import resources  # late: an idle server has no prompt

    return resources.files("codeagent_lsp.agent").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def task_message(task: str, selection: Selection | None = None, diagnostics: Sequence[str] = ()) -> str:
    """Return the user's request with the selected text in a fence, cut to 12,000 characters, and the diagnostics that
    it is about, one line each.
    """
    parts = [task.strip()]
    if selection is not None:
        where = f"{selection.name}, lines {selection.start_line}-{selection.end_line}"
        parts.append(f"Selected in {where}:\n```\n{shorten(selection.text)}\n```")
    if diagnostics:
        parts.append("Diagnostics:\n" + "\n".join(f"- {line}" for line in diagnostics))
    return "\n\n".join(parts)


def overview_part(text: str) -> str:
    """Return the repo map with its heading, for the system prompt; for '' the heading alone."""
    return f"{OVERVIEW}\n{text}"


def task_map_part(text: str) -> str:
    """Return the repo map with its heading, to be put before a task; for '' the heading alone."""
    return f"{TASK_MAP}\n{text}"


def pieces_part(pieces: Iterable[tuple[str, int, int, str]], tokens: int) -> str:
    """Return pieces of code (path, first and last line counted from 1, text) with a heading, to be put before a
    question; '' for none.

    Those that do not fit into `tokens` (estimated, without the heading) any more are left out.
    """
    parts: list[str] = []
    for path, start, end, text in pieces:
        part = f"{path}:{start}-{end}\n```\n{text}\n```"
        cost = estimate_tokens(part)
        if cost <= tokens:
            parts.append(part)
            tokens -= cost
    return "\n\n".join((PIECES, *parts)) if parts else ""


def map_changes(new: Sequence[str], gone: Sequence[str]) -> str:
    """Return a sentence on the files (paths as the map shows them) that are new or gone since the repo map in the
    system prompt was made; '' for none.
    """
    parts = [f"new: {', '.join(new)}"] if new else []
    parts += [f"gone: {', '.join(gone)}"] if gone else []
    return f"Since the repo map above was made: {'; '.join(parts)}." if parts else ""


def shorten(text: str, limit: int = SELECTION_LIMIT) -> str:
    """Return `text`, or its first whole lines that fit into `limit` characters and, beyond the limit, a line that says
    how many characters are missing.
    """
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
