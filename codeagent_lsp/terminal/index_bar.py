"""Building of the index with a progress bar on stderr, as stdout is for answers. Not here: when to build."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.scan import Scan
from codeagent_lsp.index.service import IndexService, Status
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from rich.console import Console

Tell = Callable[[Status], None]


class Index(NamedTuple):
    """The index of a folder: its path, and the user's language."""

    folder: str
    store: Path
    language: str


def build(index: Index, found: Scan, out: Console | None = None) -> None:
    """Index the changed files of a scan with worker processes; `out`, or stderr if it is a terminal, shows the
    progress.

    OSError if the index cannot be written. KeyboardInterrupt ends the processes and keeps what is done.
    """
    if out is None and not sys.stderr.isatty():
        status = asyncio.run(_built(index, found, lambda status: None))
    else:
        status = _under_a_bar(index, found, out)
    if status.state == "failed":
        raise OSError(status.problem)


def _under_a_bar(index: Index, found: Scan, out: Console | None) -> Status:
    from rich.console import Console  # late: many builds have no terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # late: as above

    console = out or Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(text("index.building", index.language), total=len(found.changed))

        def tell(status: Status) -> None:
            if status.state == "building":
                bar.update(task, completed=status.done, total=status.total)

        return asyncio.run(_built(index, found, tell))


async def _built(index: Index, found: Scan, tell: Tell) -> Status:
    # The index is asked for by name here, so the setting that switches it off does not count.
    service = IndexService([index.folder], index.store, IndexSettings(enabled=True), tell=tell)
    try:
        return await service.complete(found)
    finally:
        await service.close()
