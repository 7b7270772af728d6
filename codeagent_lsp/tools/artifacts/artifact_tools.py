"""The tools `export_artifact`, `list_artifacts`, `batch_export_artifacts`, `import_file`, `import_files_batch`.

Exporting stores a copy of a file as the run's environment has it, built files included, in the user's state. Importing
stages a text: from the web by checked addresses, from an artifact, or from a file of the workspace; a binary one of
this machine goes into the private copy, for commands. Not here: where artifacts are kept
(`tools/artifacts/artifact_store.py`), connecting (`web/dialing.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from pydantic import Field, field_validator

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import AgentError, ErrorCode, FileRefused, PermissionDenied, ToolFailed
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Shell
from codeagent_lsp.tools.artifacts.artifact_store import FILE_BYTES, Artifact, ArtifactStore
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.edit_tools import existing_text, refuse_below_file
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.tools.web.urls import covers, on_usual_port, parse_url
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.encoding import decode, encode
from codeagent_lsp.workspace.text.position import split_lines

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.tools.web.scraping import Web

MAX_AT_ONCE = 50
EXPORT_SECONDS = 120.0
IMPORT_SECONDS = 120.0
COPY_SECONDS = 60.0

_PATH_VARIABLE = "CODEAGENT_EXPORT"
_COPY = (
    f'[ -f "${_PATH_VARIABLE}" ] && [ ! -L "${_PATH_VARIABLE}" ] || exit 44; '
    f'exec cp -- "${_PATH_VARIABLE}" "${REPORT_VARIABLE}/artifact"'
)
_PLACE = f'mkdir -p -- "$(dirname -- "${_PATH_VARIABLE}")" && exec cat > "${_PATH_VARIABLE}"'
_NO_FILE = 44
_FILE, _ARTIFACT = "file:", "artifact:"


class ExportParameters(Parameters):
    """Parameters of `export_artifact`: the file, and the name of its copy."""

    file_path: str = Field(min_length=1, max_length=4096, description="File, relative to the workspace")
    artifact_name: str | None = Field(None, min_length=1, max_length=200, description="Default: the file's own name")


class ExportArtifact(Tool[ExportParameters]):
    """The tool `export_artifact`: stores a copy of one file, as staged, open or built by commands, outside of the
    workspace.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "export_artifact",
        "Keep a copy of a file for the user as an artifact, as commands see it: also a binary or a built file.",
        "write",
        "artifacts",
        timeout=EXPORT_SECONDS,
        path_parameters=("file_path",),
    )
    parameters = ExportParameters
    example: ClassVar[Example] = {"file_path": "dist/shop-1.0.tar.gz", "artifact_name": "shop.tar.gz"}
    output = dict[str, Any]  # name, size, path, sha256

    async def run(self, arguments: ExportParameters, context: ToolContext) -> ToolOutput:
        """Store the copy; the data is its name, size in bytes, absolute path and SHA-256 in hexadecimal. FileRefused if
        there is no such file, ToolFailed if it is larger than 16 MiB or there is no room.
        """
        artifact, digest = await _export(arguments.file_path, arguments.artifact_name, context)
        data = _data(artifact) | {"sha256": digest}
        return ToolOutput(f"Exported {_artifact_line(artifact)}", data, artifacts=(data,))


class NoArguments(Parameters):
    """The parameters of a tool that takes none."""


