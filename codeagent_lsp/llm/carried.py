"""What a provider wants back with an assistant message, byte for byte: signed thinking, encrypted reasoning.

Kept in the message as JSON text, with the provider and model that wrote it; nobody else can read it. It holds no
secrets, as models only read what is masked. Not here: what the values mean (`providers/`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from codeagent_lsp.llm.model import ModelInfo

LIMIT = 4 * 1024 * 1024
"""Most characters that are kept for one message; more is left out as a whole."""


def pack(info: ModelInfo, items: Sequence[Any]) -> str:
    """Return `items` (JSON values), with the model that wrote them, as text for `Message.carried`; '' if there are none
    or the text is longer than LIMIT characters.
    """
    if not items:
        return ""
    text = json.dumps({"by": _origin(info), "items": list(items)}, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= LIMIT else ""


def unpack(info: ModelInfo, carried: str) -> list[Any]:
    """Return the items that the same model of the same provider gave; none from any other, or if damaged."""
    if not carried:
        return []
    try:
        value = json.loads(carried)
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, dict) or value.get("by") != _origin(info) or not isinstance(value.get("items"), list):
        return []
    items: list[Any] = value["items"]
    return items


def _origin(info: ModelInfo) -> str:
    return f"{info.provider} {info.name}"
