"""Chunks as they are embedded: their text and key, and that a changed file has no longer the chunk that it had."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.semantic import MAX_CHARS, ChunkReader, key_of, place_of, text_of
from tests.index.workspaces import service, write


def test_the_key_is_that_of_the_content() -> None:
    one, moved = Chunk("a.py", 1, 2, "x", 0.5, "f"), Chunk("b/c.py", 7, 8, "x", 0.1, "f")
    assert key_of(one) == key_of(moved)
    assert key_of(one) != key_of(Chunk("a.py", 1, 2, "y", 0.5, "f"))
    assert text_of(one) == "f\nx"
    assert len(text_of(Chunk("a.py", 1, 2, "x" * 9000))) == MAX_CHARS


async def test_a_chunk_is_there_until_its_text_changes(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def f():\n    return 1\n", "blank.py": "\n\n"})
    async with service(tmp_path, store=tmp_path / "index.sqlite") as index:
        await index.refresh()
        reader = ChunkReader(index.store, index.folders)
        (chunk,) = reader.chunks("a.py")
        assert (chunk.symbol, reader.chunks("blank.py"), reader.chunks("none.py")) == ("f", [], [])
        place = place_of(chunk)
        found = reader.chunk_at("a.py", place, 0.123456)
        assert found is not None and (found.text, found.score) == (chunk.text, 0.1235)
        write(tmp_path, {"a.py": "def f():\n    return 2\n"})
        assert reader.chunk_at("a.py", place, 1.0) is None
        assert reader.chunk_at("none.py", place, 1.0) is None
