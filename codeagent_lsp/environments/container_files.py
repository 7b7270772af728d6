"""The transfer of files between the workspace and a container: private copies here, kept in step on both sides.

A copy has the disk with unsaved and staged text over it; ignored folders and version control data are not in it. Files
travel as tar archives, and those from the container are untrusted: links are created but never followed, special files
are not created, no name leaves the folder, and sizes are bounded. Archives block; they are made in threads. Not here:
how a copy is kept in step with the disk (`shadow/mirror.py`), the streams that archives travel on (`container_box.py`).
"""

# ruff: noqa: PTH115, PTH118 - plain strings are several times faster in a walk

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from codeagent_lsp.environments.container_box import REPORTS, Box, BoxLimits
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.folder import LayerFolder, remove_tree
from codeagent_lsp.shadow.mirror import Mirror
from codeagent_lsp.shadow.process import read_reports, run_to_end
from codeagent_lsp.shadow.shell import Writings
from codeagent_lsp.shadow.upper_walk import MAX_DEPTH, is_folder
from codeagent_lsp.system import open_new, open_reading, set_mode
from codeagent_lsp.workspace.files.ignore import IgnoreRules

SECONDS = 300.0
_OVERHEAD = 2  # an archive of many small files is larger than they are

Stamp = tuple[int, ...]
Seen = Mapping[str, Stamp]
"""The contents of a folder by relative path, each with a value that changes with every modification."""

_SMALL = 1 << 20


