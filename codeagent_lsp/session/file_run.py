"""Runs one file of the user, as it is in the editor, and emits its output. No model is involved.

Not here: where it runs (`shadow/`), what becomes of the files it writes (`proposal.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePath

from codeagent_lsp import events
from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.command_output import OutputStream
from codeagent_lsp.shadow.shell import Command, CommandResult, Shell, Stream
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.files.paths import is_untitled

_PROGRAMS: dict[str, tuple[str, ...]] = {
    ".py": ("python3",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".ts": ("npx", "--no-install", "tsx"),
    ".sh": ("bash",),
    ".bash": ("bash",),
    ".go": ("go", "run"),
    ".rb": ("ruby",),
    ".php": ("php",),
    ".pl": ("perl",),
    ".lua": ("lua",),
    ".java": ("java",),
    ".r": ("Rscript",),
    ".jl": ("julia",),
}
_ENVIRONMENTS = (".venv/bin/python", "venv/bin/python")


def command_for(file: FileText, args: Sequence[str], view: FileView) -> tuple[str, ...]:
    """Return the command that runs `file`: by its `#!` line, else by its extension. UsageError if neither is known, or
    if the file has no path yet.
    """
    if is_untitled(file.path):
        raise UsageError("file_run.untitled")
    name = view.roots.relative(file.path)
    first = file.text.split("\n", 1)[0]
    if first.startswith("#!"):
        program = tuple(shlex.split(first[2:].strip()))
    else:
        program = _PROGRAMS.get(PurePath(file.path).suffix.lower(), ())
    if not program:
        raise UsageError("file_run.unknown", name=name)
    return (*_in_environment(program, file.path, view), file.path, *args)


async def run_file(
    shell: Shell, words: tuple[str, ...], folder: str, file: str, emit: Callable[[events.Event], None]
) -> CommandResult:
    """Run the command for `file` in a folder to its end; its start, output and exit are emitted as events."""
    emit(events.FileRunStarted(command=shlex.join(words), file=file))
    output = OutputStream(lambda stream, text: emit(_printed(stream, text)))
    try:
        result = await shell.run(Command(words, folder, apart=True), output.write)
    finally:
        output.close()
    emit(events.FileRunExit(exit_code=result.finished.exit_code, duration=round(result.finished.seconds, 3)))
    return result


def _printed(stream: Stream, text: str) -> events.Event:
    return events.Stdout(content=text) if stream == "stdout" else events.Stderr(content=text)


def _in_environment(program: tuple[str, ...], path: str, view: FileView) -> tuple[str, ...]:
    """Return the program; for a plain `python3` that of the folder's virtual environment, if there is one."""
    root = view.roots.root_of(path)
    if PurePath(program[0]).name not in ("python", "python3") or root is None:
        return program
    found = (str(PurePath(root, name)) for name in _ENVIRONMENTS)
    return (next(filter(view.exists, found), program[0]), *program[1:])
