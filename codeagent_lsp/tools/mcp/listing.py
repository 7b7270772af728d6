"""The tools listed by an MCP server, as values. Not here: what becomes of them here (`adapter.py`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MAX_TOOLS = 128


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
        """Return the SHA-256 hash of what model and user decide by: name, description, parameters."""
        told = json.dumps([self.name, self.description, self.schema], sort_keys=True, ensure_ascii=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as a JSON-like object."""
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
