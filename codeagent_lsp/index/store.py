"""The index on disk: one SQLite file, tags stored once per content, read by many while one writes; and full-text search
over its files: BM25 in SQLite FTS5 over the words of path, definitions and text.

Paths are relative to the workspace with `/` between their parts. A damaged or outdated file is replaced by an empty
one; the indexer sees by `files()` what is missing. Any method may be called from any thread. The search keeps its
tables in the same file as a `Companion`, and returns files with scores. Not here: parsing (`parse.py`), finding files
(`service.py`), the words of a query (`words.py`), other signals for a file (`rank.py`), the part that answers
(`relevance.py`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from codeagent_lsp.index.database import Database
from codeagent_lsp.index.grammars import is_source
from codeagent_lsp.index.symbols import (
    FileTags,
    Packed,
    SymbolInfo,
    pack,
    unpack,
    unpack_defined,
    unpack_symbols,
    unpack_used,
)
from codeagent_lsp.index.words import QueryTerms, as_word, count_words, terms_of, words_of

FORMAT = 2  # raise it when the tables, the packing or what parsing finds changes
_SPARE = 10_000  # contents kept although no file has them, for the next switch of branch

_SCHEMA = """
CREATE TABLE generation (value INTEGER NOT NULL);
CREATE TABLE contents (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, outline TEXT NOT NULL,
                       defined TEXT NOT NULL, used TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, content INTEGER NOT NULL,
                    mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, size INTEGER NOT NULL, note TEXT NOT NULL);
CREATE INDEX files_by_content ON files (content);
CREATE VIEW indexed AS SELECT path, digest, outline, defined, used, mtime, ctime, size, note
                       FROM files JOIN contents ON contents.id = content;
"""
_ALL_TAGS = "SELECT path, outline, defined, used FROM indexed WHERE path > ? ORDER BY path LIMIT 500"
_ALL_OUTLINES = "SELECT path, outline FROM indexed WHERE path > ? ORDER BY path LIMIT 500"
_ALL_DEFINED = "SELECT path, defined FROM indexed WHERE path > ? ORDER BY path LIMIT 500"
_ALL_USED = "SELECT path, used FROM indexed WHERE path > ? ORDER BY path LIMIT 500"

_T = TypeVar("_T")
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


class Stamp(NamedTuple):
    """The metadata by which a file counts as unchanged: times in nanoseconds, size in bytes.

    All zero: unknown, so the content is compared.
    """

    mtime: int = 0
    ctime: int = 0
    size: int = 0

    @classmethod
    def of(cls, info: os.stat_result) -> Stamp:
        """Return the stamp of the result of `os.stat` or `os.lstat`."""
        return cls(info.st_mtime_ns, info.st_ctime_ns, info.st_size)


class Work(NamedTuple):
    """A file to process: its path in the index and on disk, the digest known of it (16 bytes, b"" for none), its size
    in bytes.
    """

    path: str
    absolute: str
    digest: bytes
    size: int


class IndexEntry(NamedTuple):
    """One file to write. `packed` None: the tags of this content are in the store already.

    `prepared` is the result of each companion for the file (`Store.prepare`). `note` says why the file was not parsed:
    '' (it was), `large`, `binary`, `gone`, `failed` (it hung or crashed its worker).
    """

    path: str
    digest: bytes
    packed: Packed | None
    prepared: tuple[object, ...] = ()
    stamp: Stamp = Stamp()
    note: str = ""


class Known(NamedTuple):
    """The stored state of a file: the digest of its content (16 bytes), its stamp, and why it was not parsed (see
    `IndexEntry`).
    """

    digest: bytes
    stamp: Stamp
    note: str


class Companion(Protocol):
    """Port: additional tables in the index file, updated in the same transactions. `version` is part of the file's
    stamp: with another version the whole index is rebuilt.

    `ident` is the file's row id, which stays the same as long as the path is indexed, so that it can be an FTS5 rowid.
    """

    @property
    def version(self) -> str: ...

    def create(self, db: sqlite3.Connection) -> None:
        """Create the companion's tables in an empty database; called once for each new file."""
        ...

    def prepare(self, path: str, tags: FileTags, text: str) -> object:
        """Return what `put` is to write for the file at this path of the index. Called in a worker process without a
        lock, so that heavy work belongs here; the result must be picklable.
        """
        ...

    def put(self, db: sqlite3.Connection, ident: int, prepared: object) -> None:
        """Write the data, as `prepare` returned it, of the new or changed file `ident`, replacing what it had, in the
        transaction of `db`.
        """
        ...

    def drop(self, db: sqlite3.Connection, ident: int) -> None:
        """Delete the data of the removed file `ident`; nothing if there are none."""
        ...


