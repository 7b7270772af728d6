"""A registry restricted to some tools: what an agent, or one moment of a run, may call.

Not here: what is offered to the model (`session/conversation/tool_selection.py`), permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.messages import ToolSpec
from codeagent_lsp.tools.registry import RegisteredTool, ToolRegistry, ToolState
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import Effect
from codeagent_lsp.workspace.text.visible import one_line

NEVER = "You do not have the tool {tool!r}. Tools: {tools}."
NOT_YET = "The tool {tool!r} cannot be called yet. Now: {tools}."


class Subset(ToolRegistry):
    """A registry in which only the `allowed` tools can be called; states and counts are those of `whole`. `refusal` is
    the message to the model when it calls another tool.
    """

    def __init__(self, whole: ToolRegistry, allowed: Callable[[], Iterable[str]], refusal: str = NEVER) -> None:
        super().__init__(circuits=whole.circuits)
        self._refusal = refusal
        self._whole = whole
        self._allowed = allowed

    def get(self, name: str) -> Tool:  # type: ignore[type-arg]
        """Return the tool of that name; ToolFailed where it may not be called."""
        if name not in self._allowed():
            names = ", ".join(self.names("active"))
            told = self._refusal.format(tool=one_line(name, 60), tools=names)
            raise ToolFailed(told, ErrorCode.NOT_FOUND)
        return self._whole.get(name)

    def entries(self) -> tuple[RegisteredTool, ...]:
        """Return the registered tools that may be called."""
        allowed = set(self._allowed())
        return tuple(entry for entry in self._whole.entries() if entry.tool.traits.name in allowed)

    def names(self, state: ToolState | None = None, group: str | None = None) -> tuple[str, ...]:
        """Return the names of the tools that may be called, filtered by state and group."""
        allowed = set(self._allowed())
        return tuple(name for name in self._whole.names(state, group) if name in allowed)

    def specs(self, effects: Iterable[Effect], groups: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Return the descriptions of the tools that may be called."""
        allowed = set(self._allowed())
        return tuple(spec for spec in self._whole.specs(effects, groups) if spec["name"] in allowed)

    def count(self, name: str, *, ok: bool, milliseconds: float) -> None:
        """Count a call in the whole registry."""
        self._whole.count(name, ok=ok, milliseconds=milliseconds)
