"""JSON Schema reduced to the `Schema` of the Gemini API, a subset of OpenAPI 3.0, which refuses any other keyword.

`parameters` is used and not the newer `parametersJsonSchema`: every version of the API takes it, and both refuse much.
Not here: checking the arguments that come back (`calls/schema.py`), which still know the whole schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.llm.wire import wire_name
from codeagent_lsp.messages import ToolSpec

Schema = dict[str, Any]

_DEPTH = 12
_ANYTHING = {"type": "string", "description": "Any value, as JSON."}
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_KEPT = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_FORMATS = {"string": ("date-time",), "number": ("float", "double"), "integer": ("int32", "int64")}


def declaration(tool: ToolSpec) -> Schema:
    """Return the declaration of a tool; one without parameters has none, as an object must have properties."""
    named = {"name": wire_name(tool["name"]), "description": tool["description"]}
    if not tool["parameters"].get("properties"):
        return named
    return {**named, "parameters": reduced(tool["parameters"])}


def reduced(schema: Mapping[str, Any]) -> Schema:
    """Return a schema with references resolved and without what the API does not know."""
    return _reduced(schema, {**schema.get("definitions", {}), **schema.get("$defs", {})}, ())


def _reduced(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
    """Return one schema; `inside` are the properties and references that lead to it."""
    if not isinstance(schema, Mapping) or len(inside) > _DEPTH:  # `true` allows anything
        return dict(_ANYTHING)
    if isinstance(name := schema.get("$ref"), str):
        target = definitions.get(name.rpartition("/")[2])
        if name in inside or not isinstance(target, Mapping):  # a recursion has to end somewhere
            return dict(_ANYTHING)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _reduced({**target, **rest}, definitions, (*inside, name))
    schema = _joined(schema)
    options = _options(schema)
    real = [_reduced(option, definitions, (*inside, "")) for option in options if not _is_null(option)]
    nullable = len(real) < len(options) or schema.get("nullable") is True
    if not real:
        return _noted(_typed(schema, definitions, inside), schema, nullable=nullable)
    noted = [_noted(option, schema, nullable=nullable) for option in real]
    return noted[0] if len(noted) == 1 else {"anyOf": noted}  # nothing may stand beside it


def _noted(made: Schema, schema: Mapping[str, Any], *, nullable: bool) -> Schema:
    """Return a reduced schema with the description of the whole before its own."""
    said = dict.fromkeys(filter(None, (schema.get("description"), made.get("description"))))
    described = {"description": " ".join(said)} if said else {}
    return {**made, **described, **({"nullable": True} if nullable else {})}


def _joined(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with `allOf` laid together; of what several say, the last wins."""
    parts = [part for part in schema.get("allOf") or () if isinstance(part, Mapping)]
    joined: Schema = {}
    for part in parts:
        both = {**joined.get("properties", {}), **part.get("properties", {})}
        joined |= {**part, **({"properties": both} if both else {})}
    return {**joined, **{key: value for key, value in schema.items() if key != "allOf"}}


def _options(schema: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives of `anyOf`, `oneOf` and a list of types; none where there is only one."""
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return list(schema[key])
    if isinstance(stated := schema.get("type"), list):
        rest = {key: value for key, value in schema.items() if key != "description"}
        return [{**rest, "type": name} for name in stated]
    return []


def _is_null(option: Any) -> bool:
    return isinstance(option, Mapping) and (option.get("type") == "null" or option.get("enum") == [None])


def _typed(schema: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    kind = _kind(schema, allowed)
    made: Schema = {"type": kind}
    if schema.get("format") in _FORMATS.get(kind, ()):
        made["format"] = schema["format"]
    if isinstance(allowed, list):
        made |= _enum(kind, [value for value in allowed if value is not None])
    made |= {key: schema[key] for key in _KEPT.get(kind, ()) if key in schema}
    if kind == "array":
        made["items"] = _reduced(schema.get("items"), definitions, (*inside, ""))
    if kind == "object":
        return _object(schema, made, definitions, inside)
    return made


def _kind(schema: Mapping[str, Any], allowed: Any) -> str:
    if schema.get("type") in _TYPES:
        return str(schema["type"])
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    first = allowed[0] if isinstance(allowed, list) and allowed else ""
    return next((name for name, kind in (("boolean", bool), ("integer", int)) if type(first) is kind), "string")


def _enum(kind: str, allowed: list[Any]) -> Schema:
    """Return the allowed values: an enum only of texts that are not empty, of others in words."""
    texts = [value for value in allowed if isinstance(value, str) and value]
    if kind == "string" and texts:
        return {"enum": texts}
    words = ", ".join(json.dumps(value) for value in allowed)
    return {"description": f"One of {words}."} if words else {}


def _object(schema: Mapping[str, Any], made: Schema, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
    """Return an object; one whose keys are free cannot be described, so it is asked for as JSON text."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return {"type": "string", "description": "A JSON object, as text."}
    made["properties"] = {name: _reduced(value, definitions, (*inside, "")) for name, value in properties.items()}
    required = [name for name in schema.get("required") or () if name in properties]
    return {**made, "required": required} if required else made
