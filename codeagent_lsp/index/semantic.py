"""Search by meaning: the pieces of files as vectors, beside the words. What `Finder` of `port.py` asks for.

Pieces are keyed by their content, so none is embedded twice, whatever path or branch it is on; where each stands is
kept in a small file beside the index. Nothing here fails: where the server of the vectors or their place does not
work, there are no answers for a while and the user is told once; words are always searched.
Not here: asking the server (`llm/embeddings.py`), joining with words (`fusion.py`), texts that are not on disk.
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
from codeagent_lsp.index.chunks import PER_FILE, Chunk, split
from codeagent_lsp.index.kinds import is_made, is_source, is_test
from codeagent_lsp.index.places import Place, Places
from codeagent_lsp.index.rank import worth
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.vectors import Nearby, VectorsUnusable
from codeagent_lsp.index.words import question
from codeagent_lsp.workspace.text.encoding import decode

PLACES = "places.sqlite"
BATCH = 32  # texts in one request
PORTION = 64  # new pieces after which what is done is written down
MAX_CHARS = 2_000  # of a piece that are embedded; models for this read no more
LEAST_CHARS = 200
REST_SECONDS = 60.0
ASK_SECONDS = 5.0
FAR = 6  # times as many pieces as are asked for are looked at: some are not where they were, or tests

_T = TypeVar("_T")
_PROSE = frozenset(("md", "rst", "txt", "adoc"))
_MAX_BYTES = 1 << 20


class Embedding(Protocol):
    """A server of vectors. ModelError."""

    async def model(self) -> str:
        """Return the name of the model: vectors of different ones do not compare."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, all of one size. ContextOverflow where a text is too long."""


