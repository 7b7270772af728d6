"""Semantic search: chunks of files as vectors, beside lexical search; the `VectorSearch` of `port.py`.

Chunks are keyed by their content, so none is embedded twice on any path or branch; their locations are in a small file
beside the index. Nothing here raises: where the embedder or the vector database does not work, there are no results for
a while and the user is notified once; lexical search always works. Not here: the embedders (`llm/embeddings.py`),
fusion with lexical search (`rank.py`), texts not on disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol, TypeVar

from codeagent_lsp.errors import ContextOverflow, FileRefused, ModelError
from codeagent_lsp.index.grammars import is_made, is_source, is_test
from codeagent_lsp.index.rank import worth
from codeagent_lsp.index.relevance import PER_FILE, Chunk, rows, split
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.vectors import PLACES_FILE, ChunkPlace, Nearby, Places, VectorsUnusable
from codeagent_lsp.index.words import question
from codeagent_lsp.workspace.text.encoding import decode

BATCH = 32  # texts in one request
PORTION = 64  # new chunks after which the progress is stored
LEAST_CHARS = 200
REST_SECONDS = 60.0
ASK_SECONDS = 5.0
FAR = 6  # times as many chunks as requested are fetched: some are outdated, or from tests

_T = TypeVar("_T")
_PROSE = frozenset(("md", "rst", "txt", "adoc"))
MAX_CHARS = 2_000  # of a chunk that are embedded; embedding models read no more

_MAX_BYTES = 1 << 20


class Embedding(Protocol):
    """Port: an embedder, by a server or the built-in one. Its methods raise ModelError."""

    async def model(self) -> str:
        """Return the name of the model; vectors of different models are not comparable."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, all of one dimension. ContextOverflow if a text is too long."""

    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector, of the same dimension as those of texts, with which to search for a query, as some models
        embed queries differently.
        """

    async def close(self) -> None:
        """Release connections and processes; no other method may be called afterwards."""


@dataclass(slots=True)
class _Portion:
    """Files whose chunks are looked up together."""

    files: dict[str, tuple[bytes, list[ChunkPlace]]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The databases of one model; `size` is the dimension of its vectors."""

    places: Places
    vectors: Nearby
    size: int


class Semantic:
    """The `VectorSearch` over the files in `store`, for one open index. After a failure it finds nothing for 60 s;
    `note` receives the reason, once until it works again.
    """

    def __init__(
        self,
        store: Store,
        folders: Folders,
        embedding: Embedding,
        vectors: Callable[[str], Nearby],
        note: Callable[[str], None],
    ) -> None:
        self._store = store
        self._reader = ChunkReader(store, folders)
        self._embedding = embedding
        self._vectors = vectors
        self._note = note
        self._kept: _Kept | None = None
        self._rests_until = 0.0
        self._told = False
        self._closed = False
        self._turn = asyncio.Lock()

    async def refresh(self) -> int:
        """Update the vectors to the index, which may take minutes, and return how many texts were embedded; 0 if that
        fails. If cancelled or failed, the next call continues.
        """
        async with self._turn:
            return await self._working(self._refresh(), 0)

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return at most `limit` chunks closest to the query, best first; () if that fails, and for 60 s after a
        failure.
        """
        if time.monotonic() < self._rests_until or not query.strip():
            return ()
        return await self._working(self._find(query, limit), ())

    async def close(self) -> None:
        """Close the database of locations and the embedder; a search in progress finds nothing, and neither do later
        ones.
        """
        self._closed = True
        await self._embedding.close()
        if self._kept is not None:
            await asyncio.to_thread(self._kept.places.close)

    async def _working(self, work: Awaitable[_T], otherwise: _T) -> _T:
        """Return the result of `work`; if it fails, pause for a while, notify the user and return `otherwise`."""
        try:
            return await work
        except (ModelError, VectorsUnusable, sqlite3.Error, OSError, TimeoutError) as error:
            self._rests_until = time.monotonic() + REST_SECONDS
            if not self._told and not self._closed:
                self._told = True
                self._note(str(error) or type(error).__name__)
            return otherwise

    async def _refresh(self) -> int:
        kept = await self._ready()
        changed, gone = await asyncio.to_thread(self._news, kept.places)
        await asyncio.to_thread(kept.places.forget, gone)
        embedded = 0
        for portion in self._portions(changed):
            embedded += await self._done(await portion, kept)
        if embedded > PORTION:
            await asyncio.to_thread(kept.vectors.tidy, kept.size)
        return embedded

    def _news(self, places: Places) -> tuple[list[tuple[str, bytes]], list[str]]:
        """Return the files to embed, likely answers first, and the files to delete."""
        wanted = {path: digest for path, digest in self._store.files().items() if is_worth_it(path)}
        known = places.files()
        changed = [(path, digest) for path, digest in wanted.items() if known.get(path) != digest]
        changed.sort(key=lambda each: (not is_source(each[0]), is_test(each[0]), each[0]))
        return changed, [path for path in known if path not in wanted]

    def _portions(self, changed: Sequence[tuple[str, bytes]]) -> Iterator[Awaitable[_Portion]]:
        waiting = list(reversed(changed))
        while waiting:
            yield asyncio.to_thread(self._portion, waiting)

    def _portion(self, waiting: list[tuple[str, bytes]]) -> _Portion:
        """Take the next files off `waiting`, as many as make a portion."""
        portion = _Portion()
        while waiting and len(portion.texts) < PORTION:
            path, digest = waiting.pop()
            pieces = self._reader.chunks(path)
            portion.texts.update((key_of(piece), text_of(piece)) for piece in pieces)
            portion.files[path] = (digest, [place_of(piece) for piece in pieces])
        return portion

    async def _done(self, portion: _Portion, kept: _Kept) -> int:
        """Embed the new chunks of a portion, store the locations, and return the number of new chunks."""
        known = await asyncio.to_thread(kept.vectors.known, list(portion.texts), kept.size)
        new = [key for key in portion.texts if key not in known]
        for at in range(0, len(new), BATCH):
            keys = new[at : at + BATCH]
            found = await _embed_shortened(self._embedding, [portion.texts[key] for key in keys])
            await asyncio.to_thread(kept.vectors.add, dict(zip(keys, found, strict=True)))
        await asyncio.to_thread(kept.places.put, portion.files)
        # It works again, so the next failure is news.
        self._told = self._told and not new
        return len(new)

    async def _ready(self) -> _Kept:
        """Return the databases for the embedder's model, opened once its name and dimension are known."""
        if self._kept is None:
            # By a trial, as servers do not tell the dimension.
            size = len((await self._embedding.embed(["size"]))[0])
            self._kept = await asyncio.to_thread(self._open, await self._embedding.model(), size)
        return self._kept

    def _open(self, model: str, size: int) -> _Kept:
        kept = _Kept(Places(self._store.path.with_name(PLACES_FILE), f"{model} {size}"), self._vectors(model), size)
        some = kept.places.any_key()
        if some is not None and not kept.vectors.known([some], size):
            kept.places.clear()  # the vectors are gone
        return kept

    async def _find(self, query: str, limit: int) -> tuple[Chunk, ...]:
        async with asyncio.timeout(ASK_SECONDS):
            kept = await self._ready()
            vector = await self._embedding.embed_query(query[:MAX_CHARS])
        found = await asyncio.to_thread(self._nearest, kept, query, vector, limit)
        self._told = False
        return found

    def _nearest(self, kept: _Kept, query: str, vector: Sequence[float], limit: int) -> tuple[Chunk, ...]:
        asking = question(query)
        near = dict(kept.vectors.nearest(vector, FAR * limit))
        found = [(near[place.key] * worth(path, asking), path, place) for path, place in kept.places.standing([*near])]
        found.sort(key=lambda each: (-each[0], each[1], each[2].line_start))
        chunks: list[Chunk] = []
        per_file: dict[str, int] = {}
        for score, path, place in found:
            chunk = self._reader.chunk_at(path, place, score) if per_file.get(path, 0) < PER_FILE else None
            if chunk is not None:
                per_file[path] = per_file.get(path, 0) + 1
                chunks.append(chunk)
            if len(chunks) == limit:
                break
        return tuple(chunks)


