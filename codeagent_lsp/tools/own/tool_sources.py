"""Finds where users' own tools are: files in the user's and the workspace's folders, entry points of packages.

Finding runs no code of theirs. Not here: asking for trust and running them (`own_servers.py`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.skills.trust import WorkspaceItem
from codeagent_lsp.workspace.files.paths import Roots

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "codeagent_lsp.tools"
USER_FOLDER = "tools"
PROJECT_FOLDERS = (".codeagent", "tools")
MAX_BYTES = 1 << 20
MAX_SOURCES = 50

SourcePlace = Literal["user", "project", "package"]

_PACKAGE = Path(__file__).resolve().parents[3]
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); import codeagent_lsp.tools.own.worker as worker; worker.main(sys.argv)"
)


class OwnSettings(ServerSettings):
    """The settings by which a source of own tools is started as if it were an MCP server."""

    __slots__ = ()

    @property
    def group(self) -> str:
        """The group of all own tools, `own`."""
        return "own"

    @property
    def origin(self) -> str:
        """The words that say where the tool is from, for its description."""
        return f"tool of the user's own, {Path(self.name).name}"


@dataclass(frozen=True, slots=True)
class ToolSource:
    """One file, or one entry point of a package. `name` is the path, or the package with its version; `digest` changes
    with the content; `code` is what the user is shown; `entry` is name and value of the entry point.
    """

    place: SourcePlace
    name: str
    digest: str
    code: str
    entry: tuple[str, ...] = ()

    @property
    def approval(self) -> str:
        """The SHA-256 hash, in hexadecimal, of what the user trusts: this content in this place."""
        return hashlib.sha256(f"{self.name}\n{self.digest}".encode("utf-8", "surrogatepass")).hexdigest()

    def settings(self, seconds: float) -> OwnSettings:
        """Return how its worker is started, with `seconds` as the limit of a call; no folder of the workspace is on the
        path of its modules.
        """
        arguments = ("-P", "-X", "utf8", "-c", _PROGRAM, str(_PACKAGE), self.place, self.name, self.digest)
        return OwnSettings(self.name, "stdio", sys.executable, (*arguments, *self.entry), seconds=seconds)


def find_sources(own: Path, folders: Sequence[str]) -> tuple[tuple[ToolSource, ...], tuple[McpProblem, ...]]:
    """Return the sources, the user's first and at most 50, and the problems of those that cannot be read. Blocks."""
    found: list[ToolSource] = []
    problems: list[McpProblem] = []
    # the user's first: they are kept when a workspace brings more than MAX_SOURCES
    files = [("user", path) for path in _files(own / USER_FOLDER)]
    files += [("project", path) for folder in folders for path in _project_files(Path(folder))]
    for place, path in files:
        try:
            found.append(_of_file("user" if place == "user" else "project", path))
        except McpProblem as problem:
            problems.append(problem)
    found += _of_packages()
    return tuple(found[:MAX_SOURCES]), tuple(problems)


def tool_items(roots: Roots) -> Iterator[WorkspaceItem]:
    """Yield the files of the workspace, at most 50, that can be read and may define tools, trusted or not, as items for
    the question whether they are trusted. Blocks.
    """
    for path in islice((path for folder in roots.folders for path in _project_files(Path(folder))), MAX_SOURCES):
        with suppress(McpProblem):
            source = _of_file("project", path)
            yield WorkspaceItem("tools", path.name, roots.relative(str(path)), source.approval, detail=source.code)


def _of_file(place: SourcePlace, path: Path) -> ToolSource:
    """Return a file as a source. McpProblem if it cannot be one."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise McpProblem("own.failed", name=path, reason=error.strerror or type(error).__name__) from error
    if len(data) > MAX_BYTES:
        raise McpProblem("own.failed", name=path, reason=f"> {MAX_BYTES >> 20} MiB")
    return ToolSource(place, str(path), hashlib.sha256(data).hexdigest(), data.decode("utf-8", "replace"))


def _of_packages() -> Iterator[ToolSource]:
    for entry in _entries(tuple((place, _last_written(place)) for place in sys.path)):
        name = package_of(entry)
        told = f"{entry.name} = {entry.value}"
        digest = hashlib.sha256(told.encode()).hexdigest()
        yield ToolSource("package", f"{name}: {entry.name}", digest, told, (entry.name, entry.value))


def _last_written(folder: str) -> int:
    """Return when something was put into a folder or taken out of it last, in nanoseconds; 0 where there is none."""
    try:
        return Path(folder or ".").stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=1)  # it reads a file of each installed package, and each run asks
def _entries(folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of the packages in these folders, as long as nothing is installed or removed."""
    from importlib.metadata import entry_points  # late: with what it needs, more than a megabyte of an idle server

    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)))


def package_of(entry: EntryPoint) -> str:
    """Return the name and version of the package that an entry point belongs to, such as `tools 1.2`; `?` if it is not
    known.
    """
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "?"


def _project_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a workspace; nothing behind a link, which could lead anywhere."""
    for part in PROJECT_FOLDERS:
        # each level is looked at, as any of them may be the link
        folder /= part
        if folder.is_symlink():
            return
    yield from (path for path in _files(folder) if not path.is_symlink())


def _files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.glob("*.py"))[: 4 * MAX_SOURCES]
        return [path for path in paths if _is_offered(path.name) and path.is_file()]
    except OSError:
        return []


def _is_offered(name: str) -> bool:
    """Return whether a name is not a private one, and can be shown in a question as it is."""
    return not name.startswith((".", "_")) and name.isprintable()