class ListArtifacts(Tool[NoArguments]):
    """The tool `list_artifacts`: the artifacts of the session, without their contents."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "list_artifacts", "List the artifacts of this session: name, size, place.", "read", "artifacts"
    )
    parameters = NoArguments
    example: ClassVar[Example] = {}
    output = list[dict[str, Any]]  # name, size, path

    async def run(self, arguments: NoArguments, context: ToolContext) -> ToolOutput:
        """Return the artifacts sorted by name; the data has the name, size in bytes and absolute path of each. None is
        no error.
        """
        found = await asyncio.to_thread(_store(context).list)
        text = "\n".join(map(_artifact_line, found)) or "There are no artifacts."
        return ToolOutput(text, [_data(item) for item in found])


class BatchExportParameters(Parameters):
    """Parameters of `batch_export_artifacts`: up to 50 files, each exported under its own name: no two may have the
    same.
    """

    file_paths: list[str] = Field(min_length=1, max_length=MAX_AT_ONCE)

    @field_validator("file_paths")
    @classmethod
    def _different_names(cls, value: list[str]) -> list[str]:
        names = [os.path.basename(path) for path in value]  # noqa: PTH119 - may be a file: uri
        if len(set(names)) != len(names):
            raise ValueError("two files have the same name; export them one by one with an artifact_name")
        return value


class BatchExportArtifacts(Tool[BatchExportParameters]):
    """The tool `batch_export_artifacts`: exports up to 50 files; one that cannot be exported does not stop the
    others.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "batch_export_artifacts",
        "Keep copies of several files as artifacts, under their own names.",
        "write",
        "artifacts",
        timeout=2 * EXPORT_SECONDS,
        path_parameters=("file_paths",),
    )
    parameters = BatchExportParameters
    example: ClassVar[Example] = {"file_paths": ["dist/shop-1.0.tar.gz", "report.html"]}
    output = list[dict[str, Any]]  # name, size, path; or file_path, error

    async def run(self, arguments: BatchExportParameters, context: ToolContext) -> ToolOutput:
        """Return for each file what `export_artifact` does, or `file_path` and `error`, in their order. ToolFailed if
        none could be exported, with the code of the first.
        """
        lines, data = [], []
        codes = []
        for path in arguments.file_paths:
            try:
                artifact, digest = await _export(path, None, context)
                lines.append(f"Exported {_artifact_line(artifact)}")
                data.append(_data(artifact) | {"sha256": digest})
            except AgentError as error:
                lines.append(f"Not exported: {path}: {error}")
                data.append({"file_path": path, "error": str(error)})
                codes.append(error.code)
        if len(codes) == len(data):
            raise ToolFailed("\n".join(lines), codes[0])
        return ToolOutput("\n".join(lines), data, artifacts=tuple(item for item in data if "error" not in item))


class ImportParameters(Parameters):
    """Parameters of `import_file`: the source and the destination. A web address is normalised, so that what is
    approved is what is fetched.
    """

    source_url: str = Field(
        min_length=1, max_length=4096, description="https://…, artifact:NAME, or file:PATH in the workspace"
    )
    dest_path: str = Field(min_length=1, max_length=4096, description="File, relative to the workspace")

    @field_validator("source_url")
    @classmethod
    def _one_spelling(cls, value: str) -> str:
        return value if is_local(value) else parse_url(value).url


