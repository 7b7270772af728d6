"""The files of a workspace as a client of the Agent Client Protocol has them, told to our server as an editor would.

Such a client does not tell what is open. It is asked for the text of a file when the server needs it; a text that is
not that of the disk becomes an open document there. Accepted changes go to the client, or to the disk where it takes
none. Not here: the messages of either protocol (`session_server.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.lsp_client.disk import Disk, EditImpossible, FileWrite, commit, path_of, plan, reason
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.encoding import Encoding, decode, encode
from codeagent_lsp.workspace.text.position import with_newlines

READ_SECONDS = 5.0
WRITE_SECONDS = 30.0
MOST_BYTES = 1 << 20
"""Larger files are not asked for: the server reads none of them either."""
MOST_ASKED_AGAIN = 100
CREATED, CHANGED, DELETED = 1, 2, 3
_MARK = "\ufeff"

Notify = Callable[[str, Mapping[str, Any]], None]


class FolderNames:
    """The folders of a session as the client writes them, in which there may be links, and their real paths, `real`, in
    the same order.
    """

    def __init__(self, given: Iterable[Path]) -> None:
        self._given = {path.resolve(): path for path in reversed(tuple(given))}
        self.real: tuple[Path, ...] = tuple(reversed(self._given))

    def shown(self, path: str) -> str:
        """Return a real path as the client would write it; one outside of the folders as it is."""
        for real, given in self._given.items():
            if real != given and Path(path).is_relative_to(real):
                return str(given / Path(path).relative_to(real))
        return path

    def found(self, path: Path) -> Path:
        """Return a path with the client's name of a folder replaced by the folder's real path; one outside of the
        folders as it is.
        """
        for real, given in self._given.items():
            if real != given and path.is_relative_to(given):
                return real / path.relative_to(given)
        return path


class FileRequestFailed(Exception):
    """Raised if the client does not read or write a file; the message is what it says."""


class FileRequests(Protocol):
    """Port: reads and writes files through the client; `reads` and `writes` say which of these it offers."""

    reads: bool
    writes: bool

    async def read(self, path: str) -> str:
        """Return the text of a file, by its real path, as the user has it, unsaved changes included. FileRequestFailed
        if the client refuses.
        """

    async def write(self, path: str, text: str) -> None:
        """Write a file, by its real path, through the client, whole. FileRequestFailed if the client refuses."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A document that the server has open: its version there, and its text."""

    version: int
    text: str


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A file on the disk, decoded."""

    text: str
    encoding: Encoding


class ClientFiles:
    """The files below the folders of one session (absolute real paths), as the client has them, read and written by
    `requests`. `notify` sends a notification (method, parameters) to the server.
    """

    def __init__(self, folders: Sequence[Path], requests: FileRequests, notify: Notify) -> None:
        self._disks = {folder: Disk(folder) for folder in folders}
        self._requests = requests
        self._notify = notify
        self._told: dict[Path, _Told] = {}
        self._asked_for: dict[Path, None] = {}  # the last one last
        # One at a time: what is read must not be older than what was written meanwhile.
        self._lock = asyncio.Lock()

    @property
    def transactional(self) -> bool:
        """Whether several files are written all or none: only if they go to the disk, not through the client."""
        return not self._requests.writes

    async def sync(self, paths: Iterable[Path] = (), *, again: bool = False) -> None:
        """Ask the client for the texts of these files and of all that the server has open, and send the server those
        that differ from the disk. `again` also asks for the last 100 that were asked for. A file that the client does
        not give is taken from the disk.
        """
        if not self._requests.reads:
            return
        async with self._lock:
            paths = tuple(paths)
            for path in paths:
                self._asked_for.pop(path, None)
                self._asked_for[path] = None
            self._asked_for = dict.fromkeys([*self._asked_for][-MOST_ASKED_AGAIN:])
            wanted = (*paths, *self._told, *(self._asked_for if again else ()))
            await asyncio.gather(*map(self._look, dict.fromkeys(wanted)))

    async def apply(self, edit: Mapping[str, Any]) -> dict[str, Any]:
        """Write a WorkspaceEdit (LSP) to the files and return the answer to `workspace/applyEdit`: `applied`, and if
        that is False the reason as `failureReason`; nothing is raised.
        """
        async with self._lock:
            try:
                await self._check(edit)
                for group in self._groups(plan(edit, self._bytes)):
                    await self._write(group)
            except (EditImpossible, FileRefused, FileRequestFailed, OSError) as error:
                return {"applied": False, "failureReason": reason(error)}
        return {"applied": True}

    # Reading.

    async def _look(self, path: Path) -> None:
        """Compare a file with what the server knows of it, and tell what differs."""
        if self._disk_of(path) is None or path in self._disks:
            return
        try:
            saved = self._saved(path)
            now = await self._now(path)
        except (FileRefused, OSError, TimeoutError):  # no text, too large, or no answer: nothing is known anew
            return
        if now is None or (saved is None and not now) or (saved is not None and _same(now, saved.text)):
            self._close(path)
        else:
            self._tell(path, _in_form_of(saved, now))

    async def _now(self, path: Path) -> str | None:
        """Return the client's text; None if it has none. TimeoutError."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._requests.read(str(path))
        except FileRequestFailed:
            return None

    def _saved(self, path: Path) -> _OnDisk | None:
        """Return a file as it is on the disk; None if there is none. OSError for a folder, FileRefused."""
        disk = self._disk_of(path)
        data = None if disk is None else disk.read(path)
        if data is None:
            return None
        if len(data) > MOST_BYTES:
            raise FileRefused(f"{path} is too large")
        decoded = decode(data)
        return _OnDisk(decoded.text, decoded.encoding)

    def _disk_of(self, path: Path) -> Disk | None:
        return next((disk for folder, disk in self._disks.items() if path.is_relative_to(folder)), None)

    # What the server is told.

    def _tell(self, path: Path, text: str) -> None:
        known, uri = self._told.get(path), uris.from_path(path)
        if known is None:
            self._told[path] = _Told(1, text)
            document = {"uri": uri, "languageId": path.suffix.removeprefix("."), "version": 1, "text": text}
            self._notify("textDocument/didOpen", {"textDocument": document})
        elif known.text != text:
            self._told[path] = _Told(known.version + 1, text)
            document = {"uri": uri, "version": known.version + 1}
            self._notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def _close(self, path: Path) -> None:
        if self._told.pop(path, None) is not None:
            self._notify("textDocument/didClose", {"textDocument": {"uri": uris.from_path(path)}})

    # Writing.

    async def _check(self, edit: Mapping[str, Any]) -> None:
        """Raise EditImpossible if a text that is to be edited is another one than the server knows, and tell it that
        one.
        """
        for item in edit.get("documentChanges") or ():
            if "textDocument" not in item or not self._requests.reads:
                continue
            path = path_of(item["textDocument"]["uri"])
            await self._look(path)
            known = self._told.get(path)
            if item["textDocument"].get("version") != (known and known.version):
                raise EditImpossible(f"the text of {path} has changed: it has another version")

    def _bytes(self, path: Path) -> bytes | None:
        """Return what is edited: the unsaved text as it would be saved, else the file."""
        disk, known = self._disk_of(path), self._told.get(path)
        if disk is None:
            raise EditImpossible(f"{path} is in no folder of this session")
        if known is None:
            return disk.read(path)
        saved = self._saved(path)
        return encode(known.text, saved.encoding if saved else "utf-8")

    def _groups(self, writes: Sequence[FileWrite]) -> list[list[FileWrite]]:
        """Return the writes that are carried out together: alone by the client, all that one folder has by the disk."""
        if not self.transactional:
            return [[write] for write in writes]
        found: dict[int, list[FileWrite]] = {}
        for write in writes:
            found.setdefault(id(self._disk_of(write.path)), []).append(write)
        return list(found.values())

    async def _write(self, writes: Sequence[FileWrite]) -> None:
        first = writes[0]
        if self._requests.writes and (text := self._for_client(first)) is not None:
            await self._write_by_client(first, text)
        else:
            for write in writes:
                if write.path in self._told and write.after is not None:
                    raise EditImpossible(f"{write.path} has unsaved text, and the editor takes none from here")
            disk = self._disk_of(first.path)
            assert disk is not None
            commit(writes, disk)
            for write in writes:
                self._close(write.path)
        changed = [{"uri": uris.from_path(each.path), "type": _kind(each)} for each in writes]
        self._notify("workspace/didChangeWatchedFiles", {"changes": changed})

    def _for_client(self, write: FileWrite) -> str | None:
        """Return the text that the client is to write; None for what only the disk can do: to delete, to keep the mode
        of a file that moves, to make a script, and encodings that the client may not know.
        """
        if write.after is None or write.like is not None or (write.before is None and write.after.startswith(b"#!")):
            return None
        with suppress(FileRefused):
            decoded = decode(write.after)
            saved = self._saved(write.path)
            if decoded.encoding == "utf-8" and (saved is None or saved.encoding == "utf-8"):
                return decoded.text
        return None

    async def _write_by_client(self, write: FileWrite, text: str) -> None:
        """Write a file by the client, and tell the server the text that it then has."""
        disk = self._disk_of(write.path)
        assert disk is not None
        mode = disk.mode(disk.real(write.path))
        try:
            now = await self._now(write.path) if self._requests.reads else None
            before = None if write.before is None else decode(write.before).text
            # Writing replaces all that is there, so the last look is right before it.
            if now and (before is None or not _same(now, before)):
                raise EditImpossible(f"the text of {write.path} has changed: it has another version")
            # The client keeps the line ends that it hides.
            shown = text.replace("\r\n", "\n") if now is not None and "\r" not in now else text
            async with asyncio.timeout(WRITE_SECONDS):
                await self._requests.write(str(write.path), shown)
        except TimeoutError:
            raise FileRequestFailed(f"the editor has not answered whether it wrote {write.path}") from None
        if mode is not None and disk.mode(disk.real(write.path)) not in (mode, None):
            disk.real(write.path).chmod(mode)
        if write.path in self._told:
            now = await self._now(write.path) if self._requests.reads else text
            if now is not None:
                # It stays open until the next look: the server waits for the change in the document that it changed.
                self._tell(write.path, _in_form_of(_OnDisk(text, "utf-8"), now))
        elif self._requests.reads:
            await self._look(write.path)


def _same(one: str, other: str) -> bool:
    """Return whether two texts are equal but for what clients may hide: a byte order mark, the kind of the line ends,
    the last line end.
    """
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return with_newlines(text.removeprefix(_MARK), "\n").removesuffix("\n")


def _in_form_of(saved: _OnDisk | None, text: str) -> str:
    """Return the client's text with the line ends of the file, where the client hides these."""
    text = text.removeprefix(_MARK)
    if saved is None:
        return text
    # avante.nvim leaves the last one out. Where the user has removed it, it comes back with the agent's next change.
    if text and saved.text.endswith("\n") and not text.endswith("\n"):
        text += "\r\n" if "\r\n" in text else "\n"
    crlf = 0 < saved.text.count("\r\n") == saved.text.count("\n")
    return with_newlines(text, "\r\n") if crlf and "\r" not in text else text


def _kind(write: FileWrite) -> int:
    if write.before is None:
        return CREATED
    return DELETED if write.after is None else CHANGED
