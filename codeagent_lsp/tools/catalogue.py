"""The list of all features and their tools; tools are registered nowhere else.

Importing it loads all tools and pydantic, so the modules of an idle server do not import it. Not here: which tools are
on (`registry.py`), which of them a model is offered (`session/conversation/tool_selection.py`).
"""

from __future__ import annotations

from typing import Any

from codeagent_lsp.tools import (
    Feature,
    artifacts,
    code,
    commands,
    diagnostics,
    files,
    git,
    orchestration,
    plan,
    questions,
    screens,
    skills,
    testing,
    todos,
    variables,
    web,
)
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import Result

FEATURES: tuple[Feature, ...] = (
    files.FEATURE,
    commands.FEATURE,
    testing.FEATURE,
    code.FEATURE,
    diagnostics.FEATURE,
    git.FEATURE,
    questions.FEATURE,
    todos.FEATURE,
    plan.FEATURE,
    skills.FEATURE,
    orchestration.FEATURE,
    variables.FEATURE,
    web.FEATURE,
    screens.FEATURE,
    artifacts.FEATURE,
)

BUILTIN: tuple[type[Tool[Any]], ...] = tuple(tool for feature in FEATURES for tool in feature.load())
"""All built-in tool classes, in the order in which models see them."""

_TRAITS = {tool.traits.name: tool.traits for tool in BUILTIN}

SMALL_SET = ("list_dir", "read_file", "glob_file_search", "grep", "run_tests", "edit_file", "write_file", "AskUser")
"""Names of the tools offered to models with small context windows, as each tool costs tokens and adds errors."""


def result_of(name: str) -> Result:
    """Return what kind of text this tool's results are, see `Result`; '' also for a tool that is not built in."""
    return _TRAITS[name].result if name in _TRAITS else ""
