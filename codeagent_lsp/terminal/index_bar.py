"""A build of the index under a progress bar, on stderr: stdout is for answers. Not here: when to build."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.service import IndexService, Status
from codeagent_lsp.terminal.index_place import Place
from codeagent_lsp.texts import text


def build(place: Place, changed: int, out: Console | None = None) -> None:
    """Bring the index up to the disk with worker processes; about `changed` files are to be looked into.

    OSError when it cannot be written. KeyboardInterrupt ends the processes and leaves what is done.
    """
    console = out or Console(stderr=True, highlight=False, markup=False, emoji=False)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(text("index.building", place.language), total=changed)

        def tell(status: Status) -> None:
            if status.state == "building":
                bar.update(task, completed=status.done, total=status.total)

        status = asyncio.run(_built(place, tell))
    if status.state == "failed":
        raise OSError(status.problem)


async def _built(place: Place, tell: Callable[[Status], None]) -> Status:
    # The index is asked for by name here, so the setting that switches it off does not count.
    service = IndexService([place.folder], place.store.path, IndexSettings(enabled=True), tell=tell)
    try:
        return await service.refresh()
    finally:
        await service.close()
