"""The index of a folder on the command line: where it is, and brought up to the disk before it is asked.

The same file as the server's; both may work on it at once. Where little has changed, nothing heavy is loaded.
Not here: what is asked (`index.py`, `index_answers.py`), the bar (`index_bar.py`).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.opening import open_index
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.store import Store
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.locales import user_locale
from codeagent_lsp.texts import choose_language, text

STORE = "index.sqlite"
DONE, FAILED, USAGE = 0, 1, 2  # exit codes


class IndexLocation(NamedTuple):
    """A folder, absolute and without links, its store and the user's language."""

    folder: str
    folders: Folders
    store: Store
    language: str


class Pass(NamedTuple):
    """What bringing an index up to the disk did: `files` in all, those looked into, those forgotten."""

    files: int
    changed: int
    removed: int


def with_index(workspace: str, action: Callable[[IndexLocation], int]) -> int:
    """The exit code of `action` on the index of a folder; 2 for a bad argument, 1 where no index can be kept."""
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
    except BrokenPipeError:  # whoever read our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (sqlite3.Error, OSError) as error:
        sys.stderr.write(f"codeagent-lsp: {text('index.failed', language, reason=error)}\n")
    return FAILED


def brought_up(place: IndexLocation) -> Pass:
    """Look at the whole folder and bring the index up to it, with a bar on stderr where that takes a while.

    OSError and sqlite3.Error where that is impossible. Interrupted: what is written stays, and is right.
    """
    found = scan(place.folders, place.store.known(), threading.Event())
    if not found.is_small:
        from codeagent_lsp.terminal.index_bar import Index, build  # late: not needed where nearly nothing has changed

        build(Index(place.folder, place.store.path, place.language), found)
    elif found.changed or found.removed:
        from codeagent_lsp.index.worker import do  # late: it loads the parser

        place.store.write((), found.removed)
        do(place.store, found.changed)
    return Pass(found.files, len(found.changed), len(found.removed))


def say(words: str) -> None:
    """Lines on stdout, now: what does not fit its encoding becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(words.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def _opened(workspace: str, language: str) -> IndexLocation:
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise UsageError("terminal.folder", folder=workspace)
    folder = folder.resolve()
    if folder in (Path.home(), *Path.home().parents):
        raise UsageError("index.too_wide", folder=workspace)
    store = open_index(workspace_state([str(folder)]) / STORE)
    return IndexLocation(str(folder), Folders([str(folder)]), store, language)
