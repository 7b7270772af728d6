"""Workspaces for the tests of the index: files written, an index service over them, what it knows."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.service import IndexService, Status
from tests.children import command_lines

LONG_AGO = 1_000_000_000


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files and let them be old, as most are."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def many(root: Path, count: int) -> None:
    """`count` small Python files, each with a function of its own that calls the one before."""
    write(root, {f"part{n // 100}/m{n}.py": f"def f{n}():\n    return f{n - 1}()\n" for n in range(count)})


@asynccontextmanager
async def service(
    *folders: Path, store: Path, enabled: bool = True, told: list[Status] | None = None
) -> AsyncIterator[IndexService]:
    """A service that is closed at the end."""
    tell = (lambda status: None) if told is None else told.append
    settings = IndexSettings(enabled=enabled)
    made = IndexService([str(folder) for folder in folders], store, settings, processes=2, tell=tell)
    try:
        yield made
    finally:
        await made.close()


def children() -> set[int]:
    """The processes of this one that are alive."""
    return {pid for pid, command in command_lines(parent=os.getpid()).items() if "index.worker" in command}


def settle() -> None:
    """Wait until a stamp given now tells later changes apart."""
    time.sleep(0.12)
