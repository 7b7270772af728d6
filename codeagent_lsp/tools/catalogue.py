"""The tools of the agent. `BUILTIN` lists them in reading order; there is no other registration.

Loads all of them and pydantic, so that what an idle server loads does not import it. Not here: which of them are on
(`registry.py`).
"""

from __future__ import annotations

from typing import Any

from codeagent_lsp.tools.base import Tool
from codeagent_lsp.tools.builtin.artifacts import (
    BatchExportArtifacts,
    ExportArtifact,
    ImportFile,
    ImportFilesBatch,
    ListArtifacts,
)
from codeagent_lsp.tools.builtin.asking import AskUser
from codeagent_lsp.tools.builtin.code_editing import EditByAst
from codeagent_lsp.tools.builtin.code_graphs import CallGraph, DependencyGraph, FindDefinition, FindReferences
from codeagent_lsp.tools.builtin.code_reading import AstExtractFunction, AstFindSymbols, AstGetImports, AstParse
from codeagent_lsp.tools.builtin.code_search import CodeIndexBuild, SearchSemantic
from codeagent_lsp.tools.builtin.composing import Compose
from codeagent_lsp.tools.builtin.coverage import AnalyzeCoverage
from codeagent_lsp.tools.builtin.deciding import AskClarification, RequestDecision
from codeagent_lsp.tools.builtin.delegating import Delegate
from codeagent_lsp.tools.builtin.diagnosing import GetDiagnostics
from codeagent_lsp.tools.builtin.editing import BatchEdit, EditFile, PreviewEdit, WriteFile
from codeagent_lsp.tools.builtin.environment import CheckEnvVars, GetEnvVar, RequestEnvVar
from codeagent_lsp.tools.builtin.environments import Desktop, Terminal
from codeagent_lsp.tools.builtin.generating import GenerateTests
from codeagent_lsp.tools.builtin.git import GenerateCommit, GitDiff, GitLog
from codeagent_lsp.tools.builtin.grouping import EnableTools
from codeagent_lsp.tools.builtin.moving import DeleteFile, MoveFile
from codeagent_lsp.tools.builtin.patching import ApplyPatch, UndoPatch
from codeagent_lsp.tools.builtin.planning import CreatePlan, PlanEnter, PlanExit, PlanUpdate
from codeagent_lsp.tools.builtin.reading import ListDir, ReadFile
from codeagent_lsp.tools.builtin.running import RunCmd
from codeagent_lsp.tools.builtin.searching import GlobFileSearch, Grep
from codeagent_lsp.tools.builtin.skills import SkillInstaller, SkillLoader
from codeagent_lsp.tools.builtin.testing import RunTests
from codeagent_lsp.tools.builtin.todo import TodoRead, TodoWrite
from codeagent_lsp.tools.builtin.web import WebScrape, WebSearch

BUILTIN: tuple[type[Tool[Any]], ...] = (
    ListDir,
    ReadFile,
    GlobFileSearch,
    Grep,
    SearchSemantic,
    RunCmd,
    RunTests,
    EditFile,
    WriteFile,
    ApplyPatch,
    UndoPatch,
    MoveFile,
    DeleteFile,
    BatchEdit,
    PreviewEdit,
    AnalyzeCoverage,
    GenerateTests,
    GetDiagnostics,
    GitDiff,
    GitLog,
    GenerateCommit,
    AskUser,
    TodoRead,
    TodoWrite,
    CreatePlan,
    PlanEnter,
    PlanUpdate,
    PlanExit,
    SkillLoader,
    SkillInstaller,
    Delegate,
    EnableTools,
    AskClarification,
    RequestDecision,
    RequestEnvVar,
    GetEnvVar,
    CheckEnvVars,
    CodeIndexBuild,
    AstParse,
    AstFindSymbols,
    AstExtractFunction,
    AstGetImports,
    FindDefinition,
    FindReferences,
    CallGraph,
    DependencyGraph,
    EditByAst,
    WebSearch,
    WebScrape,
    Terminal,
    Desktop,
    ExportArtifact,
    ListArtifacts,
    BatchExportArtifacts,
    ImportFile,
    ImportFilesBatch,
    Compose,
)

SMALL_SET = ("list_dir", "read_file", "glob_file_search", "grep", "run_tests", "edit_file", "write_file", "AskUser")
"""What models with small windows are offered: every tool costs tokens and invites mistakes."""
