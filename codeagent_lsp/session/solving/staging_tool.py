"""`edit_file` for a text that is known whole: stages it on the text that the model was shown.

It stands for the tool of that name in permissions and records, and is never offered to a model. What the user typed
since the model was shown the file is merged when the change is applied. Not here: finding the place of an edit.
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
    """A file's whole new text."""

    path: str
    content: str = Field(description="The whole new text")


class StageText(Tool[StageTextParameters]):
    """Stages a new text for the file that was `read`."""

    traits: ClassVar[ToolTraits] = EditFile.traits
    parameters = StageTextParameters

    def __init__(self, read: FileText) -> None:
        self._read = read

    async def run(self, arguments: StageTextParameters, context: ToolContext) -> ToolOutput:
        """Stage it."""
        step = context.staging.write({self._read.path: arguments.content}, [self._read])
        return ToolOutput(f"Staged {arguments.path} for the user's decision.", {"change_id": step.change_id})
