"""Does the map show the file to edit? `python -m tests.bench.repomap --repo PATH [--repo PATH ...] [--peer PYTHON]`.

The last commits of real repositories are the tasks: message in, edited source files to be found, on the tree before
the commit. The map at several budgets, the search against plain BM25 over path and identifiers, and what it costs.
`--peer` is the Python of an environment with `aider-chat`; its map is made of the same trees, in the same run.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from codeagent_lsp.index.answers import Mapper
from codeagent_lsp.index.grammars import is_source
from codeagent_lsp.index.intake import indexed_part
from codeagent_lsp.index.parse import parse
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.store import IndexEntry, Lexical, Store
from codeagent_lsp.index.symbols import pack
from tests.bench.histories import Commit, Repository
from tests.bench.peer import Peer, environment
from tests.bench.plain import PlainWords
from tests.index.maps import paths_in

DEPTHS = (5, 10, 20)


class Shares:
    """How many of the wanted files were found, and in how many commits any and all of them."""

    def __init__(self) -> None:
        self.any: list[bool] = []
        self.all: list[bool] = []
        self.files: list[bool] = []

    def add(self, wanted: Iterable[str], found: Iterable[str]) -> None:
        """One commit."""
        have = set(found)
        hits = [path in have for path in wanted]
        self.any.append(any(hits))
        self.all.append(all(hits))
        self.files += hits

    def __str__(self) -> str:
        shares = (statistics.fmean(each) if each else 0.0 for each in (self.any, self.all, self.files))
        return "any {:.2f}  all {:.2f}  files {:.2f}".format(*shares)


class Tree:
    """An index that is moved from commit to commit."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.repository = repository
        self.store = Store(folder / "index.sqlite", (Lexical(), PlainWords()))
        self.blobs: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def move(self, commit: str) -> int:
        """To the tree of a commit; how many files changed."""
        tree = self.repository.tree(commit)
        changed = {path: blob for path, blob in tree.items() if self.blobs.get(path) != blob}
        contents = self.repository.blobs(set(changed.values()))
        for path in self.blobs.keys() - tree.keys():
            self.texts.pop(path, None)
        entries = [self._entry(path, contents[blob]) for path, blob in changed.items()]
        self.store.write(entries, self.blobs.keys() - tree.keys())
        self.blobs = tree
        return len(entries)

    def _entry(self, path: str, content: bytes) -> IndexEntry:
        text = "" if b"\0" in content[:8000] else content.decode("utf-8", "replace")
        self.texts[path] = text
        return entry(self.store, path, indexed_part(path, text))


def entry(store: Store, path: str, text: str) -> IndexEntry:
    """A file as it is written to the store."""
    tags = parse(path, text)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return IndexEntry(path, digest, pack(tags), store.prepare(path, tags, text))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repo", action="append", required=True, help="a git repository, bare or not; may be repeated")
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--tokens", default="1024,4096", help="budgets, separated by commas")
    parser.add_argument("--peer", help="Python of an environment with aider-chat, or `new`")
    options = parser.parse_args()
    budgets = [int(part) for part in options.tokens.split(",")]
    with tempfile.TemporaryDirectory() as made:
        peer = environment(Path(made)) if options.peer == "new" else options.peer
        for place in options.repo:
            with tempfile.TemporaryDirectory() as folder:
                _repository(place, Path(folder), options.commits, budgets, peer)


def _repository(place: str, folder: Path, commits: int, budgets: Sequence[int], peer: str | None) -> None:
    repository = Repository(place)
    tasks = repository.tasks(commits)
    tree = Tree(repository, folder)
    started = time.perf_counter()
    files = tree.move(tasks[0].parent)
    print(f"\n{place}: {len(tasks)} commits, {files} files, indexed in one process in {_since(started):.1f} s")
    _found(tree, tasks, budgets)
    text = _costs(tree, tasks[-1], folder, budgets[0])
    tree.store.close()
    if peer:
        other = Peer(peer, folder / "peer")
        _peer(other, repository, tasks, budgets, text)
        other.close()


def _found(tree: Tree, tasks: Sequence[Commit], budgets: Sequence[int]) -> None:
    """The tables of what is found; with `recent`, the edits of earlier commits count too."""
    tables: dict[str, Shares] = {}
    for commit in tasks:
        tree.move(commit.parent)
        wanted = [path for path in commit.edited if path in tree.blobs]
        for label, found in _answers(tree, commit, budgets):
            tables.setdefault(label, Shares()).add(wanted, found)
    for label, shares in tables.items():
        print(f"  {label:28} {shares}")


def _answers(tree: Tree, commit: Commit, budgets: Sequence[int]) -> Iterable[tuple[str, Sequence[str]]]:
    mapper = Mapper(tree.store, read=tree.texts.get)
    for kind, recent in (("", {}), (" + history", commit.recent)):
        task = Task(commit.message, recent=recent)
        for budget in budgets:
            yield f"map {budget}{kind}", paths_in(mapper.task_map(task, budget).text)
        order = [path for path, _ in mapper.ranked(task)]
        yield from ((f"search @{depth}{kind}", order[:depth]) for depth in DEPTHS)
    plain = PlainWords.search(tree.store, commit.message)
    yield from ((f"plain BM25 @{depth}", plain[:depth]) for depth in DEPTHS)


def _costs(tree: Tree, commit: Commit, folder: Path, budget: int) -> str:
    """Times of a map: the first of a process, the next, after one file changed; and whether the text stayed."""
    task, saved = Task(commit.message), folder / "graph"
    cold = _timed(lambda: Mapper(tree.store, saved, read=tree.texts.get).task_map(task, budget))
    mapper = Mapper(tree.store, saved, read=tree.texts.get)
    started = _timed(lambda: mapper.task_map(task, budget))
    before = mapper.task_map(task, budget)
    warm = _timed(lambda: mapper.task_map(task, budget))
    unrelated = next(path for path in sorted(tree.blobs, reverse=True) if path not in before.shown and is_source(path))
    tree.store.write([entry(tree.store, unrelated, "def nothing_to_do_with_it():\n    return 1\n")])
    changed = _timed(lambda: mapper.task_map(task, budget))
    same = mapper.task_map(task, budget).text == before.text
    print(f"  first map, graph made {cold:.0f} ms, graph loaded {started:.0f} ms, next {warm:.0f} ms")
    print(f"  after an edit of another file {changed:.0f} ms, the text {'is the same' if same else 'CHANGED'}")
    print(f"  memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB with the benchmark itself")
    return before.text


def _peer(peer: Peer, repository: Repository, tasks: Sequence[Commit], budgets: Sequence[int], text: str) -> None:
    """The same tasks, asked of the peer on a folder that is moved the same way; and its tokens for our last map."""
    print(f"  our map of {budgets[0]} tokens has {peer.count(text)} by the tokenizer that the peer counts with")
    for budget in budgets:
        shares, times = Shares(), []
        for commit in tasks:
            tree = repository.tree(commit.parent)
            peer.fill(tree, repository.blobs)
            found, seconds, memory = peer.ask(commit.message, sorted(tree), budget)
            shares.add([path for path in commit.edited if path in tree], found)
            times.append(seconds)
        rest = statistics.median(times[1:] or times)
        print(f"  aider {budget:<22} {shares}  first {times[0]:.1f} s, then {rest:.2f} s, {memory} MB")


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return _since(started) * 1000


def _since(started: float) -> float:
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