class ImportFile(Tool[ImportParameters]):
    """The tool `import_file`: stages a text from the web, an artifact or another file of the workspace; a binary from
    this machine is put into the private copy in which commands run.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "import_file",
        "Put a text file from the web, from an artifact or from another place of the workspace at dest_path. It is "
        "staged like an edit; a binary of this machine goes into the private copy of commands.",
        "net",
        "artifacts",
        timeout=IMPORT_SECONDS,
        path_parameters=("dest_path",),
        subject_parameter="source_url",
        errors=(
            ErrorCode.NOT_FOUND,
            ErrorCode.TIMEOUT,
            ErrorCode.NETWORK_ERROR,
        ),
    )
    parameters = ImportParameters
    example: ClassVar[Example] = {"source_url": "https://example.com/LICENSE.txt", "dest_path": "vendor/LICENSE.txt"}
    output = dict[str, Any]  # path, source_url, lines

    def __init__(self, web: Web | None = None) -> None:
        self._web = web

    def approves(self, arguments: ImportParameters, settings: Settings) -> bool:
        """Return whether the call needs no approval: the source is on this machine, or the user's settings allow its
        host. Nothing is fetched.
        """
        return _is_allowed(arguments.source_url, settings)

    async def run(self, arguments: ImportParameters, context: ToolContext) -> ToolOutput:
        """Fetch the source and stage it; the data is the path, the source and the number of lines. FileRefused or
        ToolFailed if it cannot be read or is no text, ToolRetry for a destination that cannot be written to,
        PermissionDenied for a file that usually holds secrets.
        """
        (staged,) = await _import_all([arguments], context, self._web)
        return staged


class BatchImportParameters(Parameters):
    """Parameters of `import_files_batch`: up to 50 imports, of which all are staged or none."""

    files: list[ImportParameters] = Field(min_length=1, max_length=MAX_AT_ONCE)


class ImportFilesBatch(Tool[BatchImportParameters]):
    """The tool `import_files_batch`: up to 50 imports as one staged step, which is undone as one."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "import_files_batch",
        "Import several text files at once, all or none; each has source_url and dest_path.",
        "net",
        "artifacts",
        timeout=2 * IMPORT_SECONDS,
        path_parameters=("files.dest_path",),
        subject_parameter="files.source_url",
        errors=(
            ErrorCode.NOT_FOUND,
            ErrorCode.TIMEOUT,
            ErrorCode.NETWORK_ERROR,
        ),
    )
    parameters = BatchImportParameters
    example: ClassVar[Example] = {"files": [{"source_url": "artifact:report.html", "dest_path": "docs/report.html"}]}
    output = list[dict[str, Any]]  # path, source_url, lines

    def __init__(self, web: Web | None = None) -> None:
        self._web = web

    def approves(self, arguments: BatchImportParameters, settings: Settings) -> bool:
        """Return whether the call needs no approval: each source is on this machine, or the user's settings allow its
        host.
        """
        return all(_is_allowed(item.source_url, settings) for item in arguments.files)

    async def run(self, arguments: BatchImportParameters, context: ToolContext) -> ToolOutput:
        """Fetch all sources, then stage them; errors as in `import_file`, and then no text is staged."""
        staged = await _import_all(arguments.files, context, self._web)
        return ToolOutput("\n".join(item.text for item in staged), [item.data for item in staged])


def is_local(source: str) -> bool:
    """Return whether a source is a file of the workspace (`file:PATH`) or an artifact (`artifact:NAME`), by its
    beginning alone.
    """
    return source.startswith((_FILE, _ARTIFACT))


async def _export(file_path: str, name: str | None, context: ToolContext) -> tuple[Artifact, str]:
    path = context.view.roots.resolve(file_path)
    store = _store(context)
    data = await _content(path, context)
    named = name or Path(path).name
    artifact = await asyncio.to_thread(store.put, named, data)
    return artifact, hashlib.sha256(data).hexdigest()


async def _content(path: str, context: ToolContext) -> bytes:
    """Return the bytes of a file: as staged or open, else as commands see it, else as on the disk."""
    view = context.view
    if path in view.over_disk():
        file = await asyncio.to_thread(view.read, path)
        return encode(file.text, file.encoding)
    if context.shell is not None and context.shell.isolation.level != "direct":
        return await _copy_of(path, context.shell, context)
    return await asyncio.to_thread(view.roots.read_bytes, path, FILE_BYTES)


async def _copy_of(path: str, shell: Shell, context: ToolContext) -> bytes:
    """Return the bytes of a file in the private view, which may be one that only commands made."""
    folder = context.view.roots.folders[0]
    command = Command(_COPY, folder, COPY_SECONDS, environment={_PATH_VARIABLE: path}, proposes=False)
    finished = (await shell.run(command)).finished
    name = context.view.roots.relative(path)
    if finished.exit_code == _NO_FILE:
        raise FileRefused(f"{name}: there is no such file.")
    data = finished.reports.get("artifact")
    if data is None:
        reason = finished.output.strip()[:200] or f"it may have more than {FILE_BYTES:,} bytes"
        raise ToolFailed(f"{name} was not exported: {reason}.")
    return data


async def _import_all(items: list[ImportParameters], context: ToolContext, web: Web | None) -> list[ToolOutput]:
    """Fetch all sources, then stage them as one step."""
    texts: dict[str, str] = {}
    binaries: dict[str, bytes] = {}
    known: list[FileText] = []
    told = []
    for item in items:
        path = context.view.roots.resolve(item.dest_path)
        data = await _fetch(item.source_url, context, web)
        if is_local(item.source_url) and _placeable(path, data, context):
            binaries[path] = data
            told.append(_place_in_view(item, context.view.roots.relative(path), data))
            continue
        text = _text(data, item.source_url)
        before = await asyncio.to_thread(existing_text, context, path, "dest_path")
        if before is None:
            refuse_below_file(context, path)
        else:
            known.append(before)
        texts[path] = text
        told.append(_stage(item, context.view.roots.relative(path), text, before))
    for path, data in binaries.items():
        await _place(path, data, context)
    if texts:
        context.staging.write(texts, known)
    return told


