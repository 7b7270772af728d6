"""The groups of tools with their purposes, and the port through which a run enables one.

Not here: which tools a model is offered (`session/conversation/tool_selection.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

CORE = "core"

EXTENDED: Mapping[str, str] = MappingProxyType(
    {
        "files": "move, delete, edit many places at once, preview an edit",
        "git": "diff, log, write a commit message",
        "tests": "coverage, generate tests",
        "code": "syntax trees, definitions, references, call graph",
        "hitl": "let the user clarify or decide, with options and risks",
        "env": "environment variables and secrets for commands",
        "plan": "a written plan that the user approves",
        "skills": "read and install skills",
        "agents": "give a part of the task to another agent",
        "web": "search and read the web",
        "compose": "a chain of tools in one call",
        "environment": "web terminal and desktop",
        "background": "reach, read and stop commands that run on",
        "artifacts": "export and import files",
    }
)


class ToolGroups(Protocol):
    """Port: the tool groups that a run offers its model."""

    def enable(self, group: str) -> tuple[str, ...]:
        """Offer a group from the next model call on and return the names of its tools. ToolRetry if there is no such
        group.
        """

    def described(self, group: str) -> str:
        """Return the parameters of a group's tools as text, where the prompt never gets them; '' elsewhere."""

    def offer(self, names: Iterable[str]) -> None:
        """Offer the groups of these tools; unknown names are ignored."""
