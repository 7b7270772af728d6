"""The command `codeagent.index.graph`: the call graph of a function or the import graph of files, as a document.

The document has a Mermaid diagram and the same graph as text. The tools are imported late. Not here: computing the
graph (`tools/code/graph_tools.py`), which the agent does with the same tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.server.commands.arguments import Arguments, Later, Table
from codeagent_lsp.texts import text
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:  # heavy, and an idle server does without them
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.tools.context import ToolContext
    from codeagent_lsp.tools.tool import ToolOutput


CALLS = "graph/calls.md"
DEPENDENCIES = "graph/dependencies.md"


def graph_commands(backend: Backend, later: Later) -> Table:
    """Return the handler by command name; `later` runs the work, which takes long in a large workspace."""

    def graph(given: Arguments) -> dict[str, str]:
        name = CALLS if "function" in given else DEPENDENCIES
        later(_show(backend, name, given.get("function", ""), _path(backend, given)))
        return {"document": name}

    return {"codeagent.index.graph": graph}


async def _show(backend: Backend, name: str, function: str, path: str | None) -> None:
    from codeagent_lsp.tools.code import graph_tools as graphs  # late, as above

    context, language = _context(backend), backend.front.language()
    if function:
        found = await graphs.CallGraph().run(
            graphs.CallGraphParameters(function_name=function, path=path, depth=2), context
        )
        title = text("graph.calls", language, name=function)
    else:
        found = await graphs.DependencyGraph().run(graphs.DependencyGraphParameters(path=path), context)
        title = text("graph.imports", language, name=path or text("graph.workspace", language))
    backend.own_documents.put(name, page(title, found))
    await backend.own_documents.show(name)


def page(title: str, found: ToolOutput) -> str:
    """Format a graph as Markdown."""
    return f"# {title}\n\n```mermaid\n{found.data['mermaid'].strip()}\n```\n\n```text\n{found.text.strip()}\n```\n"


def _path(backend: Backend, given: Arguments) -> str | None:
    """Return the path of the file in the arguments, relative to the workspace; None for none."""
    if "uri" not in given:
        return None
    path = uris.to_path(given["uri"])
    if path is None:
        raise UsageError("command.kind", command="codeagent.index.graph", name="uri", kind="file:")
    return backend.views.plain().roots.relative(path)


def _context(backend: Backend) -> ToolContext:
    """Return the context for the tools: the files as the user has them, without any approvals."""
    from codeagent_lsp.session.run_index import RunIndex  # late, as above

    view, settings = backend.views.plain(), backend.front.settings()
    index = RunIndex(backend.index, view, lambda: settings.permissions)
    return tool_context(view, Staging(lambda path: None), settings, (CodeIndex, index))