@dataclass(slots=True)
class _Portion:
    """Files whose pieces are looked up together."""

    files: dict[str, tuple[bytes, list[Place]]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What there is for one model; `size` is how many numbers its vectors have."""

    places: Places
    vectors: Nearby
    size: int


class Semantic:
    """The vectors of the files in `store`. `note` hears of a failure, once until it works again."""

    def __init__(
        self,
        store: Store,
        folders: Folders,
        embedding: Embedding,
        vectors: Callable[[str], Nearby],
        note: Callable[[str], None],
    ) -> None:
        self._store = store
        self._folders = folders
        self._embedding = embedding
        self._vectors = vectors
        self._note = note
        self._kept: _Kept | None = None
        self._rests_until = 0.0
        self._told = False
        self._turn = asyncio.Lock()

    async def refresh(self) -> int:
        """Bring the vectors up to the index; how many texts were embedded. Cancelled or failed: the rest later."""
        async with self._turn:
            return await self._working(self._refreshed(), 0)

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return the pieces closest to the query, best first; none where that does not work now."""
        if time.monotonic() < self._rests_until or not query.strip():
            return ()
        return await self._working(self._found(query, limit), ())

    def close(self) -> None:
        """Close the files."""
        if self._kept is not None:
            self._kept.places.close()

    async def _working(self, work: Awaitable[_T], otherwise: _T) -> _T:
        """Return the result of `work`; where it fails, a rest, and a word to the user."""
        try:
            return await work
        except (ModelError, VectorsUnusable, sqlite3.Error, OSError, TimeoutError) as error:
            self._rests_until = time.monotonic() + REST_SECONDS
            if not self._told:
                self._told = True
                self._note(str(error) or type(error).__name__)
            return otherwise

    async def _refreshed(self) -> int:
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
        """Files to look into, the likeliest answers first, and files to forget."""
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
        """Return the next files, as many as make a portion; they are taken from `waiting`."""
        portion = _Portion()
        while waiting and len(portion.texts) < PORTION:
            path, digest = waiting.pop()
            pieces = self._pieces(path)
            portion.texts.update((key_of(piece), text_of(piece)) for piece in pieces)
            portion.files[path] = (digest, [_place(piece) for piece in pieces])
        return portion

    def _pieces(self, path: str) -> list[Chunk]:
        text = self._read(path)
        if text is None:
            return []
        return [piece for piece in split(path, text, self._store.symbols(path)) if piece.text.strip()]

    async def _done(self, portion: _Portion, kept: _Kept) -> int:
        """Embed what is new of a portion, and write down where its pieces stand."""
        known = await asyncio.to_thread(kept.vectors.known, list(portion.texts), kept.size)
        new = [key for key in portion.texts if key not in known]
        for at in range(0, len(new), BATCH):
            keys = new[at : at + BATCH]
            found = await self._embedded([portion.texts[key] for key in keys])
            await asyncio.to_thread(kept.vectors.add, dict(zip(keys, found, strict=True)))
        await asyncio.to_thread(kept.places.put, portion.files)
        self._told = self._told and not new
        return len(new)

    async def _ready(self) -> _Kept:
        """What is kept for the server's model, once the server has told which it is and how long its vectors are."""
        if self._kept is None:
            size = len((await self._embedding.embed(["size"]))[0])
            self._kept = await asyncio.to_thread(self._opened, await self._embedding.model(), size)
        return self._kept

    def _opened(self, model: str, size: int) -> _Kept:
        kept = _Kept(Places(self._store.path.with_name(PLACES), f"{model} {size}"), self._vectors(model), size)
        some = kept.places.any_key()
        if some is not None and not kept.vectors.known([some], size):
            kept.places.clear()  # the vectors are not where they were
        return kept

    async def _embedded(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vectors; texts that are too long for the server are cut until they fit."""
        chars = MAX_CHARS
        while True:
            try:
                return await self._embedding.embed([text[:chars] for text in texts])
            except ContextOverflow:
                if chars <= LEAST_CHARS:
                    raise
                chars //= 2

    async def _found(self, query: str, limit: int) -> tuple[Chunk, ...]:
        async with asyncio.timeout(ASK_SECONDS):
            kept = await self._ready()
            vector, *_ = await self._embedding.embed([query[:MAX_CHARS]])
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
            chunk = self._chunk(path, place, score) if per_file.get(path, 0) < PER_FILE else None
            if chunk is not None:
                per_file[path] = per_file.get(path, 0) + 1
                chunks.append(chunk)
            if len(chunks) == limit:
                break
        return tuple(chunks)

    def _chunk(self, path: str, place: Place, score: float) -> Chunk | None:
        """What stands there now; None if that is another text than the one whose vector it was."""
        text = self._read(path)
        if text is None:
            return None
        lines = "\n".join(text.splitlines()[place.line_start - 1 : place.line_end])
        chunk = Chunk(path, place.line_start, place.line_end, lines, round(score, 4), place.symbol)
        return chunk if key_of(chunk) == place.key else None

    def _read(self, path: str) -> str | None:
        absolute = self._folders.absolute(path)
        if absolute is None or self._folders.look(absolute) is None:
            return None
        try:
            with open(absolute, "rb") as file:  # noqa: PTH123 - the name is a plain string
                return decode(file.read(_MAX_BYTES)).text
        except (OSError, FileRefused):
            return None


def is_worth_it(path: str) -> bool:
    """Return whether a file is embedded: code and prose that somebody wrote."""
    return not is_made(path) and (is_source(path) or path.rpartition(".")[2].lower() in _PROSE)


def text_of(piece: Chunk) -> str:
    """What is embedded of a piece: without its path, so that a moved file is known."""
    return f"{piece.symbol}\n{piece.text}"[:MAX_CHARS] if piece.symbol else piece.text[:MAX_CHARS]


def key_of(piece: Chunk) -> str:
    """Return the key of a piece's content, hexadecimal."""
    return blake2b(text_of(piece).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _place(piece: Chunk) -> Place:
    return Place(key_of(piece), piece.line_start, piece.line_end, piece.symbol)
