"""The repository as the house rules see it: its files, its modules, their syntax trees. Read only."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.garbage import uncollected

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "codeagent_lsp"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One Python file: its dotted name, its text and its tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()

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