def is_worth_it(path: str) -> bool:
    """Return whether a file is embedded: code and prose that is not generated; by its path alone."""
    return not is_made(path) and (is_source(path) or path.rpartition(".")[2].lower() in _PROSE)


async def _embed_shortened(embedding: Embedding, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return the vectors; texts that are too long for the server are cut in half until they fit."""
    chars = MAX_CHARS
    while True:
        try:
            return await embedding.embed([text[:chars] for text in texts])
        except ContextOverflow:
            if chars <= LEAST_CHARS:
                raise
            chars //= 2


# Reading of the chunks of files that are embedded, and the keys of their contents.


class ChunkReader:
    """Reads chunks of the files on disk, split along the definitions in `store`. Methods block on the disk."""

    def __init__(self, store: Store, folders: Folders) -> None:
        self._store = store
        self._folders = folders

    def chunks(self, path: str) -> list[Chunk]:
        """Return the chunks of a file, by its index path, that are not blank; [] if it cannot be read."""
        text = self._text(path)
        if text is None:
            return []
        return [piece for piece in split(path, text, self._store.symbols(path)) if piece.text.strip()]

    def chunk_at(self, path: str, place: ChunkPlace, score: float) -> Chunk | None:
        """Return the chunk now at `place` of a file, by its index path; None if its text is no longer the embedded
        one.
        """
        text = self._text(path)
        if text is None:
            return None
        lines = "\n".join(rows(text)[place.line_start - 1 : place.line_end])
        chunk = Chunk(path, place.line_start, place.line_end, lines, round(score, 4), place.symbol)
        return chunk if key_of(chunk) == place.key else None

    def _text(self, path: str) -> str | None:
        absolute = self._folders.absolute(path)
        if absolute is None or self._folders.look(absolute) is None:
            return None
        try:
            with open(absolute, "rb") as file:  # noqa: PTH123 - the name is a plain string
                return decode(file.read(_MAX_BYTES)).text
        except (OSError, FileRefused):
            return None


def text_of(piece: Chunk) -> str:
    """Return the text of a chunk that is embedded, at most 2,000 characters: without its path, so that a moved file
    keeps its vectors.
    """
    return f"{piece.symbol}\n{piece.text}"[:MAX_CHARS] if piece.symbol else piece.text[:MAX_CHARS]


def key_of(piece: Chunk) -> str:
    """Return the key of a chunk's content, 32 hexadecimal digits (BLAKE2b): equal for equal embedded texts, in whatever
    file.
    """
    return blake2b(text_of(piece).encode("utf-8", "replace"), digest_size=16).hexdigest()


def place_of(piece: Chunk) -> ChunkPlace:
    """Return the location of a chunk in its file, with the key of its content."""
    return ChunkPlace(key_of(piece), piece.line_start, piece.line_end, piece.symbol)
