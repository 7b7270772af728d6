"""Projects with a whole function in them, ready to be broken: from the standard library or from public code.

Each is made only when asked for. Files get names that do not tell where the code is from. No faults here.
"""

from __future__ import annotations

import ast
import doctest
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from tests.bench.tasks.mutations import find_function
from tests.bench.tasks.pieces import (
    Unit,
    code_binds,
    fit_together,
    functions,
    joined,
    library_text,
    line_count,
    needed,
    units,
    whole,
)
from tests.bench.tasks.samples import SAMPLES, Sample

Item = TypeVar("Item")
MODULES = (
    "core", "helpers", "basics", "engine", "parts", "common", "kit", "routines", "support", "utilities", "shared",
    "toolbox", "service", "worker", "logic",
)  # fmt: skip
FOLDERS = ("app", "project", "lib", "base", "house", "workshop")
ATTEMPTS = 50
SMALL_LINES, SMALL_FUNCTION = 75, 60
MEDIUM = range(80, 201)
LARGE = range(300, 1501)


@dataclass(frozen=True, slots=True)
class Source:
    """A project without fault: `place` is the file of `function`, `module` its import name, `calls` use it."""

    files: dict[str, str]
    place: str
    module: str
    function: str
    calls: tuple[str, ...]
    origin: str = field(default="", compare=False)


def library_sources(chance: random.Random, size: str) -> Iterator[Source]:
    """Projects of a size from the functions of the standard library, in an order drawn by chance."""
    letter = size[0]
    fitting = [sample for sample in SAMPLES if letter in sample.sizes and _exists(sample)]
    chance.shuffle(fitting)
    for sample in fitting:
        if (made := _project(chance, size, sample)) is not None:
            yield made


def surroundings(chance: random.Random, own: str, size: str, avoided: Iterable[str]) -> str:
    """A module text with this code in it, as long as the size says; the other functions have no avoided word."""
    if size == "small":
        return own
    words = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in avoided))
    for _ in range(ATTEMPTS):
        made = _surrounded(chance, own, size)
        if len(words.findall(made)) == len(words.findall(own)):
            return made
    raise LookupError(f"the other functions use one of {', '.join(avoided)}")


def _surrounded(chance: random.Random, own: str, size: str) -> str:
    mine = units(own)
    if size == "medium":
        return _longer(chance, mine, library_text("textwrap"), chance.choice(range(90, 140)))
    samples = [sample for sample in SAMPLES if "l" in sample.sizes and _exists(sample)]
    chance.shuffle(samples)
    for sample in samples:
        other = whole(library_text(sample.module))
        if line_count(other) in LARGE and fit_together(mine, units(other)):
            at_end = [unit for unit in units(other) if not unit.is_import]
            half = len(at_end) // 2
            return joined(units(other)[: len(units(other)) - half], mine, at_end[-half:])
    raise LookupError("no module is large enough")


def companions(chance: random.Random, taken: set[str], count: int) -> dict[str, str]:
    """A few further small modules, by file name."""
    found: dict[str, str] = {}
    samples = [sample for sample in SAMPLES if "s" in sample.sizes and _exists(sample)]
    for sample in chance.sample(samples, count):
        name = chance.choice([name for name in MODULES if name not in taken])
        taken.add(name)
        found[f"{name}.py"] = joined(needed(library_text(sample.module), [sample.name.partition(".")[0]]))
    return found


def _exists(sample: Sample) -> bool:
    text = library_text(sample.module)
    return bool(text) and _found(text, sample.name) is not None


@cache
def _found(text: str, name: str) -> ast.FunctionDef | None:
    return find_function(ast.parse(text), name)


def _project(chance: random.Random, size: str, sample: Sample) -> Source | None:
    text = library_text(sample.module)
    name = chance.choice(MODULES)
    origin = f"{sample.module}.{sample.name}"
    if size == "large":
        body = whole(text)
        if line_count(body) not in LARGE:
            return None
        folder = chance.choice(FOLDERS)
        others = companions(chance, {name}, 3)
        files = {f"{folder}/__init__.py": "", f"{folder}/{name}.py": body}
        files |= {f"{folder}/{other}": code for other, code in others.items()}
        return Source(files, f"{folder}/{name}.py", f"{folder}.{name}", sample.name, sample.calls, origin)
    code = _alone(text, sample) if size == "small" else _among_others(chance, text, sample)
    return Source({f"{name}.py": code}, f"{name}.py", name, sample.name, sample.calls, origin) if code else None


