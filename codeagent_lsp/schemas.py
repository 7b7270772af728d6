"""JSON Schemas of the settings and the events, for clients in other languages.

`codeagent-lsp schema` prints them. Not here: the facts themselves (`config.py`, `events/`).
"""

from __future__ import annotations

import json
import typing
from dataclasses import fields
from typing import Any, Literal

from pydantic import TypeAdapter

from codeagent_lsp import events, protocol
from codeagent_lsp.settings_layers import Setting, catalogue

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Subject = Literal["settings", "events"]


def schema_text(subject: Subject) -> str:
    """Return the JSON Schema (2020-12) of the subject, `settings` or `events`, as JSON indented by two blanks, as the
    command prints it.
    """
    schema = settings_schema() if subject == "settings" else events_schema()
    return json.dumps(schema, indent=2, ensure_ascii=False)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the section `codeagent`, nested by the dots of the keys, with descriptions,
    defaults and limits.
    """
    root = _object("Settings of codeagent-lsp.")
    for setting in catalogue():
        node = root
        *folders, leaf = setting.key.split(".")
        for name in folders:
            node = node["properties"].setdefault(name, _object(""))
        node["properties"][leaf] = _setting_schema(setting)
    section = {protocol.SECTION: root}
    return {"$schema": DIALECT, "title": "codeagent-lsp settings", "type": "object", "properties": section}


def events_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of all events that a client can receive, distinguished by `type`; internal
    events are left out.
    """
    shown = {name: cls for name, cls in events.EVENT_TYPES.items() if not cls.internal}
    definitions = {cls.__name__: _event_schema(cls) for cls in shown.values()}
    mapping = {name: f"#/$defs/{cls.__name__}" for name, cls in shown.items()}
    return {
        "$schema": DIALECT,
        "title": "codeagent-lsp events",
        "oneOf": [{"$ref": place} for place in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
        "$defs": definitions,
    }


def _object(description: str) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    return {"description": description, **node} if description else node


def _setting_schema(setting: Setting) -> dict[str, Any]:
    schema = {key: value for key, value in TypeAdapter(setting.type).json_schema().items() if key != "title"}
    low, high = setting.metadata["minimum"], setting.metadata["maximum"]
    bounds = {name: value for name, value in (("minimum", low), ("maximum", high)) if value is not None}
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    return {**schema, **bounds, "default": default, "description": setting.metadata["description"]}


def _event_schema(cls: type[events.Event]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    properties: dict[str, Any] = {"type": {"const": cls.type}}
    optional = set()
    for item in fields(cls):
        hint = hints[item.name]
        schema = TypeAdapter(hint).json_schema()
        properties[item.name] = {key: value for key, value in schema.items() if key != "title"}
        # `to_dict` leaves None out.
        if type(None) in typing.get_args(hint):
            optional.add(item.name)
    required = [name for name in properties if name not in optional]
    summary = " ".join((cls.__doc__ or "").split())
    return {"type": "object", "description": summary, "properties": properties, "required": required}
