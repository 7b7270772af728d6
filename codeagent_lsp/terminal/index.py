"""The command `codeagent-lsp index`: builds or updates the code index of a folder, and shows what is in it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

from codeagent_lsp.index.places import FILE, stored_chunks
from codeagent_lsp.terminal.index_place import DONE, IndexLocation, brought_up, say, with_index
from codeagent_lsp.terminal.safe import visible
from codeagent_lsp.texts import text

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
    model, count = stored_chunks(place.store.path.with_name(FILE)) or ("", 0)
    return f"{count:,}: {model}" if count else "0"


def _size(place: IndexLocation) -> int:
    """Return the size in bytes of the database file and its journal files."""
    parts = place.store.path.parent.glob(f"{place.store.path.name}*")
    return sum(part.stat().st_size for part in parts)