def _placeable(path: str, data: bytes, context: ToolContext) -> bool:
    """Return whether bytes are no text, and can be put into a private copy at a path that holds none."""
    if context.shell is None or context.shell.isolation.level == "direct" or path in context.view.over_disk():
        return False
    try:
        decode(data)
    except FileRefused:
        return True
    return False


async def _place(path: str, data: bytes, context: ToolContext) -> None:
    """Write bytes into the private copy. ToolFailed if that cannot be done."""
    assert context.shell is not None
    folder = context.view.roots.folders[0]
    command = Command(_PLACE, folder, COPY_SECONDS, environment={_PATH_VARIABLE: path}, proposes=False, stdin=data)
    finished = (await context.shell.run(command)).finished
    if finished.exit_code:
        reason = finished.output.strip()[:200]
        raise ToolFailed(f"{context.view.roots.relative(path)} was not imported: {reason}.")


def _place_in_view(item: ImportParameters, name: str, data: bytes) -> ToolOutput:
    line = (
        f"Put {name} ({len(data):,} bytes) from {item.source_url} into the private copy, where commands see it. It is "
        "binary, so it becomes no edit of the user's files."
    )
    return ToolOutput(line, {"path": name, "source_url": item.source_url, "bytes": len(data)})


async def _fetch(source: str, context: ToolContext, web: Web | None) -> bytes:
    if is_local(source):
        return await _of_this_machine(source, context)
    from codeagent_lsp.tools.web.scraping import Web as Network  # late: an HTTP client

    target = parse_url(source)
    if not on_usual_port(target) and not covers(context.settings.web.allowed_hosts, target):
        message = f"{target.authority} is not on a usual port; the user can add it to web.allowedHosts."
        raise ToolFailed(message, ErrorCode.PERMISSION_DENIED)
    page = await (web or Network.over(context.settings.network)).fetcher.get(target)
    if page.cut:
        raise ToolFailed(f"{source} is larger than what can be imported.", ErrorCode.INVALID_PARAM)
    return page.body


async def _of_this_machine(source: str, context: ToolContext) -> bytes:
    """Return the current bytes of a file of the workspace, or of an artifact."""
    if source.startswith(_ARTIFACT):
        return await asyncio.to_thread(_store(context).read, source.removeprefix(_ARTIFACT))
    path = uris.to_path(source) or unquote(source.removeprefix(_FILE))
    store = context.get(ArtifactStore)
    if store is not None and (name := store.named(path)):
        return await asyncio.to_thread(store.read, name)
    real = context.view.roots.resolve(path)
    if context.view.roots.is_secret(real):
        raise PermissionDenied("This file usually holds secrets, so it is not imported.")
    return await _content(real, context)


def _stage(item: ImportParameters, name: str, text: str, before: FileText | None) -> ToolOutput:
    count = len(split_lines(text))
    line = f"{'Created' if before is None else 'Replaced'} {name} ({count} lines) from {item.source_url}."
    return ToolOutput(line, {"path": name, "source_url": item.source_url, "lines": count})


def _text(data: bytes, source: str) -> str:
    try:
        return decode(data).text
    except FileRefused as error:
        raise ToolFailed(f"{source}: {error} Only text can be staged.", ErrorCode.INVALID_PARAM) from None


def _is_allowed(source: str, settings: Settings) -> bool:
    return is_local(source) or covers(settings.web.allowed_hosts, parse_url(source))


def _store(context: ToolContext) -> ArtifactStore:
    return context.need(ArtifactStore, "Artifacts are not kept here.")


def _artifact_line(artifact: Artifact) -> str:
    return f"{artifact.name} ({artifact.size:,} bytes): {artifact.path}"


def _data(artifact: Artifact) -> dict[str, Any]:
    return {"name": artifact.name, "size": artifact.size, "path": artifact.path}
