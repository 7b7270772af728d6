"""The new texts of a rename, for the tests of it."""

from __future__ import annotations

from collections.abc import Mapping

from codeagent_lsp.direct.renaming import Home, Rename, home_of, renames
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.code.splices import applied


def renamed(asked: Rename, home: Home, sources: Mapping[str, SourceFile], files: ImportTargets) -> dict[str, str]:
    """The files that change, by path."""
    return {path: applied(sources[path], each.splices) for path, each in renames(asked, home, sources, files).items()}


def lines_after(path: str, text: str, old: str, new: str) -> str | None:
    """The only file after a rename; None where the machine does not do it."""
    source = source_of(path, text)
    assert source is not None
    asked = Rename(old, new)
    home = home_of(asked, {path: source}, ())
    assert home is not None
    return renamed(asked, home, {path: source}, ImportTargets(frozenset((path,)))).get(path)


def cases(table: str) -> list[tuple[str, str, str]]:
    """Return the path, the name and the marked text of each case of a table; `----` is between two of them."""
    found = []
    for each in table.strip("\n").split("\n----\n"):
        head, _, marked = each.partition("\n")
        path, old = head.split()
        found.append((path, old, f"{marked}\n"))
    return found


def plain(marked: str) -> str:
    """The text before a rename."""
    return marked.replace("«", "").replace("»", "")


def wanted(marked: str, old: str, new: str) -> str | None:
    """The text after a rename; None where nothing is marked, as it is left to the model then."""
    return marked.replace(f"«{old.rpartition('.')[2]}»", new) if "«" in marked else None
