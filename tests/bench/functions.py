"""Does the map, or the search, have the very function? `python -m tests.bench.functions --repo PATH [--repo PATH ...]`.

The last commits that edit a function are the tasks: message in, the edited functions to be found, on the tree before
the commit. A function counts as found in a map by its signature in the section of its file and in its scope; in a
piece of the search, and in what the direct path shows a model first, by its lines (`edited.py`). Beside it: the files
alone; a map and pieces by plain BM25; and, with `--peer`, the map of `aider-chat` on the same trees. `--detail` also
prints a line for each commit; not for histories that are only measured.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from codeagent_lsp.direct.checks import brief_of
from codeagent_lsp.direct.gathering import Gatherer, Subject
from codeagent_lsp.direct.workspace_files import WorkspaceFiles
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.commits import NO_COMMITS, PastCommits, commits_of
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import split
from codeagent_lsp.index.scan import Folders, scan
from codeagent_lsp.index.store import Lexical, Store, rarity
from codeagent_lsp.index.worker import do
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.session.solving.direct_path import MAP_TOKENS, PIECES
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.bench.edited import (
    MOST_FUNCTIONS,
    Function,
    cut,
    edited_functions,
    in_map,
    in_peer_map,
    is_in_file,
    is_in_map,
    is_in_peer_map,
    is_in_piece,
    is_named,
    shared_words,
)
from tests.bench.histories import Commit, Repository
from tests.bench.peer import Peer, environment
from tests.bench.plain import PlainPieces, PlainWords
from tests.index.maps import paths_in

BUDGETS = (1024, 4096)
DEPTHS = (5, 10, 20)
FIRST_SECTIONS = 5
TELLING = 0.1  # of all files: a word that more of them have says little about the place

Found = Iterator[tuple[str, list[bool]]]


class Desk:
    """A folder with the files of one commit, their index and the baselines."""

    def __init__(self, repository: Repository, place: Path) -> None:
        self.repository = repository
        self.folder = place / "tree"
        self.folder.mkdir()
        self.store = Store(place / "index.sqlite", (Lexical(), PlainWords()))
        self.folders = Folders([str(self.folder)])
        self.answers = Answers(self.store, self.folders)
        self.files = FileView(Roots([str(self.folder)]), NoBuffers(), NothingStaged())
        self.pieces = PlainPieces()
        self.blobs: dict[str, str] = {}
        self.past = NO_COMMITS

    def move(self, commit: str) -> None:
        """To the tree of a commit."""
        tree = self.repository.tree(commit)
        self.past = PastCommits(commits_of(self.repository.log_of_names(commit)))
        changed = self.repository.lay(self.folder, self.blobs, tree)
        for path in self.blobs.keys() - tree.keys():
            self.pieces.put(path, ())
        self.blobs = tree
        found = scan(self.folders, self.store.known(), threading.Event())
        self.store.write((), found.removed)
        do(self.store, found.changed)
        for path in changed:
            self.pieces.put(path, split(path, self.text(path), self.store.symbols(path)))

    def text(self, path: str) -> str:
        """The text of a file, '' where it has none."""
        return (self.folder / path).read_bytes().decode("utf-8", "replace")


class Table:
    """Shares by name: of commits with any, and of all functions (or files)."""

    def __init__(self) -> None:
        self.rows: dict[str, list[list[bool]]] = {}

    def add(self, name: str, hits: list[bool]) -> None:
        """One commit."""
        self.rows.setdefault(name, []).append(hits)

    def __str__(self) -> str:
        lines = []
        for name, commits in self.rows.items():
            every = [hit for hits in commits for hit in hits]
            shares = sum(map(any, commits)) / len(commits), sum(every) / len(every)
            lines.append("  {:30} any {:.3f}  each {:.3f}".format(name, *shares))
        return "\n".join(lines)


def main() -> None:
    """Print a table for each history."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repo", action="append", required=True, help="a git history, bare or not; may be repeated")
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--peer", help="Python of an environment with aider-chat, or `new`")
    parser.add_argument("--detail", action="store_true", help="also a line for each commit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        peer = environment(Path(made) / "peer") if options.peer == "new" else options.peer
        for place in options.repo:
            with tempfile.TemporaryDirectory() as folder:
                _history(Repository(place), Path(folder), options.commits, peer, detail=options.detail)


def _history(repository: Repository, place: Path, commits: int, peer: str | None, *, detail: bool) -> None:
    tasks, passed = _tasks(repository, commits)
    desk, table = Desk(repository, place), Table()
    other = Peer(peer, place / "peer") if peer else None
    for commit, functions in tasks:
        desk.move(commit.parent)
        found = dict(_bounds(desk, commit, functions))
        found |= dict(each for way in (_ours, _starts, _plain) for each in way(desk, commit, functions))
        if other is not None:
            found |= dict(_peers(other, repository, commit, functions))
        for name, hits in found.items():
            table.add(name, hits)
        if detail:
            marks = " ".join("".join("-+"[hit] for hit in found[name]) for name in ("map 1024", "pieces @10"))
            names = ", ".join(f"{each.path}:{each.symbol.qualified}" for each in functions)
            print(f"    {commit.name[:8]} {marks}  {commit.message.splitlines()[0][:70]}  [{names[:160]}]", flush=True)
    if other is not None:
        other.close()
    edited = sum(len(functions) for _, functions in tasks)
    print(f"\n{repository.folder}: {len(tasks)} commits that edit {edited} functions, {len(desk.blobs)} files;")
    print(f"  beside them {passed} that edit no function, or more than {MOST_FUNCTIONS}\n{table}", flush=True)


def _tasks(repository: Repository, most: int) -> tuple[list[tuple[Commit, list[Function]]], int]:
    """Return the last commits that edit functions, the oldest first, and how many others were passed over."""
    found: list[tuple[Commit, list[Function]]] = []
    passed = 0
    for commit in reversed(repository.tasks(20 * most)):
        functions = edited_functions(repository, commit, repository.tree(commit.parent))
        if 1 <= len(functions) <= MOST_FUNCTIONS:
            found.append((commit, functions))
        else:
            passed += 1
        if len(found) == most:
            break
    return found[::-1], passed


def _bounds(desk: Desk, commit: Commit, functions: Sequence[Function]) -> Found:
    """How easy the tasks are: the function's name is in the message, or any word of it in the function, or one that at
    most a tenth of the files has.
    """
    yield "named in the message", [is_named(each, commit.message) for each in functions]
    shared = [shared_words(each, commit.message) for each in functions]
    yield "shares a word with it", [bool(words) for words in shared]
    counts = rarity(desk.store, sorted(frozenset[str]().union(*shared))[:500])
    telling = {word for word, count in counts.items() if count <= max(1, TELLING * len(desk.blobs))}
    yield "shares a telling word", [not telling.isdisjoint(words) for words in shared]


def _ours(desk: Desk, commit: Commit, functions: Sequence[Function]) -> Found:
    """The product's answers, asked with the message and the commits before it."""
    files = [path for path in commit.edited if path in desk.blobs]
    task = Task(commit.message, past=desk.past)
    for budget in BUDGETS:
        text = desk.answers.task_map(desk.files, task, budget, lambda path: True).text
        shown, named = in_map(text), set(paths_in(text))
        yield f"map {budget}", [is_in_map(each, shown) for each in functions]
        yield f"map {budget}, files", [path in named for path in files]
        yield f"map {budget}, first sections", [path in list(shown)[:FIRST_SECTIONS] for path in files]
    pieces = desk.answers.search(desk.files, task, DEPTHS[-1], lambda path: True)
    places = [(piece.path, piece.line_start, piece.line_end) for piece in pieces]
    yield from _depths("pieces", places, functions)
    yield "pieces @10, files", [path in {each[0] for each in places[:10]} for path in files]


def _depths(name: str, places: Sequence[tuple[str, int, int]], functions: Sequence[Function]) -> Found:
    for depth in DEPTHS:
        yield (
            f"{name} @{depth}",
            [any(is_in_piece(each, *place) for place in places[:depth]) for each in functions],
        )


def _starts(desk: Desk, commit: Commit, functions: Sequence[Function]) -> Found:
    """What the direct path shows a model first: the functions' code, started from files alone and from pieces."""
    mapped = desk.answers.task_map(
        desk.files, Task(commit.message, past=desk.past), MAP_TOKENS, lambda path: True
    ).shown
    chunks = desk.answers.search(desk.files, Task(commit.message, past=desk.past), PIECES, lambda path: True)
    pieces = tuple((each.path, range(each.line_start, each.line_end + 1)) for each in chunks)
    best = tuple(dict.fromkeys((*(name for name, _ in pieces), *mapped)))
    files, brief = WorkspaceFiles(desk.files, lambda path: True), brief_of(commit.message)
    for name, subject in (
        ("files", Subject(brief, mapped=mapped)), ("pieces", Subject(brief, mapped=best, pieces=pieces)),
    ):  # fmt: skip
        for room, small in ((2000, True), (8000, False)):
            shown = Gatherer(files).material(subject, None, room=room, small=small).files
            yield f"start by {name}, room {room}", [any(is_in_file(each, file) for file in shown) for each in functions]


def _plain(desk: Desk, commit: Commit, functions: Sequence[Function]) -> Found:
    """Plain BM25: a map of all signatures of the best files, and the best pieces."""
    best = PlainWords.search(desk.store, commit.message)
    for budget in BUDGETS:
        shown = in_map(_plain_map(desk, best, budget))
        yield f"plain map {budget}", [is_in_map(each, shown) for each in functions]
    places = desk.pieces.search(commit.message, DEPTHS[-1])
    yield from _depths("plain pieces", places, functions)
    files = [path for path in commit.edited if path in desk.blobs]
    yield "plain pieces @10, files", [path in {each[0] for each in places[:10]} for path in files]


def _plain_map(desk: Desk, best: Sequence[str], budget: int) -> str:
    lines: list[str] = []
    for path in best:
        lines.append(path)
        for symbol in desk.store.symbols(path):
            depth = symbol.parent.count(".") + 2 if symbol.parent else 1
            lines.append(f"{'  ' * depth}{cut(symbol.signature or symbol.name)}")
    kept: list[str] = []
    for line in lines:
        if estimate_tokens("\n".join((*kept, line))) > budget:
            break
        kept.append(line)
    return "\n".join(kept)


def _peers(peer: Peer, repository: Repository, commit: Commit, functions: Sequence[Function]) -> Found:
    tree = repository.tree(commit.parent)
    peer.fill(tree, repository.blobs)
    for budget in BUDGETS:
        text = peer.map_text(commit.message, sorted(tree), budget)
        shown = in_peer_map(text, tree)
        yield f"aider {budget}", [is_in_peer_map(each, shown) for each in functions]
        yield f"aider {budget}, files", [path in shown for path in commit.edited if path in tree]


if __name__ == "__main__":
    main()
