"""Full-text search over the indexed files: BM25 in SQLite FTS5 over the words of path, definitions and text.

Returns files with scores. Not here: the words of a query (`words.py`), other signals for a file (`rank.py`),
and the part of a file that answers (`relevance.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from codeagent_lsp.index.kinds import is_source
from codeagent_lsp.index.symbols import FileTags, SymbolInfo
from codeagent_lsp.index.words import QueryTerms, as_word, counted, terms_of, words_of

MAX_CHARS = 400_000
MAX_OTHER_CHARS = 40_000  # of data and prose, which can be long and uninformative
MAX_WORDS = 32
CANDIDATES = 300

_MOST_PER_WORD = 8  # further occurrences of a word in a file are ignored
_TOO_COMMON = 0.5  # FTS5 gives no weight to a word that over half of the files have
_ROWS_AT_MOST = 60_000  # rows that one query may score, beyond its three rarest words
_COLUMNS = "path, names, text"
# The words come split and folded; FTS5 has only to part them at the blanks.
_TOKENS = "unicode61 remove_diacritics 0 tokenchars '_'"
_WEIGHTS = (2.0, 2.0, 1.0)


class Tables(Protocol):
    """The part of the store that a search needs."""

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class Lexical:
    """The full-text tables, updated by the store in its own transactions (a `Companion`)."""

    version = "lexical 2"

    def create(self, db: sqlite3.Connection) -> None:
        """Create the full-text table, with a file's row id, and the vocabulary view with document frequencies."""
        db.execute(f'CREATE VIRTUAL TABLE lexical USING fts5({_COLUMNS}, tokenize = "{_TOKENS}")')
        db.execute("CREATE VIRTUAL TABLE lexical_words USING fts5vocab(lexical, row)")

    def prepare(self, path: str, tags: FileTags, text: str) -> object:
        """Return the words of a file in the form that `put` takes. Of very long texts only the beginning is read."""
        return document(path, tags.symbols, text)

    def put(self, db: sqlite3.Connection, ident: int, prepared: object) -> None:
        """Replace the words of the file with row id `ident`."""
        assert isinstance(prepared, (tuple, list)), prepared
        row = (ident, *prepared)
        db.execute(f"REPLACE INTO lexical (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?)", row)  # noqa: S608

    def drop(self, db: sqlite3.Connection, ident: int) -> None:
        """Delete the words of the file with row id `ident`."""
        db.execute("DELETE FROM lexical WHERE rowid = ?", (ident,))


def document(path: str, outline: Iterable[SymbolInfo], text: str) -> tuple[str, str, str]:
    """Return the words of a file as they are indexed: of its path, of the names it defines, of its text."""
    names = (symbol.name for symbol in outline)
    read = text[: MAX_CHARS if is_source(path) else MAX_OTHER_CHARS]
    return " ".join(words_of(path)), " ".join(terms_of(" ".join(names))), _repeated(counted(read))


def matching(tables: Tables, question: QueryTerms, limit: int = CANDIDATES) -> list[tuple[str, float]]:
    """Return the files that match best by BM25, best first, with positive scores comparable only to each other."""
    words = _telling(tables, question)
    if not words:
        return []
    match = " OR ".join(f'"{word}"' for word in words)
    weights = ", ".join(str(weight) for weight in _WEIGHTS)
    rows = tables.query(
        f"SELECT files.path, -bm25(lexical, {weights}) AS score FROM lexical JOIN files ON files.id = lexical.rowid"  # noqa: S608
        " WHERE lexical MATCH ? ORDER BY score DESC, files.path LIMIT ?",
        (match, limit),
    )
    return [(path, score) for path, score in rows]


def rarity(tables: Tables, words: Sequence[str]) -> Mapping[str, int]:
    """Return the document frequency of each word; words that no file has are left out."""
    slots = ",".join("?" * len(words))
    rows = tables.query(f"SELECT term, doc FROM lexical_words WHERE term IN ({slots})", tuple(words))  # noqa: S608
    return {word: count for word, count in rows}  # noqa: C416 - rows are tuples of unknown types


def asked(question: QueryTerms) -> list[str]:
    """Return the words to search for: those of the query, its identifiers as whole words, and its joined words."""
    wholes = (as_word(name) for name in question.names)
    words = (word for word, _ in question.words)
    return list(dict.fromkeys((*words, *(whole for whole in wholes if whole), *question.joined)))


def folder_and_stem(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a path's folders and of its file name without the extension."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return _folder_words(folder), frozenset(words_of(stem))


@lru_cache(maxsize=1 << 12)
def _folder_words(folder: str) -> frozenset[str]:
    return frozenset(words_of(folder))


def _telling(tables: Tables, question: QueryTerms) -> list[str]:
    """Return the rarest words, as many as can be searched quickly; none that most files have."""
    # SQLite limits the variables of a statement.
    counts = rarity(tables, asked(question)[:500])
    files = sum(count for (count,) in tables.query("SELECT count(*) FROM files"))
    known = sorted((count, word) for word, count in counts.items() if count <= max(2, files * _TOO_COMMON))
    words: list[str] = []
    rows = 0
    for count, word in known[:MAX_WORDS]:
        rows += count
        if len(words) >= 3 and rows > _ROWS_AT_MOST:
            break
        words.append(word)
    return words


def _repeated(counts: Mapping[str, int]) -> str:
    return "".join(
        [f"{word} " * (often if often < _MOST_PER_WORD else _MOST_PER_WORD) for word, often in counts.items()]
    )


def files_with(tables: Tables, names: Sequence[str], limit: int) -> list[str]:
    """Return files that have all of these names, and perhaps some that have only their parts; sorted by path."""
    words = [word for name in names for word in ([as_word(name)] if as_word(name) else words_of(name))]
    if not words:
        return []
    match = " AND ".join(f'text:"{word}"' for word in dict.fromkeys(words))
    rows = tables.query(
        "SELECT files.path FROM lexical JOIN files ON files.id = lexical.rowid"
        " WHERE lexical MATCH ? ORDER BY files.path LIMIT ?",
        (match, limit),
    )
    return [path for (path,) in rows]
