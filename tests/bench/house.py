"""Prints the shape of the package in figures, by `python -m tests.bench.house [--list]`.

Reads the source only, and prints what tells whether it is pleasant to live in: how large a room is, how many have one
user, how much of the text is imports, how many comments say why. `--list` names the modules and folders behind the
figures. Not here: what a run goes through (`walk.py`), what is checked (`tests/tidy`).
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import tokenize

from tests.tidy.source import (
    Module,
    code_lines,
    everything_imported,
    functions,
    importers,
    length,
    lines_of,
    modules,
    mutual_folders,
    test_modules,
)
from tests.tidy.test_structure import circles, imported

SMALL = 80
LARGE = 20


def main() -> None:
    """Print one figure a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what stands behind the figures")
    listed = parser.parse_args().list
    package = modules()
    names = {module.name for module in package}
    graph = {module.name: everything_imported(module, names) for module in package}
    rooms = {module.name: module for module in package if module.path.name != "__init__.py"}
    size = {name: len(code_lines(module)) for name, module in rooms.items()}
    users = importers(graph)
    lonely = {name for name in rooms if len(users[name]) == 1}
    small = {name for name in rooms if size[name] < SMALL}
    pairs = list(mutual_folders(graph))
    code = sum(len(code_lines(module)) for module in package)
    tested = sum(len(code_lines(module)) for module in test_modules())
    lengths = [length(function) for module in package for function in functions(module.tree)]
    share = 100 * sum(import_lines(module) for module in package) / code
    said = sum(comments(module) for module in package)
    print(f"modules: {len(rooms)}, beside them {len(package) - len(rooms)} of folders; code lines a module: ", end="")
    print(f"{sum(size.values()) / len(rooms):.0f}, median {statistics.median(size.values()):.0f}")
    print(f"with one importer: {len(lonely)}; under {SMALL} code lines: {len(small)}; either: {len(lonely | small)}")
    nested = sum(f"{other}.".startswith(f"{one}.") for one, other in pairs)
    print(f"pairs of folders that import each other: {len(pairs)}, of these {nested} a folder and one within it")
    print(f"functions: {len(lengths)}; median {statistics.median(lengths):.0f} lines, ", end="")
    print(f"95th percentile {statistics.quantiles(lengths, n=20)[-1]:.0f}; over {LARGE}: ", end="")
    print(f"{100 * sum(value > LARGE for value in lengths) / len(lengths):.0f} %")
    print(f"imports' share of the code lines: {share:.1f} %; comments for each code line: {100 * said / code:.1f} %")
    print(f"lines of code without comments and docstrings: {code}; of the tests {tested}, ratio {tested / code:.2f}")
    top_level = {module.name: imported(module) - {module.name} for module in package}
    print(f"cycles, imports for types included: {len(list(circles(top_level)))}")
    if listed:
        print("\nwith one importer or small:")
        for name in sorted(lonely | small):
            print(f"  {name}: {size[name]}, imported by {', '.join(sorted(users[name])[:3])}")
        print("\nfolders that import each other:")
        print("\n".join(f"  {one} and {other}" for one, other in pairs))


def import_lines(module: Module) -> int:
    """Return how many lines its imports take."""
    nodes = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(len(lines_of(node)) for node in nodes)


def comments(module: Module) -> int:
    """Return how many lines have a comment, those for tools left out."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    said = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return sum(not text.startswith(("# noqa", "# type:", "# ruff:", "# mypy:", "# fmt:")) for text in said)


if __name__ == "__main__":
    main()
