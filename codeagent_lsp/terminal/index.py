"""The commands `codeagent-lsp index`, `map` and `search`: build or update the code index of a folder, with a progress
bar on stderr, and show what is in it.

It is the server's file; both may use it at once. The server and the processes that build an index are imported late:
where little has changed none is needed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.scan import Folders, Scan, scan
from codeagent_lsp.index.store import Store, open_index
from codeagent_lsp.index.vectors import PLACES_FILE, stored_chunks
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.state import index_file
from codeagent_lsp.terminal.display import one_line, say, user_locale, visible
from codeagent_lsp.texts import choose_language, text
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

if TYPE_CHECKING:
    from rich.console import Console

    from codeagent_lsp.index.service import Status

DONE, FAILED, USAGE = 0, 1, 2  # exit codes

# `outline` is JSON that begins with `["python"`: the name is cut out, as parsing each row would take longer.
_LANGUAGES = """
SELECT substr(outline, 3, instr(substr(outline, 3), '"') - 1) AS language, count(*) AS files
FROM indexed GROUP BY language ORDER BY files DESC, language
"""
_COUNTS = """
SELECT count(*), coalesce(sum(json_array_length(outline, '$[2]')), 0),
       coalesce(sum((SELECT count(*) FROM json_each(used))), 0) FROM indexed
"""
_NOTES = "SELECT note, count(*) FROM indexed WHERE note != '' GROUP BY note ORDER BY note"


def index_command(workspace: str, *, stats: bool, as_json: bool = False) -> int:
    """Build or update the index of a folder, print its figures and return the exit code: 0 done, 1 failed, 2 usage.
    `stats` adds statistics; with `as_json` only the index is printed, as `symbols` returns it.
    """

    def action(place: IndexLocation) -> int:
        begun = time.perf_counter()
        done = brought_up(place)
        if as_json:
            say(json.dumps(symbols(place), ensure_ascii=False))
            return DONE
        seconds = f"{time.perf_counter() - begun:.1f}"
        values = {"files": f"{done.files:,}", "changed": f"{done.changed:,}", "removed": f"{done.removed:,}"}
        say(text("index.done", place.language, **values, seconds=seconds))
        if stats:
            say(visible(statistics(place)))
        return DONE

    return with_index(workspace, action)


def symbols(place: IndexLocation) -> dict[str, Any]:
    """Return the definitions (`symbols_by_file`) and the imports (`imports`, with `module`, `names` and `line`) of each
    file by its index path, as data for JSON; files without imports are not in `imports`.
    """
    from codeagent_lsp.tools.code.reading_tools import described  # late: building an index does without it

    known = list(place.store.all_tags())
    return {
        "symbols_by_file": {path: [described(symbol) for symbol in tags.symbols] for path, tags in known},
        "imports": {path: [asdict(each) for each in tags.imports] for path, tags in known if tags.imports},
    }


def statistics(place: IndexLocation) -> str:
    """Return the statistics of the index in the user's language, one per line, indented by two blanks."""
    languages = place.store.query(_LANGUAGES)
    (files, definitions, references), *_ = place.store.query(_COUNTS)
    notes = ", ".join(f"{note} {count:,}" for note, count in place.store.query(_NOTES))
    lines = [
        ("files", f"{files:,}: " + ", ".join(f"{language or '–'} {count:,}" for language, count in languages)),
        ("definitions", f"{definitions:,}"),
        ("references", f"{references:,}"),
        ("left_out", notes or "0"),
        ("vectors", _vectors(place)),
        ("size", f"{_size(place) / 1e6:.1f} MB"),
        ("place", str(place.store.path)),
    ]
    return "\n".join(f"  {text(f'index.stats.{name}', place.language)}: {value}" for name, value in lines)


def _vectors(place: IndexLocation) -> str:
    """Return the number of pieces of code and prose that have a vector, and the model that made them."""
    model, count = stored_chunks(place.store.path.with_name(PLACES_FILE)) or ("", 0)
    return f"{count:,}: {model}" if count else "0"


def _size(place: IndexLocation) -> int:
    """Return the size in bytes of the database file and its journal files."""
    parts = place.store.path.parent.glob(f"{place.store.path.name}*")
    return sum(part.stat().st_size for part in parts)


# The commands `codeagent-lsp map` and `codeagent-lsp search`: the index's answers, as the model gets them.


def map_command(workspace: str, query: str, tokens: int, *, as_json: bool) -> int:
    """Update the index, print the map for a task, or the overview if `query` is blank, in at most `tokens` tokens, and
    return the exit code; 1 if there is nothing to show, 2 for a bad folder.
    """

    def action(place: IndexLocation) -> int:
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        may_read = _as_the_model(files.roots)
        made = (
            answers.task_map(files, _task(query, files.roots), tokens, may_read)
            if query.strip()
            else answers.overview(files, tokens, may_read)
        )
        if as_json:
            say(_json({"text": made.text, "tokens": estimate_tokens(made.text), "files": made.shown}))
        else:
            say(visible(made.text).rstrip("\n") if made.text else text("index.no_map", place.language))
        return DONE if made.text else FAILED

    return with_index(workspace, action)


