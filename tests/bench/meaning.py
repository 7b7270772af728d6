"""Search with and without vectors: `python -m tests.bench.meaning --repo PATH [...] --url http://127.0.0.1:PORT/v1`.

The same tasks as `repomap`: the message of a commit in, the source files it edits to be found. Four ways on the same
queries: plain BM25 over path and identifiers, our words, vectors alone, and both joined as the product joins them.
The url is that of any server with `/v1/embeddings`. `--sources` embeds no tests and no prose: a small model on a
small machine takes half a second for a piece.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.index import semantic
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.chunks import Chunk
from codeagent_lsp.index.fusion import fused
from codeagent_lsp.index.kinds import is_source, is_test
from codeagent_lsp.index.lexical import Lexical
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.semantic import Semantic
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.vectors import Vectors
from codeagent_lsp.index.worker import do
from codeagent_lsp.llm.embeddings import Embedder
from codeagent_lsp.llm.endpoint import Limits, endpoint
from codeagent_lsp.workspace.files import FileView
from codeagent_lsp.workspace.paths import Roots
from tests.bench.histories import Repository
from tests.bench.plain import PlainWords
from tests.bench.repomap import DEPTHS, Shares
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

CHUNKS = 60


@dataclass
class Desk:
    """A tree of files, its index and everything that searches it."""

    folder: Path
    store: Store
    folders: Folders
    answers: Answers
    semantic: Semantic
    blobs: dict[str, str]

    def move(self, repository: Repository, commit: str) -> None:
        """To the tree of a commit."""
        tree = repository.tree(commit)
        changed = {path: blob for path, blob in tree.items() if self.blobs.get(path) != blob}
        contents = repository.blobs(set(changed.values()))
        for path in self.blobs.keys() - tree.keys():
            (self.folder / path).unlink()
        for path, blob in changed.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(contents[blob])
        self.blobs = tree
        found = scan(self.folders, self.store.known(), threading.Event())
        self.store.write((), found.removed)
        do(self.store, found.changed)


def main() -> None:
    """Print a table for each repository."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repo", action="append", required=True, help="a git history, bare or not; may be repeated")
    parser.add_argument("--url", required=True, help="a server with /v1/embeddings")
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--chars", type=int, default=semantic.MAX_CHARS, help="of a piece that are embedded")
    parser.add_argument("--sources", action="store_true", help="embed sources alone, without tests and prose")
    options = parser.parse_args()
    semantic.MAX_CHARS = options.chars
    semantic.ASK_SECONDS = 120.0
    if options.sources:
        semantic.is_worth_it = lambda path: is_source(path) and not is_test(path)
    for repo in options.repo:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(_repository(repo, Path(place), options.url, options.commits))


async def _repository(repo: str, place: Path, url: str, commits: int) -> None:
    repository = Repository(repo)
    desk = _desk(place, url)
    files = FileView(Roots([str(desk.folder)]), FakeBuffers(), FakeStaged())
    shares: dict[str, Shares] = {}
    embedded, seconds = 0, 0.0
    for commit in repository.tasks(commits):
        desk.move(repository, commit.parent)
        begun = time.perf_counter()
        embedded += await desk.semantic.refresh()
        seconds += time.perf_counter() - begun
        words = desk.answers.search(files, commit.message, CHUNKS, lambda path: True)
        near = await desk.semantic.search(commit.message, CHUNKS)
        ways = {
            "plain BM25": PlainWords.search(desk.store, commit.message),
            "words": _files(words),
            "vectors": _files(near),
            "words and vectors": _files(fused([words, near], CHUNKS)),
        }
        for name, paths in ways.items():
            for depth in DEPTHS:
                shares.setdefault(f"{name} @{depth}", Shares()).add(commit.edited, paths[:depth])
    desk.semantic.close()
    load = os.getloadavg()[0]
    print(f"\n{Path(repo).parent.name}: {len(desk.blobs)} files, {embedded} pieces in {seconds:.0f} s, load {load:.1f}")
    for label, share in shares.items():
        print(f"  {label:24} {share}")


def _desk(place: Path, url: str) -> Desk:
    folder = place / "tree"
    folder.mkdir()
    store = Store(place / "index.sqlite", (Lexical(), PlainWords()))
    folders = Folders([str(folder)])
    embedder = Embedder(endpoint(url, None), limits=Limits(connect=10.0, first=600.0, silence=600.0))

    def vectors(model: str) -> Vectors:
        return Vectors(str(place / "vectors"), model)

    return Desk(folder, store, folders, Answers(store, folders), Semantic(store, folders, embedder, vectors, print), {})


def _files(chunks: Sequence[Chunk]) -> list[str]:
    return list(dict.fromkeys(chunk.path for chunk in chunks))


if __name__ == "__main__":
    main()
