"""The transfer of files between the workspace and a container: private copies here, kept in step on both sides.

A copy has the disk with unsaved and staged text over it; ignored folders and version control data are not in it. Not
here: how a copy is kept in step with the disk (`shadow/mirror.py`), the archives (`container_files.py`).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO

from codeagent_lsp.environments.container_box import REPORTS, Box, BoxLimits
from codeagent_lsp.environments.container_files import Seen, difference, pack, seen_in, unpack
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.mirror import Mirror
from codeagent_lsp.shadow.process import read_reports, settled
from codeagent_lsp.shadow.shell import Writings
from codeagent_lsp.shadow.written_files import WrittenFiles, WrittenLimits
from codeagent_lsp.workspace.files.ignore import IgnoreRules

__all__ = ["REPORTS", "Cargo"]

SECONDS = 300.0
_OVERHEAD = 2  # an archive of many small files is larger than they are


class Cargo:
    """The copies of the workspace `folders`, in `folder`, which it removes. `prepare`, `writings` and `close` block."""

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
        """Return the folder that is locked while this server lives, as the owner label."""
        return self._folder.path

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copies to the disk and, over it, `wanted` by absolute path."""
        for mirror in self._mirrors:
            mirror.prepare(wanted)

    def writings(self) -> Writings:
        """Return the differences from the prepared state."""
        found = WrittenFiles(WrittenLimits())
        for mirror in self._mirrors:
            mirror.collect(found)
        return Writings(tuple(found.files.values()), found.more)

    def unloaded(self) -> None:
        """Record that the container is a new one, without files."""
        self._there.clear()

    async def carry_in(self, box: Box) -> None:
        """Transfer changed files from the copies to the container."""
        async with self._archive() as archive:
            for mirror in self._mirrors:
                now = await asyncio.to_thread(seen_in, mirror.place)
                what = difference(self._there.get(mirror.root, {}), now)
                if what.send or what.gone:
                    archive.seek(0)
                    # A thread cannot be stopped, and the file must not be closed while it writes.
                    await settled(asyncio.to_thread(pack, mirror.place, what.send, archive, self._limits.disk))
                    await box.send(archive, mirror.root, what.gone)
                # Only once it has arrived: after a failure it is sent again.
                self._there[mirror.root] = now

    async def carry_out(self, box: Box) -> Mapping[str, bytes]:
        """Transfer the container's files to the copies and return the reports of the last command."""
        reports = await asyncio.to_thread(self._folder.make, "reports")
        places = {mirror.root: mirror.place for mirror in self._mirrors} | {REPORTS: reports}
        limit = _OVERHEAD * (self._limits.disk * len(self._mirrors) + self._limits.reports)
        async with self._archive() as archive:
            await box.fetch(tuple(places), archive, limit)
            archive.seek(0)
            await settled(asyncio.to_thread(unpack, archive, places))
        for mirror in self._mirrors:
            self._there[mirror.root] = await asyncio.to_thread(seen_in, mirror.place)
        return await asyncio.to_thread(read_reports, f"{reports}/now")

    def close(self) -> None:
        """Remove the copies."""
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
