"""The tools of the sandbox server: their names, the tools behind them, and the descriptions for clients.

The only module that knows the names. Not here: running a call (`sandbox.py`), the protocol (`serving.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from codeagent_lsp.call_forms import published_schema
from codeagent_lsp.tools.artifacts.artifact_tools import (
    BatchExportArtifacts,
    ExportArtifact,
    ImportFile,
    ImportFilesBatch,
    ListArtifacts,
)
from codeagent_lsp.tools.code.editing_tools import EditByAst
from codeagent_lsp.tools.code.graph_tools import CallGraph, DependencyGraph, FindDefinition, FindReferences
from codeagent_lsp.tools.code.reading_tools import (
    AstExtractFunction,
    AstFindSymbols,
    AstGetImports,
    AstParse,
    CodeIndexBuild,
)
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.files.edit_tools import BatchEdit, EditFile, PreviewEdit, WriteFile
from codeagent_lsp.tools.files.find_tools import GlobFileSearch, Grep
from codeagent_lsp.tools.files.patch_tools import ApplyPatch
from codeagent_lsp.tools.files.read_tools import ListDir, ReadFile
from codeagent_lsp.tools.git.git_tools import GenerateCommit, GitDiff, GitLog
from codeagent_lsp.tools.screens.screen_tools import Desktop, Terminal
from codeagent_lsp.tools.testing.generating_tools import GenerateTests
from codeagent_lsp.tools.testing.testing_tools import AnalyzeCoverage, RunTests
from codeagent_lsp.tools.tool import Tool

_STAYS = " It stays in the sandbox; the resource sandbox://changes.diff gives it out."
_SAMPLING = " Needs a client that offers sampling."


@dataclass(frozen=True, slots=True)
class SandboxTool:
    """A tool of the sandbox under its name. `more` is appended to the tool's description, which `words` replaces;
    parameters in `hidden` are neither listed nor accepted, those in `fixed` always have that value.
    """

    name: str
    tool: type[Tool[Any]]
    more: str = ""
    words: str = ""
    hidden: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The description for clients: that of our tool, or `words` in its place, and then `more`."""
        return (self.words or self.tool.traits.description) + self.more

    def made(self) -> Tool[Any]:
        """Return a new instance of the tool under its sandbox name, by which its messages call it too; permission rules
        may use its usual name.

        Spellings of other agents are not understood, as clients have the schemas, and another name must not get around
        `hidden`.
        """
        traits = replace(self.tool.traits, name=self.name, description=self.description)
        forms = replace(self.tool.forms, names=(self.tool.traits.name, *self.tool.forms.names), foreign=())
        # A class for each, as a tool's traits belong to its class.
        cls = type(f"Sandbox{self.tool.__name__}", (self.tool,), {"traits": traits, "forms": forms})
        tool: Tool[Any] = cls()
        return tool

    def hides(self, parameter: str) -> bool:
        """Return whether clients cannot pass this parameter, by the tool's own name for it."""
        return parameter in self.hidden or parameter in self.fixed

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments, an object, in all spellings that are understood, without hidden
        parameters.
        """
        schema = {"type": "object", **published_schema(self.made().input_schema(), self.tool.forms)}
        # A hidden parameter is hidden under all of its names.
        own = self.tool.forms.parameters
        kept = {name: value for name, value in schema["properties"].items() if not self.hides(own.get(name, name))}
        return {**schema, "properties": kept}


class _Bash(RunCmd):
    """Runs a command and gives its clients each of its streams by itself."""

    apart = True


def _screen(name: str, tool: type[Tool[Any]], what: str, parameters: tuple[str, ...]) -> Iterable[SandboxTool]:
    """Yield the four tools of a terminal or a desktop."""
    stays = " Text files written in it stay in the sandbox."
    start, stop, status, restart = ({"action": action} for action in ("start", "stop", "status", "restart"))
    yield SandboxTool(f"start_{name}", tool, words=f"Start {what}. The answer has the address.", fixed=start)
    yield SandboxTool(f"stop_{name}", tool, words=f"Stop the {name}.{stays}", hidden=parameters, fixed=stop)
    words = f"Whether the {name} runs, and its address, port and process."
    yield SandboxTool(f"get_{name}_status", tool, words=words, hidden=parameters, fixed=status)
    yield SandboxTool(f"restart_{name}", tool, words=f"Stop the {name} and start it anew.{stays}", fixed=restart)


TABLE: tuple[SandboxTool, ...] = (
    SandboxTool("read", ReadFile),
    SandboxTool(
        "write",
        WriteFile,
        _STAYS,
        words="Create a file, or replace a whole file. For a small change use edit.",
    ),
    SandboxTool("edit", EditFile, _STAYS),
    SandboxTool("glob", GlobFileSearch),
    SandboxTool("grep", Grep),
    SandboxTool("list", ListDir),
    SandboxTool("patch", ApplyPatch, _STAYS),
    SandboxTool(
        "bash",
        _Bash,
        words="Run a bash command on the files as the sandbox has them, without network. Text files it writes stay in "
        "the sandbox; the resource sandbox://changes.diff gives them out.",
        hidden=("allow_network", "env_vars", "background", "ready"),
    ),
    SandboxTool("export_artifact", ExportArtifact),
    SandboxTool("list_artifacts", ListArtifacts),
    SandboxTool("batch_export_artifacts", BatchExportArtifacts),
    SandboxTool("import_file", ImportFile, _STAYS),
    SandboxTool("import_files_batch", ImportFilesBatch, _STAYS),
    *_screen("terminal", Terminal, "a web terminal: a shell in the sandbox, for a browser on this machine", ("port",)),
    *_screen(
        "desktop",
        Desktop,
        "a desktop in the sandbox with a terminal, for a browser on this machine",
        ("port", "resolution", "display"),
    ),
    SandboxTool("ast_parse", AstParse),
    SandboxTool("ast_find_symbols", AstFindSymbols),
    SandboxTool("ast_extract_function", AstExtractFunction),
    SandboxTool("ast_get_imports", AstGetImports),
    SandboxTool("code_index_build", CodeIndexBuild),
    SandboxTool("find_definition", FindDefinition),
    SandboxTool("find_references", FindReferences),
    SandboxTool("call_graph", CallGraph),
    SandboxTool("dependency_graph", DependencyGraph),
    SandboxTool("edit_by_ast", EditByAst, _STAYS),
    SandboxTool("batch_edit", BatchEdit, _STAYS),
    SandboxTool("preview_edit", PreviewEdit),
    SandboxTool(
        "git_diff",
        GitDiff,
        words="Show as a diff what differs from the last commit, all that was changed in the sandbox included.",
    ),
    SandboxTool("git_log", GitLog),
    SandboxTool("generate_commit", GenerateCommit, _SAMPLING),
    SandboxTool("generate_tests", GenerateTests, _SAMPLING),
    SandboxTool("run_tests", RunTests),
    SandboxTool("analyze_coverage", AnalyzeCoverage),
)

BY_NAME: Mapping[str, SandboxTool] = MappingProxyType({entry.name: entry for entry in TABLE})


def tools() -> Iterable[Tool[Any]]:
    """Return new instances of all tools of the sandbox, in the order of the table, under their sandbox names."""
    return [entry.made() for entry in TABLE]
