"""An MCP server's tool as a tool of the agent, `mcp.<server>.<tool>`; every call needs permission, but those of our own
sandbox that only read.

The server's description is untrusted: it is bounded, marked, and lowers no permission, whatever the annotations of
another program promise. Not here: the server (`server.py`), the result (`content.py`), what changed
(`changed_words.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

from pydantic import ConfigDict, model_validator

from codeagent_lsp.call_forms import CallForms, Shape, unpacked
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.mcp.calling import Calling
from codeagent_lsp.tools.mcp.changed_words import changed_words
from codeagent_lsp.tools.mcp.content import rendered
from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.tools.mcp.schema import bounded_schema, misfit
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.visible import one_line

MAX_NAME = 60
MAX_WORDS = 1000

_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_CHANGED = (
    "The server changed what it says of this tool since it was first used here. The changed words: {words}\n"
    "Allow it only if you expect that."
)


class Open(Parameters):
    """Parameters of any name; the server's own schema decides."""

    model_config = ConfigDict(extra="allow", defer_build=True, protected_namespaces=())


class Callee(Protocol):
    """Port: performs the calls of a server's tools."""

    settings: ServerSettings

    async def call(self, tool: RemoteTool, arguments: dict[str, Any], calling: Calling) -> dict[str, Any]:
        """Return the tool's result as defined by MCP (`CallToolResult`)."""


class McpTool(Tool[Open]):
    """A server's tool. `changed` returns whether its description differs from the approved one;
    `accept` approves it, `before` returns the approved one.
    """

    def __init__(
        self,
        server: Callee,
        remote: RemoteTool,
        *,
        changed: Callable[[], bool],
        accept: Callable[[], None],
        before: Callable[[], RemoteTool | None],
    ) -> None:
        self.server = server
        self.remote = remote
        self._schema = bounded_schema(remote.schema)
        self._changed = changed
        self._accept = accept
        self._before = before

    @property
    def caution(self) -> str:
        """Return the warning, for the user, that the tool's description has changed; '' if it has not."""
        return _CHANGED.format(words=self.news) if self._changed() else ""

    @property
    def news(self) -> str:
        """Return the words that changed in the tool's description and parameters; '' if none did."""
        return changed_words(self._before(), self.remote) if self._changed() else ""

    def accepted(self) -> None:
        """Record the user's approval of the tool's current description."""
        self._accept()

    def input_schema(self) -> dict[str, Any]:
        """Return the server's schema, reduced to what a model needs."""
        return self._schema

    def output_schema(self) -> dict[str, Any] | None:
        """Return the server's reduced schema of the output; None if it gives none."""
        return None if self.remote.output is None else bounded_schema(self.remote.output)

    async def run(self, arguments: Open, context: ToolContext) -> ToolOutput:
        """Call the tool on its server and return the rendered result."""
        name = self.traits.name
        calling = Calling(context, name, self.server.settings.seconds)
        result = await self.server.call(self.remote, arguments.model_dump(), calling)
        return await rendered(result, name, context.get(OutputStore))


def full_name(group: str, tool: str) -> str:
    """Return `<group>.<tool>`, such as `mcp.<server>.<tool>`, in characters that all model APIs accept; a changed or
    cut name gets a hash to be unique.
    """
    plain = _ODD.sub("_", tool) or "_"
    name = f"{group}.{plain}"
    if plain == tool and len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 7]}_{hashlib.sha256(tool.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def _inner(remote: RemoteTool, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, those inside of `arguments` if there is nothing else and the server knows no such name."""
    inner = unpacked(given.get("arguments"))
    whole = set(given) == {"arguments"} and "arguments" not in remote.schema.get("properties", {})
    return inner if whole and isinstance(inner, dict) else given


def adapted(
    server: Callee,
    remote: RemoteTool,
    *,
    changed: Callable[[], bool],
    accept: Callable[[], None],
    before: Callable[[], RemoteTool | None] = lambda: None,
) -> McpTool:
    """Return the agent's tool for a server's tool. Its parameters reject clearly wrong arguments before the user is
    asked.
    """
    settings = server.settings

    class Given(Open):
        @model_validator(mode="before")
        @classmethod
        def fits(cls, value: Any) -> Any:
            if isinstance(value, dict) and (problem := misfit(remote.schema, value)):
                raise ValueError(problem)
            return value

    class Adapted(McpTool):
        traits: ClassVar[ToolTraits] = ToolTraits(
            full_name(settings.group, remote.name),
            f"({settings.origin}) {one_line(remote.description, MAX_WORDS)}",
            "net",
            group=settings.group,
            timeout=None,
            pin=remote.pin,
            approved=settings.approves(remote.name) or (settings.own and remote.reads),
        )
        parameters: ClassVar[type[Parameters]] = Given
        forms: ClassVar[CallForms] = CallForms(
            shapes=(Shape("all in one argument `arguments`", partial(_inner, remote)),)
        )

    return Adapted(server, remote, changed=changed, accept=accept, before=before)
