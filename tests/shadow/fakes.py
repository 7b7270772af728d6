"""A small workspace with a view, a staging and buffers, and a private view of it in a plain folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.shadow.shell import Command, Isolation, Launch, Level, Writings, Written, WrittenKind
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.document import Document
from tests.workspace.file_fakes import FakeBuffers


@dataclass
class Desk:
    """Folders with what a user has open in them and what a run has staged."""

    root: Path
    buffers: FakeBuffers
    staging: Staging
    view: FileView

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, content: str | bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def open(self, name: str, text: str, version: int = 1) -> None:
        self.buffers.open(self.path(name), text, version)

    def stage(self, name: str, text: str | None) -> None:
        self.staging.write({self.path(name): text})

    def move(self, old: str, new: str) -> None:
        self.staging.move(self.path(new), self.view.read(self.path(old)))

    def type(self, name: str, old: str, new: str) -> None:
        """The user replaces something in an open buffer."""
        document = self.buffers.documents[self.path(name)]
        text = document.text.replace(old, new, 1)
        assert text != document.text
        self.buffers.documents[self.path(name)] = Document(document.uri, text, (document.version or 0) + 1)

    @property
    def changes(self) -> dict[str, str | None]:
        """The staged texts by relative path; moved files are also there as `old -> new`."""
        found: dict[str, str | None] = {}
        for change in self.staging.changeset:
            name = os.path.relpath(change.path, self.root)
            old = change.moved_from and os.path.relpath(change.moved_from, self.root)
            found[f"{old} -> {name}" if old else name] = change.text
        return found

    def seen(self) -> dict[str, str]:
        """Every text that the run sees, by relative path."""
        texts = {}
        for path in self.view.walk(str(self.root)):
            try:
                texts[os.path.relpath(path, self.root)] = self.view.read(path).text
            except FileRefused:  # binary
                pass
        return texts


def desk(folder: Path, *more: Path, max_bytes: int = 1 << 20, staged: Changeset | None = None) -> Desk:
    for each in (folder, *more):
        each.mkdir(parents=True, exist_ok=True)
    buffers, roots = FakeBuffers(), Roots([str(folder), *map(str, more)])
    holder: list[FileView] = []
    staging = Staging(lambda path: holder[0].base(path), changeset=staged)
    view = FileView(roots, buffers, staging, max_bytes=max_bytes)
    holder.append(view)
    return Desk(folder.resolve(), buffers, staging, view)


def text(path: str, data: str | bytes) -> Written:
    return Written(path, "text", data.encode() if isinstance(data, str) else data)


def gone(path: str) -> Written:
    return Written(path, "deleted")


def other(path: str, kind: WrittenKind) -> Written:
    return Written(path, kind)


def fake_isolation(level: Level = "copy", reason: str = "") -> Isolation:
    return Isolation(level, confined=False, offline=False, hidden=False, reason=reason)


@dataclass
class FakeLayer:
    """A private view made anew for every command: a whole copy of one folder. Nothing is ignored in it."""

    root: Path
    place: Path
    isolation: Isolation = field(default_factory=fake_isolation)
    prepared: list[Mapping[str, bytes | None]] = field(default_factory=list)
    closed: int = 0
    busy: int = 0
    failing: str = ""
    before_prepare: Callable[[], None] = lambda: None
    threads: set[int] = field(default_factory=set)

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        self.threads.add(threading.get_ident())
        self.busy += 1
        assert self.busy == 1
        try:
            self.before_prepare()
            if self.failing:
                raise OSError(28, self.failing)
            self.prepared.append(dict(wanted))
            self._copy(wanted)
        finally:
            self.busy -= 1

    def _copy(self, wanted: Mapping[str, bytes | None]) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.root, self.place, symlinks=True)
        for path, data in wanted.items():
            target = self.place / os.path.relpath(path, self.root)
            target.unlink(missing_ok=True)
            if data is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        self._before = self._bytes()

    def launch(self, command: Command) -> Launch:
        script = command.script
        argv = ("bash", "-c", script) if isinstance(script, str) else script
        cwd = self.place / os.path.relpath(command.cwd, self.root)
        reports = self.place.with_name("reports")
        reports.mkdir(exist_ok=True)
        return Launch(argv, str(cwd), {**os.environ, **command.environment}, str(reports))

    def writings(self) -> Writings:
        self.threads.add(threading.get_ident())
        after = self._bytes()
        names = sorted(self._before.keys() | after.keys())
        changed = [name for name in names if self._before.get(name) != after.get(name)]
        return Writings(
            tuple(
                text(f"{self.root}/{name}", after[name]) if name in after else gone(f"{self.root}/{name}")
                for name in changed
            )
        )

    def close(self) -> None:
        self.closed += 1
        shutil.rmtree(self.place, ignore_errors=True)

    def _bytes(self) -> dict[str, bytes]:
        files = (path for path in self.place.rglob("*") if path.is_file())
        return {str(path.relative_to(self.place)): path.read_bytes() for path in files}


def ran(launch: Launch, seconds: float = 30) -> str:
    """What a command printed to its standard output."""
    done = subprocess.run(
        launch.argv, cwd=launch.cwd, env=dict(launch.environment), capture_output=True, timeout=seconds, check=False
    )
    return done.stdout.decode("utf-8", "replace")


def frozen(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that can be seen of a tree without opening a folder's files twice: modes, times, links and contents."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        info = path.lstat()
        content: object = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes()
        times = (info.st_mtime_ns, info.st_ctime_ns)
        found[str(path)] = (info.st_mode, info.st_ino, info.st_nlink, info.st_uid, *times, content)
    return found