class ContainerFiles:
    """The private copies of the workspace `folders` in `folder`, which `close` removes, and what of them is in the
    container. `prepare`, `writings` and `close` block.
    """

    def __init__(self, folder: LayerFolder, folders: Sequence[str], limits: BoxLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._there: dict[str, Seen] = {}
        self._mirrors = [
            Mirror(path, folder.make("copies", str(number)), IgnoreRules(path).at_root)
            for number, path in enumerate(folders)
        ]

    @property
    def owner(self) -> str:
        """The absolute path of the folder that is locked while this server lives; used as the owner label."""
        return self._folder.path

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copies to the disk and, over it, `wanted` (bytes by absolute path, None: no such file). OSError if
        a copy cannot be written.
        """
        for mirror in self._mirrors:
            mirror.prepare(wanted)

    def writings(self) -> Writings:
        """Return the files of the copies that differ from the prepared state, by their absolute paths in the workspace;
        call `carry_out` before.
        """
        found = WrittenFiles(WrittenLimits())
        for mirror in self._mirrors:
            mirror.collect(found)
        return Writings(tuple(found.files.values()), found.more)

    def unloaded(self) -> None:
        """Note that the container is a new one, so that `carry_in` sends everything again."""
        self._there.clear()

    async def carry_in(self, box: Box) -> None:
        """Send the files that the container lacks or has differently. EnvironmentProblem if they are too large or it
        takes more than 300 s.
        """
        async with self._archive() as archive:
            for mirror in self._mirrors:
                now = await asyncio.to_thread(seen_in, mirror.place)
                what = difference(self._there.get(mirror.root, {}), now)
                if what.send or what.gone:
                    archive.seek(0)
                    # A thread cannot be stopped, and the file must not be closed while it writes.
                    await run_to_end(asyncio.to_thread(pack, mirror.place, what.send, archive, self._limits.disk))
                    await box.send(archive, mirror.root, what.gone)
                # Only once it has arrived: after a failure it is sent again.
                self._there[mirror.root] = now

    async def carry_out(self, box: Box) -> Mapping[str, bytes]:
        """Kill what runs in the container, bring its files into the copies and return the reports of the last command,
        by name: at most 64 files and 16 MiB, others are left out. EnvironmentProblem if the files are too large, it
        takes more than 300 s, or the engine or the transfer fails.
        """
        reports = await asyncio.to_thread(self._folder.make, "reports")
        places = {mirror.root: mirror.place for mirror in self._mirrors} | {REPORTS: reports}
        limit = _OVERHEAD * (self._limits.disk * len(self._mirrors) + self._limits.reports)
        async with self._archive() as archive:
            await box.fetch(tuple(places), archive, limit)
            archive.seek(0)
            await run_to_end(asyncio.to_thread(unpack, archive, places))
        for mirror in self._mirrors:
            self._there[mirror.root] = await asyncio.to_thread(seen_in, mirror.place)
        return await asyncio.to_thread(read_reports, f"{reports}/now")

    def close(self) -> None:
        """Remove the copies; blocks, for large ones up to minutes."""
        self._folder.close()

    @asynccontextmanager
    async def _archive(self) -> AsyncGenerator[IO[bytes], None]:
        """Yield a file for an archive, with a time limit on the transfer."""
        with tempfile.TemporaryFile(dir=self._folder.path) as archive:
            try:
                async with asyncio.timeout(SECONDS):
                    yield archive
            except TimeoutError:
                message = f"The files were not carried between workspace and container within {SECONDS:g} s."
                raise EnvironmentProblem(message, ErrorCode.TIMEOUT_ERROR) from None


@dataclass(frozen=True, slots=True)
class Difference:
    """The relative paths to send, and those to remove before, each sorted."""

    send: tuple[str, ...]
    gone: tuple[str, ...]


def seen_in(place: str) -> Seen:
    """Return a stamp of each entry below a folder by relative path, which changes when the entry does; {} for an
    unreadable folder. Links are not followed; blocks.
    """
    found: dict[str, Stamp] = {}
    for name, info in _walk(place):
        folder = stat.S_ISDIR(info.st_mode)
        found[name] = (
            (info.st_mode,) if folder else (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        )
    return found


def difference(before: Seen, now: Seen) -> Difference:
    """Return what to transfer to turn a copy in the state `before` into the state `now`, both as `seen_in` returns
    them.
    """
    changed = [name for name, stamp in now.items() if before.get(name) != stamp]
    # What was a folder and is a file now, or the reverse, cannot be unpacked over the old one.
    retyped = [name for name in changed if name in before and _type(before[name]) != _type(now[name])]
    gone = [name for name in before if name not in now]
    return Difference(tuple(sorted(changed)), tuple(sorted({*gone, *retyped})))


def pack(place: str, names: Iterable[str], target: IO[bytes], limit: int) -> None:
    """Write a tar archive of these relative paths below `place` to `target`, and rewind it; blocks. EnvironmentProblem
    if they have more than `limit` bytes.
    """
    target.truncate()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT, errorlevel=2) as archive:
        for name in names:
            limit -= _add(archive, f"{place}/{name}", name, limit)
    target.seek(0)


def unpack(source: IO[bytes], places: Mapping[str, str]) -> None:
    """Make folders contain exactly what a tar archive has of them; unchanged files are not touched, others removed.
    `places` maps folders in the archive to folders here. EnvironmentProblem for a malformed archive; blocks.
    """
    kept: dict[str, set[str]] = {place: set() for place in places.values()}
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                place, name = _locate(member.name, places)
                if name and (member.isreg() or member.isdir() or member.issym() or member.islnk()):
                    _make_room(place, name)
                    _put(archive, member, place, name, places)
                    kept[place].add(name)
    except (tarfile.TarError, EOFError, ValueError) as error:
        message = "What the command left behind cannot be read."
        raise EnvironmentProblem(message, ErrorCode.VALIDATION_ERROR) from error
    for place, names in kept.items():
        # Contents before their folder.
        for name in sorted(seen_in(place), reverse=True):
            if name not in names:
                _remove(f"{place}/{name}")


def too_large() -> EnvironmentProblem:
    """Return, without raising it, the error, for the model, about a workspace larger than a container holds."""
    message = "The workspace is larger than what a container holds. Have more of it ignored, such as data and output."
    return EnvironmentProblem(message, ErrorCode.PARAMETER_ERROR)


def _walk(place: str) -> Iterator[tuple[str, os.stat_result]]:
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(place, folder)))
        except OSError:  # gone, or a command took the rights
            continue
        for entry in entries:
            name = os.path.join(folder, entry.name)
            info = entry.stat(follow_symlinks=False)
            yield name, info
            if stat.S_ISDIR(info.st_mode) and name.count("/") < MAX_DEPTH:
                pending.append(name)


def _add(archive: tarfile.TarFile, path: str, name: str, most: int) -> int:
    """Add one path and return its size. Missing and special files are skipped; EnvironmentProblem above `most`
    bytes.
    """
    try:
        member = archive.gettarinfo(path, name)
    except OSError:
        return 0
    member.uname = member.gname = ""
    if member.islnk():  # one of two names of a file here; it becomes a file of its own
        member.type, member.size = tarfile.REGTYPE, os.lstat(path).st_size
    if member.size > most:
        raise too_large()
    if member.isdir() or member.issym():
        archive.addfile(member)
    elif member.isreg():
        with os.fdopen(open_reading(path), "rb") as file:
            archive.addfile(member, file)
    return member.size


def _locate(name: str, places: Mapping[str, str]) -> tuple[str, str]:
    """Return the folder here and the path below it; ('', '') for the folder itself and names that lead elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name or len(parts) > MAX_DEPTH:
        return "", ""
    path = "/" + "/".join(parts)
    for there, here in places.items():
        if path.startswith(f"{there}/"):
            return here, path[len(there) + 1 :]
    return "", ""


def _make_room(place: str, name: str) -> None:
    """Create the real folders above a path."""
    above = place
    for part in name.split("/")[:-1]:
        above = f"{above}/{part}"
        if not is_folder(above):
            _remove(above)
            Path(above).mkdir()


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, place: str, name: str, places: Mapping[str, str]) -> None:
    path = f"{place}/{name}"
    if member.isdir():
        if not is_folder(path):
            _remove(path)
            Path(path).mkdir()
        Path(path).chmod(member.mode & 0o777 | 0o700)
    elif member.issym():
        if not Path(path).is_symlink() or os.readlink(path) != member.linkname:
            _remove(path)
            Path(path).symlink_to(member.linkname)
    elif member.islnk():
        other, target = _locate(member.linkname, places)
        _write(path, _content(f"{other}/{target}") if target else b"", member.mode & 0o777)
    else:
        content = archive.extractfile(member)
        assert content is not None  # it is a regular file
        # Small files are compared first, so that unchanged ones keep their time.
        if member.size > _SMALL:
            _write_large(path, content, member.mode & 0o777)
        else:
            _write(path, content.read(), member.mode & 0o777)


def _write(path: str, data: bytes, mode: int) -> None:
    """Write a file, unless it is unchanged."""
    if _regular(path) and stat.S_IMODE(os.lstat(path).st_mode) == mode | 0o600 and _content(path) == data:
        return
    _remove(path)
    with os.fdopen(open_new(path), "wb") as file:
        file.write(data)
        set_mode(file.fileno(), mode | 0o600)


def _write_large(path: str, content: IO[bytes], mode: int) -> None:
    _remove(path)
    with os.fdopen(open_new(path), "wb") as file:
        shutil.copyfileobj(content, file, _SMALL)
        set_mode(file.fileno(), mode | 0o600)


def _content(path: str) -> bytes:
    """Return the bytes of a small regular file; b'' for anything else."""
    try:
        descriptor = open_reading(path)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _remove(path: str) -> None:
    if is_folder(path):
        remove_tree(path)
    else:
        Path(path).unlink(missing_ok=True)


def _type(stamp: Stamp) -> int:
    return stat.S_IFMT(stamp[0])
