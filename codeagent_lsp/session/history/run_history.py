"""All recorded runs of a workspace, listed and searched by their words, in a database made from the session files.

The files are the truth: before each answer what was written to them since is read, and what is gone is forgotten. They
hold no secrets (`../redaction`), so neither does this. What is known of one run is gathered from its stored events. The
database blocks; it is called in threads. Not here: runs at work.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path, PurePath
from typing import Any

from codeagent_lsp.index.database import Database
from codeagent_lsp.session.store import SUFFIX
from codeagent_lsp.state import make_private

RUN_CHARS, MESSAGE_CHARS, RESULT_CHARS = 24_000, 4_000, 600
"""Most characters that can be found of a run, of one message, and of one tool's result."""


@dataclass(slots=True)
class RecordedRun:
    """One run as recorded: times in seconds since the epoch, tokens in all and of the prompts, and how many of these
    came from a cache; cost in USD, None if no price is known.

    `status` is `queued`, `running` (it has no end), or how it ended; `step` is the title of the plan's last step,
    `text` is what a search looks in.
    """

    run_id: str
    session_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    started: float = 0.0
    changed: float = 0.0
    step: str = ""
    tokens: int = 0
    prompt: int = 0
    cached: int = 0
    cost: float | None = None
    text: str = ""

    def absorb(self, record: Mapping[str, Any]) -> None:
        """Update by a stored event of the run, in their order; events of other types only change the time `changed`."""
        self.changed = max(self.changed, float(record.get("ts", 0)))
        match record.get("type"):
            case "task_queued":
                self.status, self.title = "queued", str(record.get("title", ""))
                self._add(str(record.get("task", "")), MESSAGE_CHARS)
            case "steered":
                self._add(str(record.get("text", "")), MESSAGE_CHARS)
            case "item_withdrawn" if record.get("item_id") == self.run_id:
                self.status = "withdrawn"
            case "run_started":
                self.kind, self.title = str(record.get("kind", "run")), str(record.get("title", ""))
                self.status, self.started = "running", float(record.get("ts", 0))
                self._add(str(record.get("task", "")), MESSAGE_CHARS)
            case "response_start":
                self.status = "running"
            case "step_started":
                self.step = str(record.get("description") or record.get("step_id", ""))
            case "usage":
                self._use(record)
            case "message":
                self._hear(record.get("message") or {})
            case "file_change":
                self._add(PurePath(str(record.get("path", ""))).name, 200)
            case "run_completed":
                self.status = str(record.get("status", ""))
                if isinstance(record.get("usage"), Mapping):  # with that of its attempts, which are other sessions
                    self.tokens, self.prompt, self.cached, self.cost = 0, 0, 0, None
                    self._use(record["usage"])
            case "run_interrupted":
                self.status = "interrupted"

    def _use(self, record: Mapping[str, Any]) -> None:
        prompt = int(record.get("prompt_tokens", 0))
        self.tokens += prompt + int(record.get("completion_tokens", 0))
        self.prompt += prompt
        self.cached += int(record.get("cached_tokens", 0))
        if record.get("cost") is not None:
            self.cost = (self.cost or 0.0) + float(record["cost"])

    def _hear(self, message: Mapping[str, Any]) -> None:
        """Keep what was said: answers and the user's words, a little of what tools gave, no notes of the program."""
        role = message.get("role")
        # Notes and summaries have a name; words of the program would be found in every run.
        if role == "user" and message.get("name"):
            return
        self._add(str(message.get("content", "")), RESULT_CHARS if role == "tool" else MESSAGE_CHARS)

    def _add(self, words: str, limit: int) -> None:
        room = min(limit, RUN_CHARS - len(self.text))
        # The task comes twice, with the request and as a message; it would count double in the ranking.
        if words.strip() and room > 0 and words[:limit] not in self.text:
            self.text = f"{self.text}\n{words[:room]}".lstrip("\n")


COLUMNS = tuple(item.name for item in fields(RecordedRun))


STAMP = " ".join(("runs-3", *COLUMNS))
RANKED = 2000
"""So many of the newest runs with the words are compared with each other."""

