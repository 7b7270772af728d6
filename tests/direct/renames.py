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
