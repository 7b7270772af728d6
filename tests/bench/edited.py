"""The functions that a commit edits, and where an answer shows one: in a map, in a piece, in the map of the peer.

A function is identified by its path, its scope and its lines in the text before the commit, never by its bare name.
Not here: the commits (`histories.py`) and the tables (`functions.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codeagent_lsp.direct.material import ShownFile
from codeagent_lsp.index.parse import parse
from codeagent_lsp.index.repomap import SIGNATURE_CHARS
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import words_of
from tests.bench.histories import Commit, Repository

MOST_FUNCTIONS = 10  # a commit that edits more is a sweep over the code, not a search for a place
PEER_LINE = 100  # characters of a line that the peer's map shows

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", re.MULTILINE)
_FUNCTIONS = frozenset(("function", "method"))


@dataclass(frozen=True, slots=True)
class Function:
    """A function as it was before the commit: its definition, its `text`, and `line`, the line with its name.

    `scope` is the signature of the definition around it, `alike` how many definitions of the file have its signature.
    """

    symbol: SymbolInfo
    scope: str
    text: str
    line: str
    alike: int

    @property
    def path(self) -> str:
        """Its file."""
        return self.symbol.path


def edited_functions(repository: Repository, commit: Commit, blobs: Mapping[str, str]) -> list[Function]:
    """Return the functions in whose lines the commit changes something; `blobs` is the tree before it.

    The innermost function counts. What is added between functions, in no function, counts for none.
    """
    paths = [path for path in commit.edited if path in blobs]
    texts = repository.blobs({blobs[path] for path in paths})
    found: list[Function] = []
    for path in paths:
        text = texts[blobs[path]].decode("utf-8", "replace")
        diff = repository.diff(commit, path)
        places = [(int(at), 1 if many == "" else int(many)) for at, many in _HUNK.findall(diff)]
        found += functions_at(path, text, places)
    return found


def functions_at(path: str, text: str, hunks: Sequence[tuple[int, int]]) -> list[Function]:
    """Return the functions that old hunks (first line, number of lines; 0: added behind the line) lie in."""
    symbols = parse(path, text).symbols
    functions = sorted((s for s in symbols if s.kind in _FUNCTIONS), key=lambda s: s.line_end - s.line_start)
    lines = text.splitlines()
    chosen: dict[SymbolInfo, None] = {}
    for start, many in hunks:
        for at in range(start, start + max(1, many)):
            if many and not (at <= len(lines) and lines[at - 1].strip()):
                continue  # a blank line between functions, or in one, says nothing
            last = at if many else at + 1
            inner = next((s for s in functions if s.line_start <= at and last <= s.line_end), None)
            if inner is not None:
                chosen.setdefault(inner)
    alike = Counter(cut(symbol.signature or symbol.name) for symbol in symbols)
    return [
        Function(
            each,
            _scope(each, symbols),
            "\n".join(lines[each.line_start - 1 : each.line_end]),
            _named_line(each, lines),
            alike[cut(each.signature or each.name)],
        )
        for each in chosen
    ]


def in_map(text: str) -> Mapping[str, Counter[tuple[str, str]]]:
    """Return by path the definitions that a map shows: each line with the line that it is indented under."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    shown: Counter[tuple[str, str]] | None = None
    around: list[tuple[int, str]] = []
    for line in text.splitlines():
        if not line.startswith("  "):
            shown, around = found.setdefault(line.removesuffix(":"), Counter()), []
        elif shown is not None:
            depth, words = len(line) - len(line.lstrip()), line.strip()
            around = [each for each in around if each[0] < depth]
            shown[words, around[-1][1] if around else ""] += 1
            around.append((depth, words))
    return found


def is_in_map(function: Function, shown: Mapping[str, Counter[tuple[str, str]]]) -> bool:
    """Return whether a map shows the function: its signature, in the section of its file, in its scope.

    Where the scope has no line of its own, all definitions of the file with this signature must be shown.
    """
    lines = shown.get(function.path, Counter())
    own = cut(function.symbol.signature or function.symbol.name)
    if function.scope and lines[own, cut(function.scope)]:
        return True
    loose = sum(count for (line, _), count in lines.items() if line == own)
    return loose >= function.alike


def is_in_piece(function: Function, path: str, start: int, end: int) -> bool:
    """Return whether a piece (1-based lines, inclusive) has lines of the function."""
    return path == function.path and start <= function.symbol.line_end and end >= function.symbol.line_start


def is_in_file(function: Function, shown: ShownFile) -> bool:
    """Return whether a file that a model is shown, whole or in pieces, has the function's code, from its first line."""
    if shown.name != function.path:
        return False
    start = function.symbol.line_start
    return shown.whole or any(each.line <= start <= each.line + each.text.count("\n") for each in shown.pieces)


def is_named(function: Function, message: str) -> bool:
    """Return whether the message has the function's name as a whole word: the easy cases."""
    return re.search(rf"(?<!\w){re.escape(function.symbol.name)}(?!\w)", message) is not None


def shared_words(function: Function, message: str) -> frozenset[str]:
    """Return the words of the message, in any form, that are in the function or its qualified name; where there is
    none, words cannot find it.
    """
    asked = frozenset(word for word in words_of(message) if len(word) > 2)
    return asked.intersection(words_of(f"{function.symbol.qualified}\n{function.text}"))


def in_peer_map(text: str, paths: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return by path the lines of code that the peer's map shows."""
    known = set(paths)
    found: dict[str, set[str]] = {}
    shown: set[str] = set()
    for line in text.splitlines():
        if line.startswith("│"):
            shown.add(line[1:].strip()[:PEER_LINE])
        elif (name := line.rstrip().removesuffix(":")) in known:
            shown = found.setdefault(name, set())
    return {path: frozenset(lines) for path, lines in found.items()}


def is_in_peer_map(function: Function, shown: Mapping[str, frozenset[str]]) -> bool:
    """Return whether the peer's map has the line with the function's name in the section of its file.

    In its favour: where the file has the same line twice, either counts; the indentation is not compared.
    """
    lines = shown.get(function.path, frozenset())
    wanted = function.line.strip()
    return any(line == wanted or (len(line) >= PEER_LINE - 20 and wanted.startswith(line)) for line in lines)


def cut(signature: str) -> str:
    """Return a signature as the map shows it."""
    return signature if len(signature) <= SIGNATURE_CHARS else signature[: SIGNATURE_CHARS - 1] + "…"


def _scope(symbol: SymbolInfo, symbols: Sequence[SymbolInfo]) -> str:
    """Return the signature of the definition around it; '' where there is none."""
    around = [s for s in symbols if s.qualified == symbol.parent]
    return next((s.signature or s.name for s in around), "")


def _named_line(symbol: SymbolInfo, lines: Sequence[str]) -> str:
    """Return the line of the definition that has its name first."""
    name = re.compile(rf"(?<!\w){re.escape(symbol.name)}(?!\w)")
    own = lines[symbol.line_start - 1 : symbol.line_end]
    plain = [line for line in own if not line.lstrip().startswith(("@", "#[", "//", "*", "/*"))]
    return next((line for line in plain if name.search(line)), own[0] if own else "")