class Reader:
    """The reading half of `Store`. Files are given by index path. Long results are read in parts, so a concurrent
    change may be seen partly. Methods block on the disk.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def files(self) -> dict[str, bytes]:
        """Return the digest (16 bytes) of the content of every file, by index path; {} if nothing is indexed."""
        return dict(cast("list[tuple[str, bytes]]", self._database.rows("SELECT path, digest FROM indexed")))

    def tags(self, path: str) -> FileTags | None:
        """Return the tags of a file; None if it is not indexed. If they are damaged, the whole index is replaced by an
        empty one.
        """
        rows = self._database.rows("SELECT path, outline, defined, used FROM indexed WHERE path = ?", (path,))
        return next((tags for _, tags in self._decoded(rows, _tags)), None)

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]:
        """Return the definitions of a file; () if it is not indexed. Faster than `tags`."""
        rows = self._database.rows("SELECT path, outline FROM indexed WHERE path = ?", (path,))
        return next((symbols for _, symbols in self._decoded(rows, unpack_symbols)), ())

    def all_tags(self) -> Iterator[tuple[str, FileTags]]:
        """Yield pairs of index path and tags for every file, sorted by path. Slow on large indexes: see `defined` and
        `definitions`.
        """
        return self._decoded(self._by_path(_ALL_TAGS), _tags)

    def definitions(self) -> Iterator[tuple[str, tuple[SymbolInfo, ...]]]:
        """Yield pairs of index path and definitions for every file, sorted by path."""
        return self._decoded(self._by_path(_ALL_OUTLINES), unpack_symbols)

    def defined(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield pairs of index path and the names that it defines for every file, sorted by path: the fast form for a
        reference graph.
        """
        return self._decoded(self._by_path(_ALL_DEFINED), unpack_defined)

    def used(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield pairs of index path and how often the file uses each name, for every file, sorted by path."""
        return self._decoded(self._by_path(_ALL_USED), unpack_used)

    def defining(self, name: str) -> tuple[str, ...]:
        """Return the index paths of the files with a definition called `name` (not dotted), sorted."""
        # With the quotes of JSON, so that no part of a longer name is found.
        rows = self._database.rows(
            "SELECT path FROM indexed WHERE instr(defined, ?) ORDER BY path", (json.dumps(name, ensure_ascii=False),)
        )
        return tuple(path for (path,) in rows)

    def using(self, name: str) -> tuple[str, ...]:
        """Return the index paths of the files with a reference to `name` (not dotted), sorted."""
        # In `used` the names are the keys of an object.
        key = json.dumps(name, ensure_ascii=False) + ":"
        rows = self._database.rows("SELECT path FROM indexed WHERE instr(used, ?) ORDER BY path", (key,))
        return tuple(path for (path,) in rows)

    def generation(self) -> int:
        """Return a number that changes with every change visible to readers; 0 for a damaged file, which
        is replaced.
        """
        rows = self._database.rows("SELECT value FROM generation")
        return int(rows[0][0]) if rows else 0

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT on the tables of a companion; [] if a damaged file had to be replaced.
        sqlite3.OperationalError if the statement itself is wrong.
        """
        return self._database.rows(sql, values)

    def _by_path(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield all rows in batches, so that memory does not grow with their number."""
        last = ""
        # By the last path and not by an offset: files that are written meanwhile shift no row.
        while rows := self._database.rows(sql, (last,)):
            yield from rows
            last = rows[-1][0]

    def _decoded(self, rows: Iterable[tuple[Any, ...]], decode: Callable[..., _T]) -> Iterator[tuple[str, _T]]:
        """Yield each row decoded. If one cannot be decoded, the file is damaged and is replaced by an empty one."""
        try:
            for row in rows:
                yield row[0], decode(*row)
        except ValueError:
            self._database.renew()


class Store(Reader):
    """The index at `path`, created with its folder if missing. Tables of `companions` are in the same file. Safe to use
    from several threads and processes; methods block. Writing raises sqlite3.Error or OSError if the disk is full.
    """

    def __init__(self, path: Path, companions: Sequence[Companion] = ()) -> None:
        self.path = path
        self.companions = tuple(companions)
        stamp = ";".join((str(FORMAT), *(companion.version for companion in self.companions)))
        super().__init__(Database(path, stamp, self._create))

    def known(self) -> dict[str, Known]:
        """Return the digest, stamp and note of every file by index path, to detect changes; {} for an empty index."""
        rows = self._database.rows("SELECT path, digest, mtime, ctime, size, note FROM indexed")
        return {path: Known(digest, Stamp(*stamp), note) for path, digest, *stamp, note in rows}

    def digest(self, path: str) -> bytes:
        """Return the 16-byte digest of one file's content, by its index path; b"" if it is not indexed."""
        rows = self._database.rows("SELECT digest FROM indexed WHERE path = ?", (path,))
        return bytes(rows[0][0]) if rows else b""

    def below(self, folder: str) -> tuple[str, ...]:
        """Return the index paths of all files in a folder, an index path without `/` at its end, and its subfolders,
        sorted.
        """
        rows = self._database.rows(
            "SELECT path FROM files WHERE path > ? AND path < ? ORDER BY path",
            (f"{folder}/", f"{folder}0"),  # 0 is the character after /
        )
        return tuple(path for (path,) in rows)

    def content(self, digest: bytes) -> Packed | None:
        """Return the packed tags of the content with this digest (16 bytes), at any path; None if unknown."""
        rows = self._database.rows("SELECT outline, defined, used FROM contents WHERE digest = ?", (digest,))
        return Packed(*rows[0]) if rows else None

    def replace(self, path: str, digest: bytes, tags: FileTags, text: str) -> None:
        """Write one file, by its index path, with the digest of its content (16 bytes); its earlier data is replaced,
        its stamp is unknown. sqlite3.Error or OSError if the disk is full.
        """
        self.write([IndexEntry(path, digest, pack(tags), self.prepare(path, tags, text))])

    def remove(self, path: str) -> None:
        """Delete a file by its index path, nothing if it is unknown; its tags are kept for a while, as its content may
        come back.
        """
        self.write((), (path,))

    def prepare(self, path: str, tags: FileTags, text: str) -> tuple[object, ...]:
        """Return the data of a file, by its index path, for each companion, in their order, to be used as `prepared` of
        an entry. Needs no lock.
        """
        return tuple(companion.prepare(path, tags, text) for companion in self.companions)

    def write(self, entries: Iterable[IndexEntry], removed: Iterable[str] = ()) -> None:
        """Write and delete files in one transaction. An entry without tags for an unknown content is skipped, and so
        are unknown paths in `removed`. sqlite3.Error or OSError if the disk is full.
        """
        with self._database.writing() as db:
            for entry in entries:
                ident = _put(db, entry)
                # Without a row there is nothing to which their data could belong.
                for companion, prepared in zip(self.companions, entry.prepared if ident else (), strict=False):
                    companion.put(db, ident, prepared)
            for path in removed:
                for (ident,) in db.execute("DELETE FROM files WHERE path = ? RETURNING id", (path,)).fetchall():
                    for companion in self.companions:
                        companion.drop(db, ident)
            # In the same transaction: a reader never sees new rows under an old generation.
            db.execute("UPDATE generation SET value = value + 1")

    def touch(self, stamps: Mapping[str, Stamp]) -> None:
        """Set the stamps, by index path, of files whose content is unchanged; unknown paths are ignored. Invisible to
        readers.
        """
        with self._database.writing() as db:
            rows = [(*stamp, path) for path, stamp in stamps.items()]
            db.executemany("UPDATE files SET mtime = ?, ctime = ?, size = ? WHERE path = ?", rows)

    def tidy(self) -> None:
        """Delete the tags of contents that no file has, if there are more than twice as many contents as files and
        10,000 beside.
        """
        with self._database.writing() as db:
            (files,), (contents,) = db.execute("SELECT count(*) FROM files UNION ALL SELECT count(*) FROM contents")
            # Not at once: after switching branches back and forth, contents that no file had for a while are wanted
            # again.
            if contents > 2 * files + _SPARE:
                db.execute("DELETE FROM contents WHERE id NOT IN (SELECT content FROM files)")

    def clear(self) -> None:
        """Replace the index by an empty one, for all processes that use it."""
        self._database.renew()

    def close(self) -> None:
        """Close the connections of all threads. The store opens new ones when it is used again, so closing twice does
        no harm.
        """
        self._database.close()

    def _create(self, db: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        # A renewed index must not have the generation of an old one, which a cache may be keyed by.
        db.execute("INSERT INTO generation VALUES (?)", (time.time_ns() // 1000,))
        for companion in self.companions:
            companion.create(db)


def open_index(path: Path) -> Store:
    """Return the index at `path` with full-text search; the caller closes it. Every process that works on it opens it
    this way.
    """
    return Store(path, (Lexical(),))


def saved_graph(path: Path) -> Path:
    """Return the path of the reference graph that belongs to the index at `path`, whether or not it exists."""
    return path.with_suffix(".graph")


class Tables(Protocol):
    """Port: the part of the store that a search needs, SELECTs on the tables of `Lexical`."""

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class Lexical:
    """The full-text tables, updated by the store in its own transactions (a `Companion`)."""

    version = "lexical 2"

    def create(self, db: sqlite3.Connection) -> None:
        """Create the full-text table (FTS5), keyed by a file's row id, and the vocabulary table with document
        frequencies.
        """
        db.execute(f'CREATE VIRTUAL TABLE lexical USING fts5({_COLUMNS}, tokenize = "{_TOKENS}")')
        db.execute("CREATE VIRTUAL TABLE lexical_words USING fts5vocab(lexical, row)")

    def prepare(self, path: str, tags: FileTags, text: str) -> object:
        """Return the words of a file in the form that `put` takes; of long texts only those of the first 400,000
        characters (40,000 if it is not code).
        """
        return document(path, tags.symbols, text)

    def put(self, db: sqlite3.Connection, ident: int, prepared: object) -> None:
        """Replace the words of the file with row id `ident` by those that `prepare` returned. AssertionError for
        anything else.
        """
        assert isinstance(prepared, (tuple, list)), prepared
        row = (ident, *prepared)
        db.execute(f"REPLACE INTO lexical (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?)", row)  # noqa: S608

    def drop(self, db: sqlite3.Connection, ident: int) -> None:
        """Delete the words of the file with row id `ident`; nothing if it has none."""
        db.execute("DELETE FROM lexical WHERE rowid = ?", (ident,))


def document(path: str, outline: Iterable[SymbolInfo], text: str) -> tuple[str, str, str]:
    """Return the words of a file as they are indexed, a text with blanks between them each: of its path, of the names
    it defines, of its text, of which only the first 400,000 characters count (40,000 if it is not code).
    """
    names = (symbol.name for symbol in outline)
    read = text[: MAX_CHARS if is_source(path) else MAX_OTHER_CHARS]
    return " ".join(words_of(path)), " ".join(terms_of(" ".join(names))), _repeat_words(count_words(read))


def matching(tables: Tables, question: QueryTerms, limit: int = CANDIDATES) -> list[tuple[str, float]]:
    """Return pairs of index path and score for at most `limit` files that match best by BM25 (SQLite FTS5), best first;
    [] if no word of the question tells files apart. The scores are positive, and comparable only to each other.
    """
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
    """Return how many files have each of these words, given as the index has them; words that no file
    has are left out.
    """
    slots = ",".join("?" * len(words))
    rows = tables.query(f"SELECT term, doc FROM lexical_words WHERE term IN ({slots})", tuple(words))  # noqa: S608
    return {word: count for word, count in rows}  # noqa: C416 - rows are tuples of unknown types


def search_words(question: QueryTerms) -> list[str]:
    """Return the words to search for, each once, as the index has them: those of the query, its identifiers as whole
    words, and its joined words.
    """
    wholes = (as_word(name) for name in question.names)
    words = (word for word, _ in question.words)
    return list(dict.fromkeys((*words, *(whole for whole in wholes if whole), *question.joined)))


def folder_and_stem(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets: the words of a path's folders, and of its file name up to the first dot."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return _folder_words(folder), frozenset(words_of(stem))


def files_with(tables: Tables, names: Sequence[str], limit: int) -> list[str]:
    """Return index paths of at most `limit` files that have all of these names, and perhaps some that have only their
    parts; sorted.
    """
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


def _put(db: sqlite3.Connection, entry: IndexEntry) -> int:
    """Write an entry and return the row id of the file, 0 if its content has no tags."""
    if entry.packed is not None:
        db.execute(
            "INSERT OR IGNORE INTO contents (digest, outline, defined, used) VALUES (?, ?, ?, ?)",
            (entry.digest, *entry.packed),
        )
    found = db.execute(
        "INSERT INTO files (path, content, mtime, ctime, size, note) SELECT ?, id, ?, ?, ?, ? FROM contents"
        " WHERE digest = ? ON CONFLICT (path) DO UPDATE SET content = excluded.content, mtime = excluded.mtime,"
        " ctime = excluded.ctime, size = excluded.size, note = excluded.note RETURNING id",
        (entry.path, *entry.stamp, entry.note, entry.digest),
    ).fetchall()
    return int(found[0][0]) if found else 0


def _tags(path: str, *packed: str) -> FileTags:
    return unpack(path, Packed(*packed))


@lru_cache(maxsize=1 << 12)
def _folder_words(folder: str) -> frozenset[str]:
    return frozenset(words_of(folder))


def _telling(tables: Tables, question: QueryTerms) -> list[str]:
    """Return the rarest words, as many as can be searched quickly; none that most files have."""
    # SQLite limits the variables of a statement.
    counts = rarity(tables, search_words(question)[:500])
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


def _repeat_words(counts: Mapping[str, int]) -> str:
    return "".join([f"{word} " * min(often, _MOST_PER_WORD) for word, often in counts.items()])
