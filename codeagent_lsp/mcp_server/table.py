"""The tools of the sandbox server: their names there, the tools behind them, and what a client is told.

The one place that knows the names. Not here: running a call (`sandbox.py`), the protocol (`serving.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from codeagent_lsp.tools.base import Tool
from codeagent_lsp.tools.builtin.code_editing import EditByAst
from codeagent_lsp.tools.builtin.code_graphs import CallGraph, DependencyGraph, FindDefinition, FindReferences
from codeagent_lsp.tools.builtin.code_reading import AstExtractFunction, AstFindSymbols, AstGetImports, AstParse
from codeagent_lsp.tools.builtin.code_search import CodeIndexBuild
from codeagent_lsp.tools.builtin.coverage import AnalyzeCoverage
from codeagent_lsp.tools.builtin.editing import BatchEdit, EditFile, PreviewEdit, WriteFile
from codeagent_lsp.tools.builtin.generating import GenerateTests
from codeagent_lsp.tools.builtin.git import GenerateCommit, GitDiff, GitLog
from codeagent_lsp.tools.builtin.patching import ApplyPatch
from codeagent_lsp.tools.builtin.reading import ListDir, ReadFile
from codeagent_lsp.tools.builtin.running import RunCmd
from codeagent_lsp.tools.builtin.searching import GlobFileSearch, Grep
from codeagent_lsp.tools.builtin.testing import RunTests

MISSING = (
    *("export_artifact", "list_artifacts", "batch_export_artifacts", "import_file", "import_files_batch"),
    *("start_terminal", "stop_terminal", "get_terminal_status", "restart_terminal"),
    *("start_desktop", "stop_desktop", "get_desktop_status", "restart_desktop"),
)
"""Names that belong to the sandbox and are not served: there are no tools behind them yet."""

_STAYS = " It stays in the sandbox; the resource sandbox://changes.diff gives it out."
_SAMPLING = " Needs a client that offers sampling."


@dataclass(frozen=True, slots=True)
class Entry:
    """A name of the sandbox and the tool behind it. `more` is added to the tool's description, or with `words` takes
    its place; parameters in `hidden` are neither told nor taken.
    """

    name: str
    tool: type[Tool[Any]]
    more: str = ""
    words: str = ""
    hidden: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What a client is told."""
        return (self.words or self.tool.traits.description) + self.more

    def made(self) -> Tool[Any]:
        """The tool under its name here, which its own messages use too."""
        traits = replace(self.tool.traits, name=self.name, description=self.description)
        cls = type(f"Sandbox{self.tool.__name__}", (self.tool,), {"traits": traits})
        tool: Tool[Any] = cls()
        return tool

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        schema = self.made().input_schema()
        kept = {name: value for name, value in schema.get("properties", {}).items() if name not in self.hidden}
        return {**schema, "type": "object", "properties": kept}


TABLE: tuple[Entry, ...] = (
    Entry("read", ReadFile),
    Entry(
        "write",
        WriteFile,
        _STAYS,
        words="Create a file, or replace a whole file. For a small change use edit.",
    ),
    Entry("edit", EditFile, _STAYS),
    Entry("glob", GlobFileSearch),
    Entry("grep", Grep),
    Entry("list", ListDir),
    Entry("patch", ApplyPatch, _STAYS),
    Entry(
        "bash",
        RunCmd,
        words="Run a bash command on the files as the sandbox has them, without network. Text files it writes stay in "
        "the sandbox; the resource sandbox://changes.diff gives them out.",
        hidden=("allow_network", "env_vars"),
    ),
    Entry("ast_parse", AstParse),
    Entry("ast_find_symbols", AstFindSymbols),
    Entry("ast_extract_function", AstExtractFunction),
    Entry("ast_get_imports", AstGetImports),
    Entry("code_index_build", CodeIndexBuild),
    Entry("find_definition", FindDefinition),
    Entry("find_references", FindReferences),
    Entry("call_graph", CallGraph),
    Entry("dependency_graph", DependencyGraph),
    Entry("edit_by_ast", EditByAst, _STAYS),
    Entry("batch_edit", BatchEdit, _STAYS),
    Entry("preview_edit", PreviewEdit),
    Entry(
        "git_diff",
        GitDiff,
        words="Show as a diff what differs from the last commit, all that was changed in the sandbox included.",
    ),
    Entry("git_log", GitLog),
    Entry("generate_commit", GenerateCommit, _SAMPLING),
    Entry("generate_tests", GenerateTests, _SAMPLING),
    Entry("run_tests", RunTests),
    Entry("analyze_coverage", AnalyzeCoverage),
)

BY_NAME: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in TABLE})


def tools() -> Iterable[Tool[Any]]:
    """All tools of the sandbox, made anew."""
    return [entry.made() for entry in TABLE]
