"""The features of the agent and their tools; there is no other registration.

Loads all tools and pydantic, so what an idle server loads does not import it. Not here: which tools are on
(`registry.py`), which of them a model is offered (`session/run/tool_selection.py`).
"""

from __future__ import annotations

from typing import Any

from codeagent_lsp.tools import (
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
from codeagent_lsp.tools.feature import Feature
from codeagent_lsp.tools.tool import Tool

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
"""All tools, in the order in which models see them."""

SMALL_SET = ("list_dir", "read_file", "glob_file_search", "grep", "run_tests", "edit_file", "write_file", "AskUser")
"""What models with small windows are offered: every tool costs tokens and invites mistakes."""
