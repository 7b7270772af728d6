"""The files of the workspace with the open buffers as they were at one moment. Disk changes are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import FileView, StagedView
from codeagent_lsp.workspace.text.document import Document


def frozen(view: FileView) -> Callable[[StagedView], FileView]:
    """Return what makes views of the same files, on the buffers as they are now. `view` has nothing staged."""
    held = _HeldBuffers({path: document for path in view.over_disk() if (document := _document(view, path))})
    return lambda staged: FileView(view.roots, held, staged, max_bytes=view.max_bytes)


class _HeldBuffers:
    """Buffers that do not change."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def get_by_path(self, path: str) -> Document | None:
        """Return the document that was open under this path."""
        return self._documents.get(path)

    def open_paths(self) -> Iterable[str]:
        """Return the paths of all that were open."""
        return tuple(self._documents)


def _document(view: FileView, path: str) -> Document | None:
    try:
        file = view.base(path)
    except AgentError:  # too large: no run can read it
        return None
    return Document(path, file.text, file.version) if file is not None and file.source == "buffer" else None
