"""The new texts of a rename, for the tests of it."""

from __future__ import annotations

from collections.abc import Mapping

from codeagent_lsp.direct.renaming import Home, Rename, renames
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.source import SourceFile
from codeagent_lsp.tools.code.splices import applied


def renamed(asked: Rename, home: Home, sources: Mapping[str, SourceFile], files: ImportTargets) -> dict[str, str]:
    """The files that change, by path."""
    return {path: applied(sources[path], each.splices) for path, each in renames(asked, home, sources, files).items()}
