"""Coercion of a call's arguments to its tool's JSON Schema, as far as it is lossless, with precise complaints.

A small subset on purpose: type, properties, required, enum, const, items, anyOf. Unknown arguments stay, and
the tool passes them over. Type names of other dialects (`dict`, `float`, `tuple`, `any`) are understood. Not here: the
tools' own checks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.llm.calls import jsontext

_ALIASES = {
    "dict": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "list": "array",
    "str": "string",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
}
# Arguments of a model and schemas of MCP servers may nest without end.
_DEPTH = 12
_HALF = re.compile("[\ud800-\udfff]")  # of a pair that stands for one character in UTF-16


class Misfit(ValueError):
    """Raised for a value that does not fit the schema; the message, in English for the model, names the path of the
    value and what is allowed there.
    """


def fit(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments, coerced to the JSON Schema `parameters` as far as that loses nothing (`"5"` to 5);
    arguments that it does not name stay. Misfit if a required one is missing or one cannot be coerced.
    """
    return dict(_object(dict(arguments), parameters, "", 0))


def from_text(values: Mapping[str, str], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments from a dialect that writes all values as text: they stay text if the schema `parameters` allows
    it, else they are parsed as JSON, and stay text if they are none.
    """
    properties = parameters.get("properties") or {}
    return {key: _read(value, properties.get(key) or {}) for key, value in values.items()}


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the JSON types that a schema allows, those of its alternatives (`anyOf` and the like)
    included; () when it allows any.
    """
    stated = schema.get("type")
    names = stated if isinstance(stated, list | tuple) else [stated] if isinstance(stated, str) else []
    for option in _options(schema):
        inner = types_of(option)
        if not inner:
            return ()
        names = [*names, *inner]
    known = [_plain_name(str(name)) for name in names]
    return () if "any" in known else tuple(dict.fromkeys(known))


def _plain_name(name: str) -> str:
    """Return JSON's name for a type written in another notation: `List[int]`, `str, optional`, `float`."""
    head = re.split(r"[,\[ ]", name.strip().lower())[0]
    return _ALIASES.get(head, head)


def _read(value: str, schema: Mapping[str, Any]) -> Any:
    types = types_of(schema)
    # Text stays text: `001` or `true` in a file's content is not to be read.
    if types == ("string",):
        return value
    try:
        parsed = jsontext.loads(value.strip())
    except ValueError:
        return value
    # Both allowed: it is parsed only where that gives one of the other types.
    if "string" in types and not matches(parsed, tuple(name for name in types if name != "string")):
        return value
    return parsed


def _fit(value: Any, schema: Mapping[str, Any], place: str, depth: int) -> Any:
    if depth > _DEPTH or not isinstance(schema, Mapping):
        return value
    types = types_of(schema)
    if types and not matches(value, types):
        value = _coerce(value, types, schema, place)
    value = _enum(float(value) if isinstance(value, jsontext.WrittenNumber) else value, schema, place)
    if isinstance(value, str) and _HALF.search(value):
        raise Misfit(f"{place or 'the arguments'} has half of a character (\\ud800 to \\udfff), which no file can hold")
    if isinstance(value, dict):
        return _object(value, schema, place, depth)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_fit(item, schema["items"], f"{place}[{n}]", depth + 1) for n, item in enumerate(value)]
    return value


def _object(value: dict[str, Any], schema: Mapping[str, Any], place: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    missing = [name for name in required if name not in value]
    if missing:
        raise Misfit(f"{place} needs {', '.join(repr(name) for name in missing)}".lstrip())
    fitted = {}
    for name, item in value.items():
        inner = properties.get(name)
        here = f"{place}.{name}" if place else str(name)
        if name not in required and isinstance(inner, Mapping) and _says_nothing(item, inner):
            continue
        fitted[name] = _fit(item, inner, here, depth + 1) if isinstance(inner, Mapping) else item
    return fitted


def _says_nothing(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether an optional argument is null or an empty text although the schema has no such value: some models
    fill in every parameter.
    """
    types = types_of(schema)
    if value is None:
        return bool(types) and "null" not in types
    choices = schema.get("enum")
    chosen = isinstance(choices, list) and "" not in choices
    return value == "" and (chosen or (bool(types) and "string" not in types))


def matches(value: Any, types: tuple[str, ...]) -> bool:
    """Return whether `value` has one of the JSON types: a bool is no number, and a type with an unknown name is that of
    any value.
    """
    kinds: dict[str, Any] = {
        "string": str,
        "object": dict,
        "array": list,
        "boolean": bool,
        "null": type(None),
    }
    for name in types:
        # In Python a bool is an int, in JSON it is not.
        if name == "integer" and isinstance(value, int) and not isinstance(value, bool):
            return True
        if name == "number" and isinstance(value, int | float) and not isinstance(value, bool):
            return True
        if name in kinds and isinstance(value, kinds[name]):
            return True
        if name not in kinds and name not in ("integer", "number"):
            return True  # an unknown type allows everything
    return False


def _coerce(value: Any, types: tuple[str, ...], schema: Mapping[str, Any], place: str) -> Any:
    """Return `value` as one of `types` without loss. Raises Misfit when there is no such conversion."""
    for name in types:
        try:
            result = _as_type(value, name, schema)
        except (ValueError, OverflowError):
            continue
        if result is not None:
            return result
    raise Misfit(f"{place or 'the arguments'} must be {' or '.join(types)}, not {_kind(value)}")


def _as_type(value: Any, name: str, schema: Mapping[str, Any]) -> Any:
    match name, value:
        case "string", bool():
            return "true" if value else "false"
        case "string", jsontext.WrittenNumber():
            return value.written
        # No text says NaN or Infinity, which JSON does not have either.
        case "string", int() | float() if math.isfinite(value):
            return str(value)
        # A model that was to give JSON as text and gave the JSON.
        case "string", dict() | list():
            return json.dumps(value, ensure_ascii=False, indent=2)
        case "integer", str() | float() if float(value) == int(float(value)):
            return int(value) if isinstance(value, str) and "." not in value else int(float(value))
        case "number", str():
            return float(value) if not value.strip().lstrip("-").isdigit() else int(value)
        case "boolean", str() if value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        case "array" | "object", str() if value.strip()[:1] in ("[", "{"):
            parsed = jsontext.loads(value)
            return parsed if matches(parsed, (name,)) else None
        # One item in place of a list of one, but only where the item's type is known to fit.
        case "array", str() | int() | float() | dict():
            inner = schema.get("items")
            allowed = types_of(inner) if isinstance(inner, Mapping) else ()
            return [value] if allowed and matches(value, allowed) else None
    return None


def _enum(value: Any, schema: Mapping[str, Any], place: str) -> Any:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(allowed, list) or value in allowed:
        return value
    for option in allowed:
        if isinstance(option, str) and isinstance(value, str) and option.lower() == value.strip().lower():
            return option
    raise Misfit(f"{place} must be one of {', '.join(json.dumps(option) for option in allowed)}")


def _options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    options = schema.get("anyOf") or schema.get("oneOf") or []
    return [option for option in options if isinstance(option, Mapping)]


def _kind(value: Any) -> str:
    return {str: "text", bool: "boolean", dict: "an object", list: "an array"}.get(type(value), "a number")
