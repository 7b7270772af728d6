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
from codeagent_lsp.tools.files.edit_tools import EditFile
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.workspace.changes.staging import Step
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile

Fits = Callable[[str, Splice], bool]
"""Returns whether a splice of a text is what was asked for."""

_MOST_DIFF = 2000


async def staged(context: ToolContext, answer: ServerAnswer, edit: Any, fits: Fits = lambda text, splice: True) -> str:
    """Stage a WorkspaceEdit as one step that can be undone; return the report for the model. EditRefused or
    PermissionDenied, and then nothing is staged.
    """
    texts = Texts(context.view)
    wanted = await asyncio.to_thread(_verified, context, answer, edit, texts, fits)
    diff = await asyncio.to_thread(_diff, context, wanted, texts)
    step = _commit(context, wanted, texts.files)
    files = len({*wanted.texts, *wanted.moves})
    head = f"Staged for the user's decision: {wanted.count} places in {files} files, by {answer.server} (lsp)."
    return f"{head} Change {step.change_id}.\n{diff}"


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
        if len(syntax_errors(path, after) or ()) > len(syntax_errors(path, before) or ()):
            raise EditRefused("not_found", f"The edit of {answer.server} would break the syntax of {name}.")
    return wanted


def _before(texts: Texts, path: str) -> str:
    """Return the text of a file as it was read; '' for a new one, though there may be one by now."""
    file = texts.files.get(path)
    return "" if file is None else file.text


def _require_allowed(context: ToolContext, paths: Iterable[str]) -> None:
    """Raise PermissionDenied unless the user's rules let every file be edited without a question of its own."""
    settings, roots = context.settings.permissions, context.view.roots
    for path in sorted(paths):
        decision = decide(EditFile.traits, {"path": path}, settings, roots, names=EditFile.forms.names)
        if decision.verdict != "allow":
            name = roots.relative(path)
            raise PermissionDenied(f"Not made: it would change {name}, which may not be edited so ({decision.reason}).")


def _commit(context: ToolContext, wanted: ServerEdit, files: Mapping[str, FileText]) -> Step:
    """Stage the edit on the files as they were read. EditRefused if one of them is another by now: a new file that the
    user has made meanwhile, or one of which the staged state has changed.
    """
    for path in (*wanted.texts, *wanted.moves):
        if not _is_as_read(context, path, files.get(path)):
            name = context.view.roots.relative(path)
            raise EditRefused("not_found", f"{name} has changed while its edit was made. Ask for it again.")
    moves = {new: files[old] for old, new in wanted.moves.items()}
    texts = {wanted.moves.get(path, path): text for path, text in wanted.texts.items()}
    return context.staging.stage(texts, moves, [files[path] for path in wanted.texts if path in files])


def _is_as_read(context: ToolContext, path: str, file: FileText | None) -> bool:
    """Return whether a file is still new, or has the same staged text as when it was read. What the user types into it
    does not count: that is merged.
    """
    if file is None:
        return not context.view.exists(path)
    now = context.staging.lookup(path)
    return now == (StagedFile(file.text) if file.source == "staged" else None)


def _diff(context: ToolContext, wanted: ServerEdit, texts: Texts) -> str:
    parts = []
    for path, text in wanted.texts.items():
        name = context.view.roots.relative(path)
        parts.append(merge.unified_diff(_before(texts, path), text or "", f"a/{name}", f"b/{name}"))
    parts += [f"moved {old} to {new}\n" for old, new in wanted.moves.items()]
    whole = "".join(parts)
    if len(whole) <= _MOST_DIFF:
        return whole
    return (
        f"{whole[:_MOST_DIFF]}\n(the diff goes on; files: {', '.join(map(context.view.roots.relative, wanted.texts))})"
    )