# ruff: noqa: S608  (the names of columns are our own)
_NAMES = ", ".join(COLUMNS)
_LIST = f"SELECT {_NAMES} FROM runs ORDER BY changed DESC, number DESC LIMIT ?"
_ONE = f"SELECT {_NAMES} FROM runs WHERE number = ?"
_KNOWN = f"SELECT {_NAMES} FROM runs WHERE session_id = ? AND run_id = ?"
_ADD = f"INSERT INTO runs ({_NAMES}) VALUES ({', '.join('?' for _ in COLUMNS)})"
_CHANGE = f"UPDATE runs SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE number = ?"
_MATCH = "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
PREFIX = 3
"""A last word of so many characters may be the beginning of one."""
EXCERPT_CHARS = 160
# FTS5 takes a run of CJK for one word. Zero width, so that an excerpt looks as it was written.
SEPARATOR = "\u200b"
# Scripts without blanks: Thai and Lao, Burmese, Khmer, kana, Han, Hangul, half-width kana, Han beyond the BMP.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff])"
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Found:
    """A run that a search found, with the words around the first match: at most 160 characters on one line."""

    run: RecordedRun
    excerpt: str


class RunHistory:
    """The recorded runs in a folder of session files; `path` is the database made from them. Methods block, and read
    what was added to the files since; close it in the end.
    """

    def __init__(self, sessions: Path, path: Path) -> None:
        self._sessions = sessions
        self._database = Database(path, STAMP, _create)

    def runs(self, limit: int) -> list[RecordedRun]:
        """Return at most `limit` runs, those that changed last first. Blocks, for reading what is new in the session
        files.
        """
        self.refresh()
        rows = self._database.rows(_LIST, (limit,))
        return [RecordedRun(*row) for row in rows]

    def session_of(self, run_id: str) -> str | None:
        """Return the id of the session of a run, or of a task that waits to be one; None if it is not recorded."""
        self.refresh()
        rows = self._database.rows("SELECT session_id FROM runs WHERE run_id = ?", (_storable(run_id),))
        return rows[0][0] if rows else None

    def search(self, query: str, limit: int) -> list[Found]:
        """Return at most `limit` runs that fit best, the best first: those with all words of the query, the last of
        which may be a beginning, else those with any; [] for none. Blocks.
        """
        self.refresh()
        for expression in expressions(query):
            if runs := self._matching(expression, limit):
                return [Found(run, excerpt(join_words(run.text), query)) for run in runs]
        return []

    def refresh(self) -> None:
        """Read what was added to the session files since the last time, and drop the runs of files that no longer
        exist. Blocks.
        """
        known = {name: (size, offset) for name, size, offset in self._database.rows("SELECT * FROM files")}
        # Ids of sessions are ASCII; a name with other bytes is no file of ours, and SQLite could not store it.
        present = {path.stem: path for path in self._sessions.glob(f"*{SUFFIX}") if path.stem.isascii()}
        grown = {name: size for name, path in present.items() if (size := _size(path)) != known.get(name, (-1, 0))[0]}
        gone = known.keys() - present.keys()
        if not grown and not gone:
            return
        make_private(self._sessions)
        with self._database.writing() as db:
            if gone:
                _forget(db, gone)
            for name, size in grown.items():
                _read(db, name, present[name], size)
        if gone:
            # What was deleted still stands in the write-ahead log until then.
            self._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _matching(self, expression: str, limit: int) -> list[RecordedRun]:
        """Return the best of the newest runs that fit."""
        ranked = self._database.rows(_MATCH, (expression, RANKED))
        best = [number for number, _ in sorted(ranked, key=lambda row: row[1])[:limit]]
        return [RecordedRun(*row) for number in best for row in self._database.rows(_ONE, (number,))]


def _create(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE files (session_id TEXT PRIMARY KEY, size INTEGER, offset INTEGER)")
    db.execute(f"CREATE TABLE runs (number INTEGER PRIMARY KEY, {_NAMES}, UNIQUE (session_id, run_id))")
    db.execute("CREATE INDEX runs_by_time ON runs (changed)")
    db.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (text, content = 'runs', content_rowid = 'number', prefix = '3 4')"
    )


def _read(db: sqlite3.Connection, session_id: str, path: Path, size: int) -> None:
    """Absorb the complete lines of a file that are new; a file that became shorter is read anew."""
    row = db.execute("SELECT offset FROM files WHERE session_id = ?", (session_id,)).fetchone()
    offset = row[0] if row else 0
    if offset > size:
        _forget(db, [session_id])
        offset = 0
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(size - offset)
    except OSError:  # deleted meanwhile
        return
    # A record without its newline is still being written; it is read next time.
    end = data.rfind(b"\n") + 1
    changed: dict[str, RecordedRun] = {}
    for record in _records(data[:end]):
        with suppress(TypeError, ValueError, AttributeError):  # a damaged record says nothing
            if run := _run_of(db, changed, session_id, record):
                run.absorb(record)
    for run in changed.values():
        with suppress(OverflowError):  # a number that is no number of tokens
            _keep(db, run)
    # -1 differs from every size: the file counts as grown, so its incomplete last line is looked at again.
    values = (session_id, size if end == len(data) else -1, offset + end)
    db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", values)


