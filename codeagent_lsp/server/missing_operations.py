"""Does what a client cannot: makes and deletes files for clients without the file operations of a WorkspaceEdit.

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


def make_empty_files(policy: ClientPolicy, group: Sequence[FileChange]) -> list[str]:
    """Create empty files for the edits to fill, for a client that cannot create files. The user has accepted.

    Returns what was made: the files, then their folders, the innermost first.
    """
    if policy.creates or not policy.applies_edits:
        return []
    paths = [change.path for change in group if change.kind == "create" and Path(change.path).is_absolute()]
    folders: list[str] = []
    for path in paths:
        folders += make_folder(path)
        Path(path).touch(exist_ok=False)
    return [*paths, *reversed(folders)]


def delete_for_client(policy: ClientPolicy, group: Sequence[FileChange]) -> None:
    """Delete the files that the client cannot delete. The user has accepted, and nothing unsaved is in them."""
    if policy.applies_edits and not policy.deletes:
        for change in group:
            if change.kind == "delete" and Path(change.path).is_absolute():
                Path(change.path).unlink(missing_ok=True)


def drop_empty_files(texts: CurrentTexts, paths: Sequence[str]) -> None:
    """Remove the empty files and folders made for a client that then refused."""
    for path in paths:
        if Path(path).is_dir():
            with suppress(OSError):  # the folder is no longer empty
                Path(path).rmdir()
        elif texts.document(path) is None and texts.disk(path) == "":
            Path(path).unlink(missing_ok=True)


def make_folder(path: str) -> list[str]:
    """Create the folder of a file and return the new ones; clients differ in whether they create folders."""
    parent = Path(path).parent
    missing = [str(folder) for folder in (*reversed(parent.parents), parent) if not folder.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    return missing
