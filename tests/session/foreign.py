"""A user with files on the disk and buffers over them, and another program that changes the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.foreign.whose import DiskChange
from codeagent_lsp.session.foreign_runs import ForeignProposal, gathering, on_taken_back
from codeagent_lsp.session.request import FOREIGN, RunRequest
from codeagent_lsp.workspace.changes.changeset import Applied, ApplyOutcome, Changeset, Current
from tests.session.fakes import FakeEditor, World, say, world
from tests.workspace.file_fakes import FakeBuffers


class DiskEditor(FakeEditor):
    """An editor that opens what it changes, and saves nothing by itself; it creates and deletes files."""

    def __init__(self, buffers: FakeBuffers) -> None:
        super().__init__(buffers)
        self.labels: list[str] = []

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        self.labels.append(label)
        current = {each.path: self._current(each.path, None) for each in changeset}
        rebased = changeset.rebase(current)
        for change in rebased.changeset:
            if change.text is None:
                self.buffers.documents.pop(change.path, None)
                _unlink(change.path)
                continue
            if change.base is None:
                _touch(change.path)
            self.buffers.open(change.path, change.text, (change.version or 0) + 1)
        left = changeset.of({conflict.path for conflict in rebased.conflicts})
        outcome: ApplyOutcome = "full" if not left else "partial" if rebased.changeset else "none"
        return Applied(outcome, rebased.changeset, left, rebased.conflicts)

    def still_shows(self, path: str) -> bool:
        return False

    def has_unsaved_text(self, path: str) -> bool:
        document = self.buffers.get_by_path(path)
        return document is not None and document.text != disk(Path(path))

    def _current(self, path: str, moved_from: str | None) -> Current:
        document = self.buffers.get_by_path(path)
        return Current(disk(Path(path))) if document is None else Current(document.text, document.version)


def _unlink(path: str) -> None:
    Path(path).unlink()


def _touch(path: str) -> None:
    Path(path).touch(exist_ok=False)


def disk(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


class Desk:
    """The files of one user, by name; the latest run that holds what was changed outside."""

    def __init__(self, folder: Path) -> None:
        self.world: World = world(folder, say())
        services = self.world.manager._services
        self.editor = DiskEditor(self.world.buffers)
        ports = replace(services.workspace, editor=self.editor)
        self.world.manager._services = replace(services, workspace=ports)
        self.known: dict[str, str | None] = {}
        self.runs: list[ForeignProposal] = []

    def path(self, name: str) -> Path:
        return Path(self.world.path(name))

    def has(self, **files: str) -> None:
        for name, text in files.items():
            self.path(name).write_bytes(text.encode())
            self.known[name] = text

    @property
    def proposal(self) -> ForeignProposal:
        return self.runs[-1]

    @property
    def waits(self) -> Changeset:
        return self.runs[-1].changeset if self.runs else Changeset()

    async def outside(self, **files: str | None) -> None:
        """Another program writes or deletes files."""
        for name, text in files.items():
            if text is None:
                self.path(name).unlink()
            else:
                self.path(name).write_bytes(text.encode())
        await self._looked(files, is_foreign=True)

    async def save(self, name: str) -> None:
        document = self.world.buffers.get_by_path(str(self.path(name)))
        assert document is not None
        self.path(name).write_bytes(document.text.encode())
        await self._looked((name,), is_foreign=False)

    async def _looked(self, names: Iterable[str], *, is_foreign: bool) -> None:
        changes = []
        for name in names:
            now = disk(self.path(name))
            changes.append(DiskChange(str(self.path(name)), self.known.get(name), now, is_foreign))
            self.known[name] = now
        changes = [*on_taken_back(changes, self.runs)]
        if self.waits:
            await self.proposal.joins(changes)
        elif any(each.is_foreign and each.was != each.now for each in changes):
            manager = self.world.manager
            run_id = manager.start_beside(RunRequest(FOREIGN, "", "outside"), gathering(changes, ()))
            await self.world.finished(run_id)
            proposal = manager.runs.get(run_id).proposal
            assert isinstance(proposal, ForeignProposal)
            self.runs.append(proposal)

    def opens(self, name: str) -> None:
        self.world.buffers.open(str(self.path(name)), disk(self.path(name)) or "")

    def types(self, name: str, text: str) -> None:
        document = self.world.buffers.get_by_path(str(self.path(name)))
        assert document is not None
        self.world.buffers.open(str(self.path(name)), text, (document.version or 0) + 1)

    def text(self, name: str) -> str | None:
        """What the user sees: the buffer, else the disk."""
        document = self.world.buffers.get_by_path(str(self.path(name)))
        return disk(self.path(name)) if document is None else document.text

    def hunks(self, name: str) -> tuple[str, ...]:
        change = self.waits.get(str(self.path(name)))
        return () if change is None else change.hunk_ids()

    async def keep(self, name: str, *hunks: str) -> Applied:
        return await self.proposal.apply(hunks={str(self.path(name)): frozenset(hunks)})

    async def revert(self, name: str, *hunks: str) -> Applied:
        return await self.proposal.revert(hunks={str(self.path(name)): frozenset(hunks)})
