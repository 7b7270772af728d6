"""Staging of what a language server wants to change: verified against the present texts and the user's rules, all or
nothing.

The user may type while an edit is verified. It is staged on the files as they were read for it, so that this is merged,
as all that the user types.

Not here: reading a WorkspaceEdit (`language_servers/server_edits.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from codeagent_lsp.errors import EditRefused, PermissionDenied
from codeagent_lsp.language_servers.answers import Texts
from codeagent_lsp.language_servers.server_edits import ServerEdit, Splice, server_edit
from codeagent_lsp.language_servers.values import ServerAnswer
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.syntax import syntax_errors
from codeagent_lsp.tools.files.edit_tools import EditFile, hunks_told
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.workspace.changes.staging import Step
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile

Fits = Callable[[str, Splice], bool]
"""Returns whether a splice of a text is what was asked for."""

_MOST_TOLD = 2000


async def staged(context: ToolContext, answer: ServerAnswer, edit: Any, fits: Fits = lambda text, splice: True) -> str:
    """Stage a WorkspaceEdit as one step that can be undone; return the report for the model. EditRefused or
    PermissionDenied, and then nothing is staged.
    """
    texts = Texts(context.view)
    wanted = await asyncio.to_thread(_verified, context, answer, edit, texts, fits)
    step = _commit(context, wanted.texts, wanted.moves, texts.files)
    head = _head(wanted.count, len({*wanted.texts, *wanted.moves}), f"{answer.server} (lsp)")
    report = await asyncio.to_thread(_report, context, wanted.texts, texts.files, wanted.moves)
    return f"{head} Change {step.change_id}.\n{report}"


async def staged_texts(
    context: ToolContext, texts: Mapping[str, str], files: Mapping[str, FileText], count: int, by: str
) -> str:
    """Stage new texts of several files, by absolute path, with `count` changed places, as one step; return the report.
    EditRefused or PermissionDenied, and then nothing is staged.
    """
    _require_allowed(context, texts)
    for path, text in texts.items():
        _require_sound(context, path, files[path].text, text, by)
    step = _commit(context, texts, {}, files)
    report = await asyncio.to_thread(_report, context, texts, files, {})
    return f"{_head(count, len(texts), by)} Change {step.change_id}.\n{report}"


def _head(count: int, files: int, by: str) -> str:
    places = "1 place" if count == 1 else f"{count} places"
    return f"Staged for the user's decision: {places} in {files} file{'' if files == 1 else 's'}, by {by}."


def _verified(context: ToolContext, answer: ServerAnswer, edit: Any, texts: Texts, fits: Fits) -> ServerEdit:
    wanted = server_edit(answer, edit, texts)
    if not wanted.texts and not wanted.moves:
        raise EditRefused("empty", f"{answer.server} changes nothing.")
    _require_allowed(context, {*wanted.texts, *wanted.moves, *wanted.moves.values()})
    for path, splices in wanted.splices.items():
        before, after, name = _before(texts, path), wanted.texts[path] or "", context.view.roots.relative(path)
        if not all(fits(before, splice) for splice in splices):
            raise EditRefused(
                "not_found", f"{answer.server} would change other text in {name} than what was asked for."
            )
        _require_sound(context, path, before, after, answer.server)
    return wanted


def _require_sound(context: ToolContext, path: str, before: str, after: str, by: str) -> None:
    if len(syntax_errors(path, after) or ()) > len(syntax_errors(path, before) or ()):
        name = context.view.roots.relative(path)
        raise EditRefused("not_found", f"The edit of {by} would break the syntax of {name}.")


def _before(texts: Texts, path: str) -> str:
    """Return the text of a file as it was read; '' for a new one, though there may be one by now."""
    file = texts.files.get(path)
    return "" if file is None else file.text


def _require_allowed(context: ToolContext, paths: Iterable[str]) -> None:
    """Raise PermissionDenied unless the user's rules let every file be edited without a question of its own, and none
    is named by `.codeagentignore`: who made the edit does not know that file.
    """
    settings, roots = context.settings.permissions, context.view.roots
    for path in sorted(paths):
        if context.view.is_named_for_agents(path):
            raise PermissionDenied(
                f"Not made: it would change {roots.relative(path)}, which .codeagentignore names. Nothing was changed; "
                "leave that file to the user, and change the others by edit_file."
            )
        decision = decide(EditFile.traits, {"path": path}, settings, roots, names=EditFile.forms.names)
        if decision.verdict != "allow":
            name = roots.relative(path)
            raise PermissionDenied(f"Not made: it would change {name}, which may not be edited so ({decision.reason}).")


def _commit(
    context: ToolContext, texts: Mapping[str, str | None], moves: Mapping[str, str], files: Mapping[str, FileText]
) -> Step:
    """Stage the edit on the files as they were read. EditRefused if one of them is another by now: a new file that the
    user has made meanwhile, or one of which the staged state has changed.
    """
    for path in (*texts, *moves):
        if not _is_as_read(context, path, files.get(path)):
            name = context.view.roots.relative(path)
            raise EditRefused("not_found", f"{name} has changed while its edit was made. Ask for it again.")
    moved = {new: files[old] for old, new in moves.items()}
    placed = {moves.get(path, path): text for path, text in texts.items()}
    return context.staging.stage(placed, moved, [files[path] for path in texts if path in files])


def _is_as_read(context: ToolContext, path: str, file: FileText | None) -> bool:
    """Return whether a file is still new, or has the same staged text as when it was read. What the user types into it
    does not count: that is merged.
    """
    if file is None:
        return not context.view.exists(path)
    now = context.staging.lookup(path)
    return now == (StagedFile(file.text) if file.source == "staged" else None)


def _report(
    context: ToolContext, texts: Mapping[str, str | None], files: Mapping[str, FileText], moves: Mapping[str, str]
) -> str:
    name = context.view.roots.relative
    before = {path: file.text if (file := files.get(path)) else "" for path in texts}
    told = [hunks_told(name(path), before[path], text or "") for path, text in texts.items()]
    whole = "\n".join([*told, *(f"moved {name(old)} to {name(new)}" for old, new in moves.items())])
    if len(whole) <= _MOST_TOLD:
        return whole
    return f"{whole[:_MOST_TOLD]}\n(and more; files: {', '.join(map(name, texts))})"
