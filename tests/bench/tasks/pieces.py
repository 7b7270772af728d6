"""Functions taken out of a module's text with all that they need, and put together as a module again. Texts only."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unit:
    """A statement at the top of a module: its text, the names it binds and the names it reads."""

    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    is_import: bool


@cache
def library_text(module: str) -> str:
    """The source of a module of the running Python, '' where it has none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    origin = found.origin if found else None
    return Path(origin).read_text(encoding="utf-8") if origin and origin.endswith(".py") else ""


@cache
def units(text: str) -> tuple[Unit, ...]:
    """The statements of a module but its docstring, `__all__`, what runs as a program and what a C version replaces."""
    lines = text.splitlines(keepends=True)
    body = ast.parse(text).body
    return tuple(_unit(node, lines) for node in body if not _left_out(node))


def whole(text: str) -> str:
    """A module's text without its docstring, and without what would replace its functions by others in C."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if _left_out(node) and node.end_lineno is not None:
            for number in range(node.lineno - 1, node.end_lineno):
                lines[number] = ""
    return "".join(lines).lstrip("\n").rstrip() + "\n"


def needed(text: str, names: Iterable[str]) -> tuple[Unit, ...]:
    """The statements of a module that these names need, also through others, in the module's order."""
    every = units(text)
    chosen: set[int] = set()
    wanted = set(names)
    while True:
        more = {at for at, unit in enumerate(every) if at not in chosen and unit.binds & wanted}
        if not more:
            return tuple(every[at] for at in sorted(chosen))
        chosen |= more
        wanted |= {name for at in more for name in every[at].reads}


def joined(*groups: Iterable[Unit]) -> str:
    """A module made of statements: the imports first, then the rest, each once."""
    every = list(dict.fromkeys(unit for group in groups for unit in group))
    imports = list(dict.fromkeys(unit.text.strip() for unit in every if unit.is_import))
    rest = [unit.text.strip("\n") for unit in every if not unit.is_import]
    head = "\n".join(imports)
    return (f"{head}\n\n\n" if head else "") + "\n\n\n".join(rest) + "\n"


def code_binds(group: Iterable[Unit]) -> frozenset[str]:
    """The names that statements bind otherwise than by an import."""
    return frozenset(name for unit in group if not unit.is_import for name in unit.binds)


def import_binds(group: Iterable[Unit]) -> frozenset[str]:
    """The names that statements bind by an import."""
    return frozenset(name for unit in group if unit.is_import for name in unit.binds)


def fit_together(first: tuple[Unit, ...], second: tuple[Unit, ...]) -> bool:
    """Whether two groups of statements can stand in one module without one hiding the other."""
    if code_binds(first) & (code_binds(second) | import_binds(second)) or code_binds(second) & import_binds(first):
        return False
    same = {unit.text.strip() for unit in first if unit.is_import}
    other = {name for unit in second if unit.is_import and unit.text.strip() not in same for name in unit.binds}
    return not other & import_binds(first)


def functions(text: str) -> Iterator[str]:
    """The names of the functions at the top of a module."""
    yield from (node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))


def line_count(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n")


def _left_out(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AugAssign(target=ast.Name(id="__all__")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Try(body=body):
            return any(isinstance(part, ast.ImportFrom) and (part.module or "").startswith("_") for part in body)
    return False


def _unit(node: ast.stmt, lines: list[str]) -> Unit:
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))]) - 1
    while first and lines[first - 1].lstrip().startswith("#") and lines[first - 1].strip("# -=\n"):
        first -= 1
    return Unit(
        text="".join(lines[first : node.end_lineno]),
        binds=frozenset(_binds(node)),
        reads=frozenset(item.id for item in ast.walk(node) if isinstance(item, ast.Name)),
        is_import=isinstance(node, ast.Import | ast.ImportFrom),
    )


def _binds(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((item.asname or item.name).partition(".")[0] for item in names)
        case ast.Try() | ast.If() | ast.For() | ast.With():
            for child in ast.iter_child_nodes(node):
                inside = child.body if isinstance(child, ast.ExceptHandler) else [child]
                for part in inside:
                    if isinstance(part, ast.stmt):
                        yield from _binds(part)
        case _:
            yield from (item.id for item in ast.walk(node) if isinstance(item, ast.Name) and _stored(item))


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
