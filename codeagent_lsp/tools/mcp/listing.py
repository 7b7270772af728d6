"""The tools listed by an MCP server, as values, and their descriptions when they were first seen.

A description that has changed needs a new approval. Those that were seen are stored in one file in the workspace's
state folder, which also lets tools be offered before their server runs. A tool that was never seen is pinned as it is:
its calls ask anyway. Not here: what becomes of the tools here (`adapter.py`), asking (`tools/executor.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codeagent_lsp.state import read_json, replace_text
from codeagent_lsp.tools.mcp.settings import ServerSettings

MAX_TOOLS = 128
MAX_NAME = 128
"""Most characters of a tool's name as its server lists it, as MCP recommends since 2025-11."""

MAX_PINS = 2 * MAX_TOOLS
"""Most tools of one server that are pinned. Who lists more under ever new names is asked about at each of them: else it
could make the file too large to be read, and with it the pins of all servers would be gone.
"""
MAX_FILE = 16 << 20
MAX_SERVER = 512 << 10
"""Most characters of one server's stored listing; of a longer one, only the pins are stored."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server lists it; `schema` and `output` are its unchanged JSON Schemas. `reads` is the server's hint
    that it only reads (`readOnlyHint`), which says nothing unless the server can be believed.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    reads: bool = False

    @property
    def pin(self) -> str:
        """The SHA-256 hash, in hexadecimal, of what model and user decide by: name, description, parameters."""
        told = json.dumps([self.name, self.description, self.schema], sort_keys=True, ensure_ascii=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as plain JSON data, an object with the fields of this class, from which `remote_tool` makes
        it again.
        """
        return asdict(self)


def remote_tool(row: Any) -> RemoteTool | None:
    """Return the tool from the result of `to_dict`; None if it is malformed."""
    if not isinstance(row, Mapping):
        return None
    name, description, schema, output = (row.get(key) for key in ("name", "description", "schema", "output"))
    if not (isinstance(name, str) and isinstance(description, str) and isinstance(schema, Mapping)):
        return None
    output = output if isinstance(output, Mapping) else None
    return RemoteTool(name, description, schema, output, row.get("reads") is True)


@dataclass(slots=True)
class _Known:
    identity: str
    pins: dict[str, str] = field(default_factory=dict)
    tools: tuple[RemoteTool, ...] = ()
    approved: dict[str, RemoteTool] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether no tool is pinned at first sight any more."""
        return len(self.pins) >= MAX_PINS

    def to_dict(self, *, listings: bool = True) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "pins": self.pins,
            "tools": _rows(self.tools) if listings else [],
            "approved": _rows(self.approved.values()) if listings else [],
        }


class Pins:
    """The approved descriptions (pins) of the tools of all servers, in one file. An unreadable file counts as empty; if
    it cannot be written, pins live in memory only.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._servers: dict[str, _Known] | None = None

    def listed(self, server: ServerSettings) -> tuple[RemoteTool, ...]:
        """Return the tools that this server listed last time, also by an earlier process; () if it never did."""
        return self._of(server).tools

    def keep(self, server: ServerSettings, tools: Iterable[RemoteTool]) -> None:
        """Store the tools that the server lists now in the file, and pin those that are seen for the first time, up to
        256 of a server. Blocks; if the file cannot be written, they are kept in memory.
        """
        known = self._of(server)
        for tool in known.tools:  # as they were until now
            self._remember(known, tool)
        known.tools = tuple(tools)
        for tool in known.tools:
            if not known.full:
                known.pins.setdefault(tool.name, tool.pin)
            self._remember(known, tool)
        self._write()

    def changed(self, server: ServerSettings, tool: RemoteTool) -> bool:
        """Return whether a tool differs from its pin, or has none because the server has too many. One of our own
        server differs when this program was updated.
        """
        known = self._of(server)
        return not server.own and known.pins.get(tool.name, "" if known.full else tool.pin) != tool.pin

    def approved(self, server: ServerSettings, tool: RemoteTool) -> RemoteTool | None:
        """Return the tool as it was when it was pinned; None if its text is not known any more."""
        return self._of(server).approved.get(tool.name)

    def accept(self, server: ServerSettings, tool: RemoteTool) -> None:
        """Pin a tool as it is now, after the user approved it, and write the file. Blocks."""
        known = self._of(server)
        if known.pins.get(tool.name) != tool.pin:
            known.pins[tool.name] = tool.pin
            known.approved[tool.name] = tool
            self._write()

    def _text(self, *, listings: bool = True) -> str:
        known = {name: each.to_dict(listings=listings) for name, each in (self._servers or {}).items()}
        return json.dumps(known, default=str)

    @staticmethod
    def _remember(known: _Known, tool: RemoteTool) -> None:
        if known.pins.get(tool.name) == tool.pin and len(known.approved) < MAX_TOOLS:
            known.approved[tool.name] = tool

    def _of(self, server: ServerSettings) -> _Known:
        """Return the record of a server; a new one if the name now means another server."""
        if self._servers is None:
            self._servers = _read(self._file)
        known = self._servers.get(server.name)
        if known is None or known.identity != server.identity:
            # With no pins of the server that had the name before: they say nothing of this one.
            known = self._servers[server.name] = _Known(server.identity)
        return known

    def _write(self) -> None:
        text = self._text()
        if len(text) > MAX_FILE:  # the pins have to be read again, the listings are known once the servers run
            text = self._text(listings=False)
        try:
            replace_text(self._file, text)
        except OSError:  # what is known holds as long as this process
            pass


def _read(path: Path) -> dict[str, _Known]:
    return {name: known for name, row in read_json(path, MAX_FILE).items() if (known := _known_row(row))}


def _rows(tools: Iterable[RemoteTool]) -> list[dict[str, Any]]:
    rows = [tool.to_dict() for tool in tools]
    return rows if len(json.dumps(rows, default=str)) <= MAX_SERVER else []


def _known_row(row: Any) -> _Known | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("identity"), str):
        return None
    pins, tools = row.get("pins"), row.get("tools")
    if not isinstance(pins, Mapping) or not isinstance(tools, list):
        return None
    before = row.get("approved")
    approved = {tool.name: tool for tool in _tools_in(before if isinstance(before, list) else [])}
    return _Known(row["identity"], {str(name): str(pin) for name, pin in pins.items()}, _tools_in(tools), approved)


def _tools_in(rows: list[Any]) -> tuple[RemoteTool, ...]:
    return tuple(tool for item in rows[:MAX_TOOLS] if (tool := remote_tool(item)))