def _records(data: bytes) -> Iterable[Mapping[str, Any]]:
    for line in data.split(b"\n"):
        try:
            # After a power cut a file system may leave a block of NULs.
            record = json.loads(line.strip(b"\0"))
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _run_of(
    db: sqlite3.Connection, changed: dict[str, RecordedRun], session_id: str, record: Mapping[str, Any]
) -> RecordedRun | None:
    """Return the run that an event is about, if it is known or begins with it."""
    run_id = str(record.get("run_id", ""))
    if run_id in changed:
        return changed[run_id]
    row = db.execute(_KNOWN, (session_id, run_id)).fetchone()
    if not run_id or (row is None and record.get("type") not in ("run_started", "task_queued")):
        return None
    found = RecordedRun(*row) if row else RecordedRun(run_id, session_id)
    # It comes back with separators, and `_keep` puts them in again.
    found.text = join_words(found.text)
    changed[run_id] = found
    return found


def _keep(db: sqlite3.Connection, run: RecordedRun) -> None:
    run.text = separate_words(run.text)
    values = tuple(map(_storable, astuple(run)))
    where = (run.session_id, run.run_id)
    row = db.execute("SELECT number, text FROM runs WHERE session_id = ? AND run_id = ?", where).fetchone()
    if row:
        # A table with external content has to be given the old text to forget it.
        db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", row)
        db.execute(_CHANGE, (*values, row[0]))
        number = row[0]
    else:
        number = db.execute(_ADD, values).lastrowid
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, _storable(run.text)))


def _storable(value: Any) -> Any:
    """Return a value as SQLite takes it: a file's name may have any bytes, and a word half an emoji."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _forget(db: sqlite3.Connection, session_ids: Iterable[str]) -> None:
    """Remove sessions, so that nothing of them is left in the file."""
    db.execute("PRAGMA secure_delete = ON")
    for session_id in session_ids:
        rows = db.execute("SELECT number, text FROM runs WHERE session_id = ?", (session_id,)).fetchall()
        db.executemany("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", rows)
        db.execute("DELETE FROM runs WHERE session_id = ?", (session_id,))
        db.execute("DELETE FROM files WHERE session_id = ?", (session_id,))
    db.execute("INSERT INTO words (words) VALUES ('optimize')")  # else its words stay in older parts of the index


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


# The words of a search over runs, as SQLite's full-text search understands them. Pure.


def separate_words(words: str) -> str:
    """Return text with a separator (U+200B) after each character of a script without spaces between words, such as
    Chinese, and with composed letters (Unicode NFC), so that SQLite's full-text search finds its parts.
    """
    return _UNSPACED.sub(rf"\1{SEPARATOR}", unicodedata.normalize("NFC", words))


def join_words(words: str) -> str:
    """Return text from the database as the user wrote it, without the separators of `separate_words`."""
    return words.replace(SEPARATOR, "")


def expressions(query: str) -> tuple[str, ...]:
    """Return full-text expressions of SQLite (FTS5) to try in turn: all words, the last of which may go on, then any of
    them; () for a query without words.
    """
    phrases = [" ".join(_WORD.findall(separate_words(each))) for each in query.split()]
    quoted = [f'"{phrase}"' for phrase in phrases if phrase]
    if not quoted:
        return ()
    goes_on = " *" if len(phrases[-1]) >= PREFIX else ""
    every = " AND ".join(quoted) + goes_on
    return (every, " OR ".join(quoted)) if len(quoted) > 1 else (every,)


def excerpt(words: str, query: str) -> str:
    """Return at most 160 characters around the first place at which one of the query's words occurs, on one line, with
    `…` where it is cut; from the beginning if none does.
    """
    flat = " ".join(words.split())
    low = flat.lower()
    places = [low.find(word) for word in _WORD.findall(query.lower())]
    at = min((place for place in places if place >= 0), default=0)
    start = max(0, at - EXCERPT_CHARS // 3)
    piece = flat[start : start + EXCERPT_CHARS]
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT_CHARS < len(flat) else ''}"