def _alone(text: str, sample: Sample) -> str:
    code = joined(needed(text, _used(text, sample)))
    function = find_function(ast.parse(code), sample.name)
    length = (function.end_lineno or 0) - function.lineno + 1 if function else 0
    return code if line_count(code) <= SMALL_LINES and 0 < length <= SMALL_FUNCTION else ""


def _among_others(chance: random.Random, text: str, sample: Sample) -> str:
    own = needed(text, _used(text, sample))
    if line_count(joined(own)) >= MEDIUM.stop:
        return ""
    code = _longer(chance, own, text, chance.choice(range(90, 150)))
    return code if line_count(code) in MEDIUM else ""


def _longer(chance: random.Random, own: tuple[Unit, ...], text: str, lines: int) -> str:
    """More functions of this text, then of others, until there are so many lines; the text's order is kept."""
    names = set(code_binds(own))
    kept = own
    for more in _shuffled(chance, functions(text)):
        group = needed(text, [*names, more])
        if line_count(joined(kept)) < lines and line_count(joined(group)) in range(MEDIUM.stop) and own[0] in group:
            names, kept = names | {more}, group
    for sample in _shuffled(chance, SAMPLES):
        group = needed(library_text(sample.module), [sample.name.partition(".")[0]])
        fits = fit_together(kept, group) and line_count(joined(kept, group)) in range(MEDIUM.stop)
        if line_count(joined(kept)) < lines and group and fits:
            kept = (*group, *kept) if chance.random() < 0.5 else (*kept, *group)
    return joined(kept)


def _shuffled(chance: random.Random, items: Iterable[Item]) -> list[Item]:
    every = list(items)
    chance.shuffle(every)
    return every


def _used(text: str, sample: Sample) -> list[str]:
    """The function, and the module's names that its calls use."""
    called = {node.id for call in sample.calls for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    return [sample.name.partition(".")[0], *sorted(called & code_binds(units(text)))]


def public_sources(folder: Path) -> list[Source]:
    """Projects from the functions of a public package whose docstrings have examples: the whole package, renamed."""
    modules = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted(_package_files(folder))}
    found: list[Source] = []
    for path, text in modules.items():
        root = _root(path)
        files = {
            str(other.relative_to(root.parent)): _renamed(body, root.name)
            for other, body in modules.items()
            if _root(other) == root
        }
        files = {name.replace(f"{root.name}/", "package/", 1): body for name, body in files.items()}
        place = str(Path("package", path.relative_to(root)))
        module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, calls in _examples(text):
            found.append(Source(files, place, module, name, calls, f"{root.name}: {path.relative_to(root)} {name}"))
    return found


def fetched(name: str, folder: Path) -> Path:
    """The source of a package on PyPI, fetched by pip and unpacked into a folder."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", name]
    with tempfile.TemporaryDirectory() as down:
        subprocess.run([*command, "-d", down], check=True)
        for archive in Path(down).iterdir():
            subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
    return folder


def _package_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = {part.lower() for part in path.relative_to(folder).parts}
        inside = (path.parent / "__init__.py").exists()
        if inside and not parts & {"tests", "test", "docs", "examples"} and not path.name.startswith("test"):
            yield path


def _root(path: Path) -> Path:
    root = path.parent
    while (root.parent / "__init__.py").exists():
        root = root.parent
    return root


def _renamed(text: str, package: str) -> str:
    return re.sub(rf"^(\s*(?:from|import)\s+){re.escape(package)}\b", r"\1package", text, flags=re.MULTILINE)


def _examples(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Functions with at least three calls in the examples of their docstrings, as expressions on one line."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and f">>> {node.name}(" in text:
            calls = tuple(_calls(ast.get_docstring(node) or "", node.name))
            if len(calls) >= 3:
                yield node.name, calls


def _calls(docstring: str, name: str) -> Iterator[str]:
    try:
        examples = doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return
    for example in examples:
        source = example.source.strip()
        try:
            ast.parse(source, mode="eval")
        except SyntaxError:
            continue
        if f"{name}(" in source and "\n" not in source:
            yield source
