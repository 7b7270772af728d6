"""The index of a folder on the command line: its location, and its update before it is used, with a progress bar on
stderr.

It is the server's file; both may use it at once. If little has changed, no heavy module is imported. Not here: what is
asked (`index.py`).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.scan import Folders, Scan, scan
from codeagent_lsp.index.store import Store, open_index
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.display import user_locale
from codeagent_lsp.texts import choose_language, text

if TYPE_CHECKING:
    from rich.console import Console

    from codeagent_lsp.index.service import Status

STORE = "index.sqlite"
DONE, FAILED, USAGE = 0, 1, 2  # exit codes


class IndexLocation(NamedTuple):
    """A folder, absolute and without links, its index store and the user's language."""

    folder: str
    folders: Folders
    store: Store
    language: str


class Pass(NamedTuple):
    """The numbers of files after an update: `files` in all, those indexed again, those removed."""

    files: int
    changed: int
    removed: int


def with_index(workspace: str, action: Callable[[IndexLocation], int]) -> int:
    """Run `action` on the index of a folder and return the exit code; 2 for a bad argument, 1 if
    there can be no index.
    """
    language = choose_language("auto", user_locale())
    try:
        place = _opened(workspace, language)
        try:
            return action(place)
        finally:
            place.store.close()
    except UsageError as error:
        sys.stderr.write(f"codeagent-lsp: {error.localized(language)}\n")
        return USAGE
    except BrokenPipeError:  # the reader of our output is gone
        # Or the flush at the interpreter's exit would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (sqlite3.Error, OSError) as error:
        sys.stderr.write(f"codeagent-lsp: {text('index.failed', language, reason=error)}\n")
    return FAILED


def brought_up(place: IndexLocation) -> Pass:
    """Scan the whole folder and update the index, with a bar on stderr if that takes a while.

    OSError or sqlite3.Error if that is impossible. An interruption keeps what is written, which is valid.
    """
    found = scan(place.folders, place.store.known(), threading.Event())
    if not found.is_small:
        build(Index(place.folder, place.store.path, place.language), found)
    elif found.changed or found.removed:
        from codeagent_lsp.index.worker import do  # late: it loads the parser

        place.store.write((), found.removed)
        do(place.store, found.changed)
    return Pass(found.files, len(found.changed), len(found.removed))


def say(words: str) -> None:
    """Print lines on stdout and flush; characters outside its encoding become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(words.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


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
    import asyncio  # late: not needed where nearly nothing has changed

    if out is None and not sys.stderr.isatty():
        status = asyncio.run(_built(index, found, lambda status: None))
    else:
        status = _under_a_bar(index, found, out)
    if status.state == "failed":
        raise OSError(status.problem)


def _opened(workspace: str, language: str) -> IndexLocation:
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise UsageError("terminal.folder", folder=workspace)
    folder = folder.resolve()
    if folder in (Path.home(), *Path.home().parents):
        raise UsageError("index.too_wide", folder=workspace)
    store = open_index(workspace_state([str(folder)]) / STORE)
    return IndexLocation(str(folder), Folders([str(folder)]), store, language)


def _under_a_bar(index: Index, found: Scan, out: Console | None) -> Status:
    import asyncio  # late: as in `build`

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


async def _built(index: Index, found: Scan, tell: Callable[[Status], None]) -> Status:
    from codeagent_lsp.index.service import IndexService  # late: not needed where nearly nothing has changed

    # The index is asked for by name here, so the setting that switches it off does not count.
    service = IndexService([index.folder], index.store, IndexSettings(enabled=True), tell=tell)
    try:
        return await service.complete(found)
    finally:
        await service.close()
