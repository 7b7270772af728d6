"""Does what a client cannot: makes folders, and makes and deletes files for clients without the file operations of a
WorkspaceEdit.

The only places where accepted changes touch the disk: a new file is empty until the client fills it. Not here: applying
changes (`editor.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.current_texts import CurrentTexts
from codeagent_lsp.workspace.changes.changeset import FileChange


def make_places(policy: ClientPolicy, group: Sequence[FileChange]) -> list[str]:
    """Create the folders of new files, as clients differ in whether they do, and for a client that cannot create files
    the files, empty, for the edits to fill. The user has accepted.

    Returns what was made, the innermost first. Where it raises OSError, nothing that it made is left.
    """
    made: list[Path] = []
    new = [change for change in group if change.kind in ("create", "move") and Path(change.path).is_absolute()]
    try:
        for change in new if policy.applies_edits else ():
            path = Path(change.path)
            for folder in (each for each in reversed(path.parents) if not each.is_dir()):
                folder.mkdir()
                made.insert(0, folder)
            if change.kind == "create" and not policy.creates:
                path.touch(exist_ok=False)
                made.insert(0, path)
    except OSError:
        for path in made:
            _remove(path)
        raise
    return [str(path) for path in made]


def delete_for_client(policy: ClientPolicy, group: Sequence[FileChange]) -> None:
    """Delete the files that the client cannot delete. The user has accepted, and nothing unsaved is in them."""
    if policy.applies_edits and not policy.deletes:
        for change in group:
            if change.kind == "delete" and Path(change.path).is_absolute():
                Path(change.path).unlink(missing_ok=True)


def drop_places(texts: CurrentTexts, paths: Sequence[str]) -> None:
    """Remove the empty files and folders made for a client that then refused, unless something is in them by now."""
    for path in paths:
        if Path(path).is_dir() or (texts.document(path) is None and texts.disk(path) == ""):
            _remove(Path(path))


def _remove(path: Path) -> None:
    """Remove an empty file or folder; one that cannot be removed stays."""
    with suppress(OSError):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
