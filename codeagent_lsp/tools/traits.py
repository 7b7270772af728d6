"""The fixed properties of a tool, by which it is offered, judged and run, and the groups of tools; importing this loads
no tool.

Not here: the tool itself (`tool.py`), the permission decision (`permissions/policy.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from codeagent_lsp.errors import ErrorCode

Effect = Literal["read", "write", "run", "net", "ask"]
Result = Literal["", "file", "printed"]
"""The kind of text in a tool's result: that of a file, which can be read again, the output of a program, of which the
errors and the end matter, or '' for any other.
"""
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


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The fixed properties of a tool. `effect` decides about permissions and modes; tools of another `group` than
    `core` are offered once that is enabled; `path_parameters` name the parameters with paths (`edits.path` for those in
    a list). `timeout` is in seconds; None for a tool with limits of its own, "setting" for `tools.timeoutSeconds`.
    `max_output_bytes` lowers `tools.maxOutputBytes` for this tool. `command_parameter` names the parameter with a shell
    command, `subject_parameter` the one that rules and questions refer to if it is neither path nor command; '' if
    there is none. `result` says what its text is, `errors` are the codes its calls may end with besides those that
    follow from the rest.

    For tools of third parties, `pin` is a digest of their description, to which approvals are bound, and `approved` is
    True if the user's settings allow the tool by name, or it only reads in our own sandbox. A hook runs for this tool
    if it names the tool itself, its `hook_name` (the tool's name in other agents), or one of `hooked_as`; for a tool
    that `removes` files, the last holds only for hooks that run before the call.
    """

    name: str
    description: str
    effect: Effect
    group: str = "core"
    timeout: float | Literal["setting"] | None = "setting"
    max_output_bytes: int | None = None
    path_parameters: tuple[str, ...] = field(default=())
    command_parameter: str = ""
    subject_parameter: str = ""
    pin: str = ""
    approved: bool = False
    result: Result = ""
    errors: tuple[ErrorCode, ...] = ()
    hook_name: str = ""
    hooked_as: tuple[str, ...] = ()
    removes: bool = False


# The groups of tools with their purposes, and the port through which a run enables one.


class ToolGroups(Protocol):
    """Port: the tool groups that one run offers its model."""

    def enable(self, group: str) -> tuple[str, ...]:
        """Offer a group from the next model call on and return the names of its tools. ToolFailed if there is no such
        group.
        """

    def described(self, group: str) -> str:
        """Return the parameters of a group's tools as text, for models whose prompt never shows them; '' for all
        others.
        """

    def offer(self, names: Iterable[str]) -> None:
        """Offer the groups of these tools; unknown names are ignored."""
