"""The questions to the user about the changes of one run. Not here: what follows from the answers (`proposal.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp.session.proving.proofs import Proofs
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import Services
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.permissions.approvals import exactly, named_together
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.visible import ends_of

MAX_NAMES, MAX_GONE = 3000, 300  # characters
# A command that writes dozens of such files would have the user click until yes is a habit; the answer is no.
MAX_QUESTIONS = 10


class ChangeQuestions:
    """The questions about one run's changes, with the proof that they show; it remembers which of them is open."""

    def __init__(self, run_id: str, services: Services, output: RunOutput, roots: Roots, proofs: Proofs) -> None:
        self._run_id = run_id
        self._services = services
        self._output = output
        self._roots = roots
        self._open: Question | None = None
        self._proofs = proofs

    def title(self, changeset: Changeset) -> str:
        """Return the question about all changes, with their proof and the name of each file that can run code later,
        such as a git hook, cut beyond 3,000 characters. Blocks for reading the files.
        """
        added, removed = changeset.counts()
        paths = changeset.paths
        if len(paths) == 1:
            change = next(iter(changeset))
            name, origin = self._name(change.path), self._name(change.moved_from or "")
            title = self._output.text(f"changes.{change.kind}", name=name, origin=origin, added=added, removed=removed)
        else:
            title = self._output.text("changes.many", count=len(paths), added=added, removed=removed)
            title = " ".join((*self._missing_files(changeset), title))
        title = " ".join((*self._modes(changeset), title, *self._proofs.words(changeset, self._output.text)))
        names = ", ".join(map(self._name, filter(self._roots.is_protected, paths)))
        if not names:
            return title
        later = self._output.text("changes.run_later", names=ends_of(names, MAX_NAMES, self._output.language))
        # In front: editors cut a long title at its end, and this is the part that must be read.
        return f"{later}. {title}"

    def _missing_files(self, changeset: Changeset) -> list[str]:
        """Name the files that will not be where they are now: a count of files does not say that some go."""
        deleted = [self._name(change.path) for change in changeset if change.kind == "delete"]
        moved = [
            f"{self._name(change.moved_from)} → {self._name(change.path)}" for change in changeset if change.moved_from
        ]
        return self._name_files(("changes.deletes", deleted), ("changes.moves", moved))

    def _modes(self, changeset: Changeset) -> list[str]:
        """Name the files that can be executed afterwards, or no longer: most diffs do not show that."""
        wanted = {True: "changes.executable", False: "changes.not_executable"}
        return self._name_files(
            *((key, [self._name(each.path) for each in changeset if each.runs is runs]) for runs, key in wanted.items())
        )

    def _name_files(self, *parts: tuple[str, list[str]]) -> list[str]:
        shown = [(key, ends_of(", ".join(names), MAX_GONE, self._output.language)) for key, names in parts if names]
        return [self._output.text(key, names=names) for key, names in shown]

    def _name(self, path: str) -> str:
        return exactly(self._roots.relative(path)) if path else ""

    async def ask(
        self, title: str, choices: tuple[str, ...], detail: str, *, beside: bool = False
    ) -> tuple[str, ...] | None:
        """Ask which of the `choices` to take with the changes, of which `detail` is the diff, and wait. Return the
        answer as a tuple of the chosen title; None without an answer, and for an attempt, which asks nothing. With
        `beside`, the user is reading the diff, so no prompt opens over it.
        """
        self._open = Question("approval", title, choices, detail=detail, beside=beside)
        return await self._output.ask(self._open)

    def asks(self, question: Question) -> bool:
        """Return whether this question is the one about the changes that is open, or was last (compared by
        identity).
        """
        return self._open is question

    def settle(self) -> None:
        """Close the open question about the changes, if there is one: they were decided about elsewhere."""
        if self._open is not None:
            self._services.user.inbox.settle(self._run_id, self._open)

    async def ask_about_unsaved(self, changeset: Changeset) -> frozenset[str]:
        """Ask about each file that would be deleted with unsaved text in it; return the absolute paths that may be
        deleted, none without an answer. Waits for the answers.
        """
        allowed: list[str] = []
        keep, delete = self._output.text("choice.keep"), self._output.text("choice.delete")
        for change in changeset:
            if change.kind == "delete" and self._services.workspace.editor.has_unsaved_text(change.path):
                title = self._output.text("changes.unsaved", name=self._name(change.path))
                answer = await self._output.ask(Question("approval", title, (keep, delete), danger=True))
                # No answer keeps the file, as every missing answer is a no.
                allowed.extend([change.path] if answer == (delete,) else [])
        return frozenset(allowed)

    async def ask_about_protected(self, paths: Iterable[str]) -> bool:
        """Ask whether files (absolute paths) that a command wrote and that can run code may be proposed, and wait; each
        of them is named. True only if all may. False without an answer, or if there are too many to ask about.
        """
        deny, once = self._output.text("choice.deny"), self._output.text("choice.once")
        groups = named_together(map(self._roots.relative, paths))
        if len(groups) > MAX_QUESTIONS:
            return False
        for names in groups:
            title = self._output.text("changes.protected", names=names)
            if await self._output.ask(Question("approval", title, (deny, once), danger=True)) != (once,):
                return False
        return True
