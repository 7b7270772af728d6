"""Search with and without vectors: `python -m tests.bench.meaning --repo PATH [...] [--url URL | --builtin]`.

The same tasks as `repomap`: the message of a commit in, the source files it edits to be found. Four ways on the same
queries: plain BM25 over path and identifiers, our words, vectors alone, and both joined as the product joins them.
The url is that of any server with `/v1/embeddings`; without one, that of the tests is started; `--builtin` is the model
that the product has for itself, in the way it uses it. A small model on a small
machine takes a fifth of a second for 500 characters, and a history has thousands of pieces: `--sources` embeds no tests
and no prose, `--chars` less of each piece, and what is embedded stays in the folder `--keep`, so that a run that was
stopped goes on where it was. A line a commit on stderr tells how far it is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.index import semantic
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.grammars import is_source, is_test
from codeagent_lsp.index.rank import Task, fuse_lists
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.semantic import Embedding, Semantic
from codeagent_lsp.index.store import Lexical, Store
from codeagent_lsp.index.vectors import Vectors
from codeagent_lsp.index.worker import do
from codeagent_lsp.llm import embeddings
from codeagent_lsp.llm.embeddings import BuiltinEmbedder, Embedder
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.bench.histories import Repository
from tests.bench.plain import PlainWords
from tests.bench.repomap import DEPTHS, Shares
from tests.index.embedding_server import CACHE, embedding_server, put_on_path
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
        repository.lay(self.folder, self.blobs, tree)
        self.blobs = tree
        found = scan(self.folders, self.store.known(), threading.Event())
        self.store.write((), found.removed)
        do(self.store, found.changed)


def main() -> None:
    """Print a table for each repository."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repo", action="append", required=True, help="a git history, bare or not; may be repeated")
    parser.add_argument("--url", help="a server with /v1/embeddings; else the one that the tests use")
    parser.add_argument("--builtin", action="store_true", help="the built-in embedder, without a server")
    parser.add_argument("--keep", type=Path, help="a folder for the vectors, for the next run")
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--chars", type=int, default=semantic.MAX_CHARS, help="of a piece that are embedded")
    parser.add_argument("--sources", action="store_true", help="embed sources alone, without tests and prose")
    options = parser.parse_args()
    semantic.MAX_CHARS = options.chars
    semantic.ASK_SECONDS = 120.0
    if options.sources:
        semantic.is_worth_it = lambda path: is_source(path) and not is_test(path)
    with ExitStack() as stack:
        url = "" if options.builtin else options.url or stack.enter_context(embedding_server(CACHE))
        if options.builtin:
            put_on_path(CACHE)
            embeddings.MAX_CHARS = options.chars
        for repo in options.repo:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            asyncio.run(_repository(Repository(repo), _desk(place, options.keep or place, url), options.commits))


async def _repository(repository: Repository, desk: Desk, commits: int) -> None:
    files = FileView(Roots([str(desk.folder)]), FakeBuffers(), FakeStaged())
    shares: dict[str, Shares] = {}
    embedded, seconds = 0, 0.0
    tasks = repository.tasks(commits)
    for number, commit in enumerate(tasks, 1):
        desk.move(repository, commit.parent)
        begun = time.perf_counter()
        embedded += await desk.semantic.refresh()
        seconds += time.perf_counter() - begun
        print(f"{number} of {len(tasks)}: {embedded} pieces in {seconds:.0f} s", file=sys.stderr)
        for name, paths in (await _ways(desk, files, commit.message)).items():
            for depth in DEPTHS:
                shares.setdefault(f"{name} @{depth}", Shares()).add(commit.edited, paths[:depth])
    await desk.semantic.close()
    load = os.getloadavg()[0]
    print(f"\n{repository.folder}: {len(tasks)} commits, {len(desk.blobs)} files at the last,", end=" ")
    print(f"{embedded} pieces embedded in {seconds:.0f} s, load {load:.1f}")
    for label, share in shares.items():
        print(f"  {label:24} {share}")


async def _ways(desk: Desk, files: FileView, message: str) -> dict[str, list[str]]:
    """The files that each way finds, best first."""
    words = desk.answers.search(files, Task(message), CHUNKS, lambda path: True)
    near = await desk.semantic.search(message, CHUNKS)
    return {
        "plain BM25": PlainWords.search(desk.store, message),
        "words": _files(words),
        "vectors": _files(near),
        "words and vectors": _files(fuse_lists([words, near], CHUNKS)),
    }


def _desk(place: Path, vectors_place: Path, url: str) -> Desk:
    folder = place / "tree"
    folder.mkdir()
    store = Store(place / "index.sqlite", (Lexical(), PlainWords()))
    folders = Folders([str(folder)])
    limits = TimeLimits(connect=10.0, first=600.0, silence=600.0)
    embedder: Embedding = Embedder(endpoint(url, None), limits=limits) if url else BuiltinEmbedder()

    def vectors(model: str) -> Vectors:
        return Vectors(str(vectors_place / "vectors"), f"{model} {semantic.MAX_CHARS}")

    def note(problem: str) -> None:
        raise SystemExit(f"no vectors: {problem}")  # a table without them would be a table of something else

    return Desk(folder, store, folders, Answers(store, folders), Semantic(store, folders, embedder, vectors, note), {})


def _files(chunks: Sequence[Chunk]) -> list[str]:
    return list(dict.fromkeys(chunk.path for chunk in chunks))


if __name__ == "__main__":
    main()
