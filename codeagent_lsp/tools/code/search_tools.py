"""The tools `search_semantic` and `code_index_build`: search code by a description, and update the index.

Not here: searching (`index/answers.py`), and tools that look at the code's structure.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

MOST = 20
BUILD_SECONDS = 300.0
Piece = dict[str, str | int | float]

NO_INDEX = "There is no code index here. Use grep and glob_file_search."


class SearchParameters(Parameters):
    """The description to search for."""

    query: str = Field(description="Words and names that describe the code", min_length=1)
    limit: int = Field(5, ge=1, le=MOST)


class SearchSemantic(Tool[SearchParameters]):
    """Find the pieces of code that match a description best."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "search_semantic",
        "Find code by a description or by names, best first; for what you cannot put into a pattern.",
        "read",
        errors=(ErrorCode.NOT_FOUND,),
    )
    parameters = SearchParameters
    example: ClassVar[Example] = {"query": "where the tax is added", "limit": 5}
    forms: ClassVar[CallForms] = CallForms(
        foreign=(
            ForeignTool("semantic_search", ("Copilot",)),
            ForeignTool("codebase_search", ("Cursor", "Roo Code"), ignored=("path", "target_directories")),
            ForeignTool("SemanticSearch", ("Cursor",), ignored=("target_directories", "num_results")),
        )
    )
    output = list[Piece]  # path, start_line and end_line (1-based, included), text, score

    async def run(self, arguments: SearchParameters, context: ToolContext) -> ToolOutput:
        """Return each piece below a line with its place and score."""
        found = await index_of(context).search(arguments.query, arguments.limit)
        pieces: list[Piece] = [
            {"path": chunk.path, "start_line": chunk.line_start, "end_line": chunk.line_end, "text": chunk.text,
             "score": chunk.score}
            for chunk in found
        ]  # fmt: skip
        shown = [
            f"{chunk.path}:{chunk.line_start}-{chunk.line_end}{f' {chunk.symbol}' if chunk.symbol else ''}"
            f" (score {chunk.score:.2f})\n{chunk.text}"
            for chunk in found
        ]
        return ToolOutput("\n\n".join(shown) or f"Nothing fits {arguments.query!r}.", pieces)


class BuildParameters(Parameters):
    """The folder whose files are counted."""

    path: str | None = Field(None, description="Count only files in this folder")


class CodeIndexBuild(Tool[BuildParameters]):
    """Update the code index to the state of the disk."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "code_index_build",
        "Bring the code index up to date now; it is also kept up to date by itself.",
        "read",
        group="code",
        timeout=BUILD_SECONDS,
        path_parameters=("path",),
    )
    parameters = BuildParameters
    example: ClassVar[Example] = {"path": "src"}
    forms: ClassVar[CallForms] = CallForms(ignored=("languages",))
    output = dict[str, object]

    async def run(self, arguments: BuildParameters, context: ToolContext) -> ToolOutput:
        """Return the number of indexed files. ToolFailed if the index cannot be kept."""
        index, roots = index_of(context), context.view.roots
        below = roots.relative(roots.resolve(arguments.path)) if arguments.path else ""
        status = await index.refresh()
        if status.state == "failed":
            raise ToolFailed(f"The code index cannot be kept: {status.problem}.")
        files = len(await _below(index, below)) if below not in ("", ".") else status.files
        where = f" below {below}" if below else ""
        return ToolOutput(
            f"The index is {status.state}: {files} files{where}.", {"state": status.state, "files": files}
        )


def index_of(context: ToolContext) -> CodeIndex:
    """Return the index of a run. ToolFailed if there is none."""
    return context.need(CodeIndex, NO_INDEX, ErrorCode.NOT_FOUND)


async def _below(index: CodeIndex, folder: str) -> list[str]:
    view = await index.view()
    known = await asyncio.to_thread(view.files)
    # a call may name a file
    return [path for path in known if path == folder or path.startswith(f"{folder}/")]
