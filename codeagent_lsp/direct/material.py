"""The parts of the workspace that the model is shown for one request, as immutable values.

Not here: choosing them (`direct/gathering.py`, `pieces.py`), writing the prompt (`prompt.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.workspace.files.file_view import FileText


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file: its dotted name, its first line (1-based), its text, and the file's path where that matters."""

    name: str
    line: int
    text: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that may change: all of it, or `pieces` of it with an `outline` of the rest. `name` is its path relative
    to the workspace, `read` its text when it was read; `has_definitions` says that its language's definitions can be
    found.
    """

    name: str
    read: FileText
    pieces: tuple[Piece, ...] = ()
    outline: tuple[str, ...] = ()
    has_definitions: bool = False

    @property
    def whole(self) -> bool:
        """Return whether all of it is shown."""
        return not self.pieces

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of what is shown of it."""
        return estimate_tokens("".join(piece.text for piece in self.pieces) or self.read.text)


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that is shown for one request. `files` may change, best first; `context` may not: the tests that have
    to pass. `example` is code of the project in whose style something new is to be written. `listing` names the files
    of a small workspace, '' where that does not help. `suspects` are lines of the first file that may contain a small
    fault, most likely first.
    """

    files: tuple[ShownFile, ...] = ()
    context: tuple[Piece, ...] = ()
    example: Piece | None = None
    listing: str = ""
    suspects: tuple[str, ...] = ()

    @property
    def preferred(self) -> tuple[str, ...]:
        """Return the dotted names of the definitions that are shown as pieces."""
        return tuple(piece.name for file in self.files for piece in file.pieces)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Return the paths of the files that are shown and may not change."""
        return tuple(dict.fromkeys(piece.path for piece in self.context if piece.path))

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of what is shown of the files that may change."""
        return sum(file.tokens for file in self.files)
