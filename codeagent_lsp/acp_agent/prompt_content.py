"""The content of a prompt of the Agent Client Protocol as the words and attachments of a task. Pure.

A link to a file of the session's folders, and one whose text comes with it, is an attachment by its URI: what is read
is the text that the user has now. Not here: sending the task (`open_session.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp import schema

from codeagent_lsp.acp_agent.client_files import FolderNames
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.visible import fenced

# `#L3`, `#L3-L9`, `#L3:9`: how editors name lines in a link.
_LINES = re.compile(r"#L(\d+)(?:[-:]L?(\d+))?$")
_COMMAND = re.compile(r"/([\w.:-]+)(?:\s+(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt: its words, its attachments as `codeagent.run` takes them, and the real paths of the files that it
    names. `command` is the name after a `/` at its beginning, '' for none, and `rest` the words after that.
    """

    words: str
    attachments: tuple[dict[str, Any], ...] = ()
    files: tuple[Path, ...] = ()
    command: str = ""
    rest: str = ""


def task_of(blocks: Sequence[Any], names: FolderNames) -> Task:
    """Return the task of a prompt, given by its content blocks, in a session with these folders. Blocks of unknown
    kinds are left out.
    """
    words: list[str] = []
    attachments: list[dict[str, Any]] = []
    files: list[Path] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                words.append(block.text)
            case schema.ImageContentBlock():
                attachments.append({"data": block.data})
            case schema.ResourceContentBlock():
                attachment = _attachment(block.uri, names)
                # Links stand within the text in some clients, so no line is begun for one.
                words.append(f"`{_name(block.uri, names)}`" if attachment else f"[{block.name}]({block.uri})")
                _add(attachment, attachments, files)
            case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as resource):
                attachment = _attachment(resource.uri, names)
                if attachment is None:
                    words.append(f"\n\n{resource.uri}:\n{fenced(resource.text.rstrip())}\n\n")
                else:
                    words.append(f"`{_name(resource.uri, names)}`")
                _add(attachment, attachments, files)
            case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as resource):
                if (resource.mime_type or "").startswith("image/"):
                    attachments.append({"data": resource.blob})
    said = _join(words)
    files += [path for path in _find_mentioned(said, names.real) if path not in files]
    command = _COMMAND.match(said)
    return Task(
        said,
        tuple(attachments),
        tuple(files),
        command[1] if command else "",
        (command[2] or "").strip() if command else "",
    )


def _add(attachment: dict[str, Any] | None, attachments: list[dict[str, Any]], files: list[Path]) -> None:
    if attachment is not None:
        attachments.append(attachment)
        path = uris.to_path(attachment["uri"])
        files += [Path(path)] if path else []


def _attachment(uri: str, names: FolderNames) -> dict[str, Any] | None:
    """Return the attachment of a file in the folders; None for anything else."""
    lines = _LINES.search(uri)
    plain = uri[: lines.start()] if lines else uri.partition("#")[0]
    named = uris.to_path(plain)
    path = None if named is None else names.found(Path(named))
    if path is None or not any(path.is_relative_to(folder) for folder in names.real) or not path.is_file():
        return None
    real = uris.from_path(path)
    if lines is None:
        return {"uri": real}
    first, last = int(lines[1]), int(lines[2] or lines[1])
    span = {"start": {"line": max(0, first - 1), "character": 0}, "end": {"line": max(first, last), "character": 0}}
    return {"uri": real, "range": span}


def _name(uri: str, names: FolderNames) -> str:
    path = names.found(Path(uris.to_path(uri.partition("#")[0]) or ""))
    return next((str(path.relative_to(folder)) for folder in names.real if path.is_relative_to(folder)), path.name)


def _find_mentioned(words: str, folders: Sequence[Path]) -> Iterable[Path]:
    """Yield the files that the words name by a path."""
    for word in dict.fromkeys(re.findall(r"[\w./-]+\.\w+", words)[:200]):
        for folder in folders:
            path = folder / word.lstrip("./")
            if len(word) < 300 and path.is_file():
                yield path


def _join(words: Sequence[str]) -> str:
    """Join the pieces of a prompt; where two meet without a blank, one is put between."""
    said = ""
    for piece in words:
        said += f" {piece}" if said and not said[-1].isspace() and piece[:1] and not piece[0].isspace() else piece
    return said.strip()
