"""Reduction of an untrusted JSON Schema for the model: small, without references or invisible characters. Pure
functions.

Foreign schemas are never evaluated: their patterns and references could take unbounded time. Not here: fitting a call's
arguments as far as that is safe (`llm/calls/schema.py`); the server decides about them in the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.workspace.text.visible import one_line

MAX_SCHEMA = 6000
"""Most characters of a schema, as JSON, that a model gets."""
WORDS = 400
SHORT_WORDS = 80
DEPTH = 8
NODES = 2000

_DROPPED = frozenset(("$schema", "$id", "$defs", "definitions", "title", "examples", "$comment", "pattern"))
_NAMED = ("properties", "patternProperties")
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "object": Mapping,
    "array": (list, tuple),
    "null": type(None),
}


def bounded_schema(schema: Mapping[str, Any], limit: int = MAX_SCHEMA) -> dict[str, Any]:
    """Return the schema of an object within `limit` characters: long texts go first, then all
    texts, then deep levels.
    """
    for words, depth in ((WORDS, DEPTH), (SHORT_WORDS, DEPTH), (0, DEPTH), (0, 4), (0, 2)):
        told = _as_object(_Cleaner(schema, words).clean(schema, depth))
        if len(json.dumps(told, default=str)) <= limit:
            return told
    required = _names(schema.get("required"))
    return {"type": "object", "properties": {name: {} for name in required}, "required": required}


def misfit(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return a clear fault of arguments, '' if there is none: a missing or unknown one, or one of another type."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    if missing := [name for name in _names(schema.get("required")) if name not in arguments]:
        return f"missing: {', '.join(missing[:5])}"
    for name, value in arguments.items():
        stated = properties.get(name)
        if stated is None and schema.get("additionalProperties") is False:
            return f"{name}: there is no such parameter; known: {', '.join(list(properties)[:20]) or 'none'}"
        if isinstance(stated, Mapping) and not _has_type(value, stated.get("type")):
            return f"{name}: should be {stated['type']}"
    return ""


class _Cleaner:
    """Copies a schema without the parts that a model does not need, with internal references resolved."""

    def __init__(self, root: Mapping[str, Any], words: int) -> None:
        self._root = root
        self._words = words
        self._nodes = 0

    def clean(self, node: Any, depth: int) -> Any:
        """Return a copy of a schema, or of a value in one; {} beyond `depth` or the limit of nodes."""
        self._nodes += 1
        if depth <= 0 or self._nodes > NODES:
            return {}
        if isinstance(node, list):
            return [self.clean(item, depth) for item in node[:100]]
        if not isinstance(node, Mapping):
            return one_line(node, WORDS) if isinstance(node, str) and len(node) > WORDS else node
        if isinstance(node.get("$ref"), str):
            return self.clean(self._resolved(node["$ref"]), depth - 1)
        return {key: value for key, item in node.items() if (value := self._member(key, item, depth)) is not None}

    def _member(self, key: str, value: Any, depth: int) -> Any:
        if key in _DROPPED:
            return None
        if key == "description" and isinstance(value, str):
            return one_line(value, self._words) if self._words else None
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self.clean(item, depth - 1) for name, item in list(value.items())[:200]}
        return self.clean(value, depth - 1 if isinstance(value, Mapping | list) else depth)

    def _resolved(self, reference: str) -> Any:
        """Return the target of a reference within the document; {} for any other."""
        if not reference.startswith("#"):
            return {}
        node: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                name = part.replace("~1", "/").replace("~0", "~")
                node = node.get(name, {}) if isinstance(node, Mapping) else {}
        return {} if isinstance(node, Mapping) and "$ref" in node else node


def _as_object(schema: Any) -> dict[str, Any]:
    told = dict(schema) if isinstance(schema, Mapping) else {}
    told["type"] = "object"
    if not isinstance(told.get("properties"), Mapping):
        told["properties"] = {}
    if not isinstance(told.get("required", []), list):
        del told["required"]
    return told


def _names(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _has_type(value: Any, stated: Any) -> bool:
    if isinstance(stated, list):
        return any(_has_type(value, item) for item in stated)
    if stated in ("integer", "number"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (stated == "number" or float(value).is_integer())
    kind = _TYPES.get(stated) if isinstance(stated, str) else None
    return kind is None or isinstance(value, kind)
