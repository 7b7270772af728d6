"""The JSON-RPC messages that the server sends, and their bytes. Pure functions.

Not here: messages of the client (`envelope.py`), the header before the bytes (`outgoing.py`).
"""

from __future__ import annotations

import json
from typing import Any

from codeagent_lsp.server.wire.envelope import MessageId


def message(**members: Any) -> dict[str, Any]:
    """Return a message with those members that are not None."""
    return {"jsonrpc": "2.0", **{name: value for name, value in members.items() if value is not None}}


def result(identity: MessageId, value: Any) -> dict[str, Any]:
    """Return the answer to a request; a result of None is sent as `null`."""
    return {"jsonrpc": "2.0", "id": identity, "result": value}


def error(identity: MessageId | None, code: int, reason: str) -> dict[str, Any]:
    """Return the refusal of a request; an unknown id is sent as `null`."""
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": reason}}


def encode(message: Any) -> bytes:
    """Encode a message as JSON in ASCII, so that lone surrogates do no harm; ValueError for NaN."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    """Return the JSON form of values that the LSP converter does not know, such as models with aliases."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return dump(mode="json", by_alias=True)