def search_command(workspace: str, query: str, limit: int, *, as_json: bool) -> int:
    """Update the index, print at most `limit` matching pieces of code with path, lines and score, and return the exit
    code; 1 if there are none, 2 for a bad argument.
    """

    def action(place: IndexLocation) -> int:
        if not query.strip():
            raise UsageError("index.no_query")
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        found = answers.search(files, _task(query, files.roots), limit, lambda path: True)
        if as_json:
            say(_json([_fields(chunk) for chunk in found]))
        elif found:
            say("\n".join(_line(chunk) for chunk in found))
        else:
            say(text("index.nothing_found", place.language))
        return DONE if found else FAILED

    return with_index(workspace, action)


def _task(query: str, roots: Roots) -> Task:
    import asyncio  # late, with what follows: where nothing is asked it is not needed

    from codeagent_lsp.session.run_index import past_commits

    return Task(query, past=asyncio.run(past_commits(roots)))


def _on_disk(place: IndexLocation) -> FileView:
    return FileView(Roots([place.folder]), NoBuffers(), NothingStaged())


def _as_the_model(roots: Roots) -> Callable[[str], bool]:
    """Return a predicate of what the model may read without asking; a map shows only the names of other files."""
    from codeagent_lsp.tools.permissions.policy import may_read  # late: a search does without it

    settings, _ = load(environment_layer(), policy=read_policy(), user=read_user_settings())
    return may_read(settings.permissions, roots)


def _line(chunk: Chunk) -> str:
    place = f"{chunk.path}:{chunk.line_start}-{chunk.line_end}"
    return one_line("  ".join(filter(None, (place, f"{chunk.score:.2f}", chunk.symbol))), width=400)


def _fields(chunk: Chunk) -> dict[str, object]:
    return {
        "path": chunk.path,
        "line_start": chunk.line_start,
        "line_end": chunk.line_end,
        "score": chunk.score,
        "symbol": chunk.symbol,
        "text": chunk.text,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# The index of a folder on the command line: its location, and its update before it is used.


class IndexLocation(NamedTuple):
    """A folder (absolute, without links) with its open index store, which `with_index` closes, and the user's
    language.
    """

    folder: str
    folders: Folders
    store: Store
    language: str


class Pass(NamedTuple):
    """The numbers of files in an update: all in the index (`files`), how many were indexed again, how many removed."""

    files: int
    changed: int
    removed: int


def with_index(workspace: str, action: Callable[[IndexLocation], int]) -> int:
    """Open the index of a folder, run `action`, close the index and return the exit code: that of `action`, 2 for a bad
    argument, 1 if there can be no index. Errors are printed on stderr.
    """
    language = choose_language("auto", user_locale())
    try:
        place = _open(workspace, language)
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
        build(place, found)
    elif found.changed or found.removed:
        from codeagent_lsp.index.worker import do  # late: it loads the parser

        place.store.write((), found.removed)
        do(place.store, found.changed)
    return Pass(found.files, len(found.changed), len(found.removed))


def build(place: IndexLocation, found: Scan, out: Console | None = None) -> None:
    """Index the changed files of a scan with worker processes, and block until that is done; `out`, or stderr if it is
    a terminal, shows the progress. OSError if the index cannot be written. KeyboardInterrupt ends the processes and
    keeps what is done.
    """
    import asyncio  # late: not needed where nearly nothing has changed

    if out is None and not sys.stderr.isatty():
        status = asyncio.run(_build(place, found, lambda status: None))
    else:
        status = _under_a_bar(place, found, out)
    if status.state == "failed":
        raise OSError(status.problem)


def _open(workspace: str, language: str) -> IndexLocation:
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise UsageError("terminal.folder", folder=workspace)
    folder = folder.resolve()
    if folder in (Path.home(), *Path.home().parents):
        raise UsageError("index.too_wide", folder=workspace)
    store = open_index(index_file([str(folder)]))
    return IndexLocation(str(folder), Folders([str(folder)]), store, language)


def _under_a_bar(place: IndexLocation, found: Scan, out: Console | None) -> Status:
    import asyncio  # late: as in `build`

    from rich.console import Console  # late: many builds have no terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # late: as above

    console = out or Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(text("index.building", place.language), total=len(found.changed))

        def tell(status: Status) -> None:
            if status.state == "building":
                bar.update(task, completed=status.done, total=status.total)

        return asyncio.run(_build(place, found, tell))


async def _build(place: IndexLocation, found: Scan, tell: Callable[[Status], None]) -> Status:
    from codeagent_lsp.index.service import IndexService  # late: not needed where nearly nothing has changed

    # The index is asked for by name here, so the setting that switches it off does not count.
    service = IndexService([place.folder], place.store.path, IndexSettings(enabled=True), tell=tell)
    try:
        return await service.complete(found)
    finally:
        await service.close()
