"""Real commits as edits with one type error more, for the benchmark of diagnostics after edits (`edit_diagnostics.py`).

The error stands in a function that the commit changed: a wrong type is returned where a plain one is annotated, else a
text is given where a number must be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.workspace.edits import merge
from tests.bench.histories import Commit, Repository

_PLAIN = frozenset({"int", "str", "bool", "float", "bytes", "None"})
_SIGNATURE_END = re.compile(r"\)\s*(?::\s*(?P<plain>number|string|boolean|void))?[^(){}]*(?:=>\s*)?\{$")


@dataclass(frozen=True, slots=True)
class Injected:
    """A commit's new texts by path (None: deleted) with those before it, and the error: its file, the text with it, and
    its 1-based line.
    """

    commit: Commit
    before: dict[str, str]
    after: dict[str, str | None]
    path: str
    text: str
    line: int


def injected(repository: Repository, commit: Commit, suffix: str) -> Injected | None:
    """Return a commit with an error; None if it changes no function of such files."""
    trees = [repository.tree(name) for name in (commit.parent, commit.name)]
    changed = [path for path in {**trees[0], **trees[1]} if trees[0].get(path) != trees[1].get(path)]
    blobs = repository.blobs({tree[path] for tree in trees for path in changed if path in tree})
    texts = [{p: blobs[tree[p]].decode("utf-8", "replace") for p in changed if p in tree} for tree in trees]
    after = {path: texts[1].get(path) for path in changed}
    for path in commit.edited:
        old, new = texts[0].get(path), texts[1].get(path)
        if not path.endswith(suffix) or path.endswith(".d.ts") or old is None or new is None or "\r" in new:
            continue
        if (found := with_error(path, old, new)) is not None:
            return Injected(commit, texts[0], after, path, *found)
    return None


def with_error(path: str, old: str, new: str) -> tuple[str, int] | None:
    """Return the new text with an error in a function that differs from the old text, and the error's line."""
    lines = new.split("\n")
    written = [range(run.new_start + 1, run.new_end + 1) for run in merge.runs(old, new)]
    places = _python_places(new) if path.endswith(".py") else _typescript_places(path, new)
    for span, at, statement in places:
        if any(span.start < run.stop and run.start < span.stop for run in written):
            indent = re.match(r"\s*", lines[at - 1])
            assert indent is not None
            return "\n".join([*lines[: at - 1], indent[0] + statement, *lines[at - 1 :]]), at
    return None


Place = tuple[range, int, str]
"""The lines of a function, the line before which a statement is put, and the statement."""


def _python_places(text: str) -> Iterator[Place]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_documented = len(node.body) > 1 and isinstance(node.body[0], ast.Expr)
        first = node.body[1] if is_documented else node.body[0]
        decorators = getattr(first, "decorator_list", [])
        at = min([first.lineno, *(each.lineno for each in decorators)])
        if at == node.lineno:
            continue
        yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))
        plain = node.returns is not None and ast.unparse(node.returns) in _PLAIN and not yields
        wrong = 'if __name__ == "injected": return object()' if plain else '"".center("injected")'
        yield range(node.lineno, (node.end_lineno or node.lineno) + 1), at, wrong


def _typescript_places(path: str, text: str) -> Iterator[Place]:
    source, lines = source_of(path, text), text.split("\n")
    for definition in source.definitions if source is not None else ():
        start, end = definition.symbol.line_start, definition.symbol.line_end
        for number in range(start, min(end, start + 8)):
            match = _SIGNATURE_END.search(lines[number - 1].rstrip())
            if match is not None and lines[number].strip() and definition.symbol.kind in ("function", "method"):
                plain = 'if (String(0) === "injected") return {} as object;'
                yield range(start, end + 1), number + 1, plain if match["plain"] else 'Math.abs("injected");'
                break
