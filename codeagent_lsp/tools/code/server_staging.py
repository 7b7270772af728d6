"""Staging of what a language server wants to change: verified against the present texts and the user's rules, all or
nothing.

Not here: reading a WorkspaceEdit (`language_servers/server_edits.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from codeagent_lsp.errors import AgentError, EditRefused, PermissionDenied
from codeagent_lsp.language_servers.answers import Texts
from codeagent_lsp.language_servers.server_edits import ServerEdit, Splice, server_edit
from codeagent_lsp.language_servers.values import ServerAnswer
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.syntax import syntax_errors
from codeagent_lsp.tools.files.edit_tools import EditFile
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.workspace.changes.staging import Step
from codeagent_lsp.workspace.edits import merge

Fits = Callable[[str, Splice], bool]
"""Returns whether a splice of a text is what was asked for."""

_MOST_DIFF = 2000


async def staged(context: ToolContext, answer: ServerAnswer, edit: Any, fits: Fits = lambda text, splice: True) -> str:
    """Stage a WorkspaceEdit as one step that can be undone; return the report for the model. EditRefused or
    PermissionDenied, and then nothing is staged.
    """
    wanted = await asyncio.to_thread(_verified, context, answer, edit, fits)
    diff = await asyncio.to_thread(_diff, context, wanted)
    step = await _commit(context, wanted)
    files = len({*wanted.texts, *wanted.moves})
    head = f"Staged for the user's decision: {wanted.count} places in {files} files, by {answer.server} (lsp)."
    return f"{head} Change {step.change_id}.\n{diff}"


def _verified(context: ToolContext, answer: ServerAnswer, edit: Any, fits: Fits) -> ServerEdit:
    texts = Texts(context.view)
    wanted = server_edit(answer, edit, texts)
    if not wanted.texts and not wanted.moves:
        raise EditRefused("empty", f"{answer.server} changes nothing.")
    _require_allowed(context, {*wanted.texts, *wanted.moves, *wanted.moves.values()})
    for path, splices in wanted.splices.items():
        before, after, name = (texts.get(path) or ("",))[0], wanted.texts[path] or "", context.view.roots.relative(path)
        if not all(fits(before, splice) for splice in splices):
            raise EditRefused(
                "not_found", f"{answer.server} would change other text in {name} than what was asked for."
            )
        if len(syntax_errors(path, after) or ()) > len(syntax_errors(path, before) or ()):
            raise EditRefused("not_found", f"The edit of {answer.server} would break the syntax of {name}.")
    return wanted


def _require_allowed(context: ToolContext, paths: Iterable[str]) -> None:
    """Raise PermissionDenied unless the user's rules let every file be edited without a question of its own."""
    settings, roots = context.settings.permissions, context.view.roots
    for path in sorted(paths):
        decision = decide(EditFile.traits, {"path": path}, settings, roots, names=EditFile.forms.names)
        if decision.verdict != "allow":
            name = roots.relative(path)
            raise PermissionDenied(f"Not made: it would change {name}, which may not be edited so ({decision.reason}).")


async def _commit(context: ToolContext, wanted: ServerEdit) -> Step:
    read = [await asyncio.to_thread(context.view.read, path) for path in wanted.texts if context.view.exists(path)]
    moves = {new: await asyncio.to_thread(context.view.read, old) for old, new in wanted.moves.items()}
    texts = {wanted.moves.get(path, path): text for path, text in wanted.texts.items()}
    return context.staging.stage(texts, moves, read)


def _diff(context: ToolContext, wanted: ServerEdit) -> str:
    parts = []
    for path, text in wanted.texts.items():
        name = context.view.roots.relative(path)
        try:
            before = context.view.read(path).text if context.view.exists(path) else ""
        except AgentError:
            before = ""
        parts.append(merge.unified_diff(before, text or "", f"a/{name}", f"b/{name}"))
    parts += [f"moved {old} to {new}\n" for old, new in wanted.moves.items()]
    whole = "".join(parts)
    if len(whole) <= _MOST_DIFF:
        return whole
    return (
        f"{whole[:_MOST_DIFF]}\n(the diff goes on; files: {', '.join(map(context.view.roots.relative, wanted.texts))})"
    )
