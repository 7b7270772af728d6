"""Reading of the chunks of files that are embedded, and the keys of their contents.

Not here: which files are embedded and when (`semantic.py`), where a file is split (`chunks.py`).
"""

from __future__ import annotations

from hashlib import blake2b

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.index.chunks import Chunk, split
from codeagent_lsp.index.places import ChunkPlace
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store
from codeagent_lsp.workspace.text.encoding import decode

MAX_CHARS = 2_000  # of a chunk that are embedded; embedding models read no more

_MAX_BYTES = 1 << 20


class ChunkReader:
    """Reads chunks of the files on disk, split along the definitions in `store`. Blocks: use it in a thread."""

    def __init__(self, store: Store, folders: Folders) -> None:
        self._store = store
        self._folders = folders

    def chunks(self, path: str) -> list[Chunk]:
        """Return the chunks of a file that are not blank; none if it cannot be read."""
        text = self._text(path)
        if text is None:
            return []
        return [piece for piece in split(path, text, self._store.symbols(path)) if piece.text.strip()]

    def chunk_at(self, path: str, place: ChunkPlace, score: float) -> Chunk | None:
        """Return the chunk now at the location; None if its text is no longer the embedded one."""
        text = self._text(path)
        if text is None:
            return None
        lines = "\n".join(text.splitlines()[place.line_start - 1 : place.line_end])
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
    """Return the text of a chunk that is embedded: without its path, so that a moved file is recognised."""
    return f"{piece.symbol}\n{piece.text}"[:MAX_CHARS] if piece.symbol else piece.text[:MAX_CHARS]


def key_of(piece: Chunk) -> str:
    """Return the key of a chunk's content: BLAKE2b of 16 bytes, hexadecimal."""
    return blake2b(text_of(piece).encode("utf-8", "replace"), digest_size=16).hexdigest()


def place_of(piece: Chunk) -> ChunkPlace:
    """Return the location of a chunk, with its key."""
    return ChunkPlace(key_of(piece), piece.line_start, piece.line_end, piece.symbol)
