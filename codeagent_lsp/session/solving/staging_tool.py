"""Implements `edit_file` for a whole new text: stages it on the text that the model was shown.

It takes the place of that tool in permissions and records, and is never offered to a model. Edits of the user since the
model was shown the file are merged when the change is applied. Not here: finding the place of an edit.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.edit_tools import EditFile
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.file_view import FileText


class StageTextParameters(Parameters):
    """The path of a file and its whole new text."""

    path: str
    content: str = Field(description="The whole new text")


class StageText(Tool[StageTextParameters]):
    """Stages a new text for a file; `read` is the file as the model was shown it."""

    traits: ClassVar[ToolTraits] = EditFile.traits
    parameters = StageTextParameters

    def __init__(self, read: FileText) -> None:
        self._read = read

    async def run(self, arguments: StageTextParameters, context: ToolContext) -> ToolOutput:
        """Stage the text, and return the id of the change."""
        step = context.staging.write({self._read.path: arguments.content}, [self._read])
        return ToolOutput(f"Staged {arguments.path} for the user's decision.", {"change_id": step.change_id})
