"""The repository as the house rules see it: its files, its modules, their syntax trees. Read only."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.garbage import uncollected

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "codeagent_lsp"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Module:
    """One Python file: its dotted name, its text and its tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, those at the top first."""
        return tuple(ast.walk(self.tree))

    def where(self, node: ast.AST) -> str:
        """A place a person can find."""
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    with uncollected():
        return tuple(map(_read, sorted(PACKAGE.rglob("*.py"))))


@cache
def test_modules() -> tuple[Module, ...]:
    """Every Python file of the tests."""
    with uncollected():
        return tuple(map(_read, sorted((ROOT / "tests").rglob("*.py"))))


test_modules.__test__ = False  # type: ignore[attr-defined]  # a helper, not a test


def functions(tree: ast.AST) -> Iterator[Function]:
    """All functions and methods, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    """All classes."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def length(node: ast.stmt) -> int:
    """Lines of a definition, without its decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def everything_imported(module: Module, known: Collection[str]) -> set[str]:
    """The modules among `known` that a module imports, anywhere in it and for types too."""
    return imported_by(module.nodes, known) - {module.name}


def imported_by(nodes: Iterable[ast.AST], known: Collection[str]) -> set[str]:
    """The modules among `known` that these nodes import."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("codeagent_lsp"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
    return found.intersection(known)


def importers(graph: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    """Who imports each module."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            users[other].add(name)
    return users


def mutual_folders(graph: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """The pairs of folders of which each imports from the other."""
    arrows = {(name.rpartition(".")[0], other.rpartition(".")[0]) for name, others in graph.items() for other in others}
    for one, other in sorted(arrows):
        if one < other and (other, one) in arrows:
            yield one, other


def code_lines(module: Module) -> set[int]:
    """The numbers of the lines that hold code: no comment, no docstring, not blank."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings: set[int] = set()
    for node in module.nodes:
        if isinstance(node, documented) and node.body and _is_string(node.body[0]):
            strings.update(lines_of(node.body[0]))
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - strings


def lines_of(node: ast.stmt) -> range:
    """The numbers of the lines that a statement takes."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def committed_files() -> tuple[Path, ...]:
    """What is, or would be, in the repository: tracked files and new ones that are not ignored."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30).stdout
    names = listed.decode().split("\0")
    return tuple(path for name in names if name and (path := ROOT / name).is_file())


def _read(path: Path) -> Module:
    text = path.read_text("utf-8")
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, text, ast.parse(text))


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
