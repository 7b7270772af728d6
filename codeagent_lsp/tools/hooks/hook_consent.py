"""What the user says of the hooks of files: nothing of a file runs before they trust it as it is.

Not here: the files (`hook_files.py`), running hooks (`hooks.py`), what is trusted for good (`tools/skills/desk.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator

from codeagent_lsp.shadow.shell import Isolation, Shell
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.hooks.hook_files import HookFile, HookShelf
from codeagent_lsp.tools.skills.desk import Brings, trusted
from codeagent_lsp.tools.skills.trust import WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView

CONFINED = Isolation("overlay", confined=True, offline=True, hidden=True)
"""How hooks are kept from everything else wherever they run at all."""


class HookConsent:
    """The user's consent to the hooks of files, in one run; `brings` returns what else of the workspace needs trust."""

    def __init__(self, shelf: HookShelf, session_id: str, brings: Brings = tuple) -> None:
        self._shelf = shelf
        self._session_id = session_id
        self._brings = brings
        self._asking = asyncio.Lock()
        self._answers: dict[str, bool] = {}

    def copy(self) -> HookConsent:
        """Return what the user has said until now, for another run: what becomes of it there stays there."""
        made = HookConsent(self._shelf, self._session_id, self._brings)
        made._answers.update(self._answers)
        return made

    def decided(self, file: HookFile, shell: Shell) -> bool:
        """Return whether the user has said in this run what becomes of the hooks of a file as they are."""
        return _digest(file, shell.isolation) in self._answers

    def given(self, file: HookFile, shell: Shell) -> bool:
        """Return whether the user trusts the hooks of a file as they are."""
        return self._answers.get(_digest(file, shell.isolation), False)

    async def ask(self, context: ToolContext, file: HookFile, shell: Shell) -> None:
        """Have it decided: asked once in a run, and again if they have changed or would be isolated less. Who does not
        trust them is not asked again, but told.
        """
        digest, name = _digest(file, shell.isolation), context.view.roots.relative(file.path)
        async with self._asking:
            if digest in self._answers:
                return
            if (self._session_id, digest) in self._shelf.refused and not self._shelf.trust.covers(digest):
                context.note(context.words("hooks.refused_before", path=name))
                self._answers[digest] = False
                return
            item = WorkspaceItem("hooks", name, name, digest, _shown(file), _shown(file))
            answer = await trusted(self._shelf.trust, item, context.asker, context.words, self._brings)
            self._answers[digest] = bool(answer)
            if answer is False:
                self._shelf.refused.add((self._session_id, digest))


def hook_items(shelf: HookShelf, view: FileView) -> Iterator[WorkspaceItem]:
    """Yield the files of the workspace that define hooks, trusted or not. Blocks."""
    for file in shelf.files(view):
        if file.hooks and view.roots.root_of(file.path) is not None:
            name = view.roots.relative(file.path)
            yield WorkspaceItem("hooks", name, name, _digest(file, CONFINED), _shown(file), _shown(file))


def _digest(file: HookFile, isolation: Isolation) -> str:
    """Return what the user's trust is bound to: the hooks, and how they are kept from everything else."""
    kept = f"{file.path} {file.digest} {isolation.confined} {isolation.offline} {isolation.hidden}"
    return hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(file: HookFile) -> str:
    """Return the hooks for the question whether they are trusted."""
    return "; ".join(
        f"{' '.join(filter(None, (hook.event, '|'.join(hook.tools), hook.only)))}: {hook.command}"
        for hook in file.hooks
    )
