"""The command `codeagent-lsp index`: builds or updates the code index of a folder, and shows what is in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.vectors import PLACES_FILE, stored_chunks
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.policy_file import read_policy
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.terminal.display import one_line, visible
from codeagent_lsp.terminal.index_place import DONE, FAILED, IndexLocation, brought_up, say, with_index
from codeagent_lsp.texts import text
from codeagent_lsp.user_settings import read_user_settings
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

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
    """Build or update the index and return the exit code: 0 done, 1 failed, 2 usage. With `as_json` only the index is
    printed, as data.
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
    """Return the definitions and the imports of each file, by its path, as JSON-like data."""
    from codeagent_lsp.tools.code.reading_tools import described  # late: building an index does without it

    known = list(place.store.all_tags())
    return {
        "symbols_by_file": {path: [described(symbol) for symbol in tags.symbols] for path, tags in known},
        "imports": {path: [asdict(each) for each in tags.imports] for path, tags in known if tags.imports},
    }


def statistics(place: IndexLocation) -> str:
    """Return the statistics of the index, one per line."""
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
    """Print the map for a task, or the overview, and return the exit code; 1 if there is nothing to show."""

    def action(place: IndexLocation) -> int:
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        may_read = _as_the_model(files.roots)
        made = (
            answers.task_map(files, Task(query), tokens, may_read)
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
    """Print the best matching pieces of code with path, lines and score, and return the exit code;
    1 if there are none.
    """

    def action(place: IndexLocation) -> int:
        if not query.strip():
            raise UsageError("index.no_query")
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        found = answers.search(files, query, limit, lambda path: True)
        if as_json:
            say(_json([_fields(chunk) for chunk in found]))
        elif found:
            say("\n".join(_line(chunk) for chunk in found))
        else:
            say(text("index.nothing_found", place.language))
        return DONE if found else FAILED

    return with_index(workspace, action)


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
