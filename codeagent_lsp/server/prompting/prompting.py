"""Groups the parts of prompt documents: the documents, and completion in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.server.prompting.completion import PromptCompletion
from codeagent_lsp.server.prompting.prompt_documents import PromptDocuments
from codeagent_lsp.server.prompting.prompt_files import PromptFiles
from codeagent_lsp.server.prompting.workspace_names import KnownNames

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.command_menu import CommandMenu


class Prompting:
    """The prompt documents of one server; `menu` has the users' own commands."""

    def __init__(self, backend: Backend, menu: CommandMenu) -> None:
        front = backend.front
        self.documents = PromptDocuments(PromptFiles(front.client, lambda: backend.state), backend.documents)
        self.names = KnownNames(backend.index, backend.views.plain)
        self.completion = PromptCompletion(self.documents, backend.documents, self.names, menu.offered, front.language)

    def close(self) -> None:
        """Stop reading names."""
        self.names.close()
