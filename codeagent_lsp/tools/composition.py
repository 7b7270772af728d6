"""Transformation of one tool's output into arguments for another: extract, filter, aggregate, map. Pure functions.

Not here: running the tools (`orchestration/orchestration_tools.py`), who may run (`executor.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.workspace.text.numbers import whole_number

# `items[0].name`, `[*].path`.
_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\*)\]")
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_ALIKE = {("integer", "number")}
_OF_LISTS: Mapping[str | int, Callable[[list[Any]], Any]] = {
    "results": list,
    "answers": list,
    "matches": list,
    "files": list,
    "count": len,
}


class Filter(BaseModel):
    """Keeps the items of a list whose `field` (a path; the item itself when empty) compares with `value` by `op`;
    `has` wants every field in `value`, each at a path, with that value.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)
    field: str = ""
    op: Literal["eq", "ne", "lt", "le", "gt", "ge", "contains", "has"] = "eq"
    value: Any


class Aggregate(BaseModel):
    """Reduces a list to one value: the count, sum, first or last of a field of its items, or of the items
    themselves.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)
    function: Literal["count", "sum", "first", "last"]
    field: str = ""


class Transformation(BaseModel):
    """The steps applied to an output, in the order of these fields. A path looks like `items[0].name` or `[*].path`.

    In a path, a list is also its own `results`, `answers`, `matches` and `files`, and has a `count`.
    `field_mapping` maps each parameter of the next tool to a path in the value; '' means the whole value. The other way
    round is understood too, if all values and not all keys are parameters.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)
    extract_path: str = Field(default="", description="items[0].name, [*].path, $text")
    filter: Filter | None = None
    aggregate: Aggregate | None = None
    field_mapping: dict[str, str] = Field(default_factory=dict)


def transform(value: Any, transformation: Transformation) -> Any:
    """Return the JSON-like value after extraction, filter and aggregation, in this order. ToolRetry if a step does not
    fit the value.
    """
    value = at(value, transformation.extract_path)
    if transformation.filter is not None:
        value = [item for item in _list(value, "filter") if _keeps(transformation.filter, item)]
    if transformation.aggregate is not None:
        value = _aggregate(transformation.aggregate, _list(value, "aggregate"))
    return value


def arguments_for(
    value: Any, schema: Mapping[str, Any], transformation: Transformation, given: Iterable[str] = ()
) -> dict[str, Any]:
    """Return arguments for a tool with the JSON Schema `schema` from a transformed value.

    With a `field_mapping`, exactly the mapped parameters; else an object fills the parameters of its own keys, a list
    of objects those for which they all have the same value, and any other value the first parameter that is not in
    `given`. ToolRetry for a mapping to unknown parameters, and for objects that say different things.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    if transformation.field_mapping:
        mapping = _by_parameter(transformation.field_mapping, properties)
        unknown = sorted(set(mapping) - set(properties))
        if unknown:
            raise ToolRetry(
                f"field_mapping names no parameters: {', '.join(unknown)}. There are: {_names(properties)}."
            )
        pairs = {name: _own(at(value, path), name, properties[name]) for name, path in mapping.items()}
    elif isinstance(value, Mapping) and set(value) & set(properties):
        pairs = {name: value[name] for name in properties if name in value}
    elif shared := _shared_names(value, properties):
        pairs = {name: value[0][name] for name in shared if all(row[name] == value[0][name] for row in value)}
        open_ones = [name for name in shared if name not in pairs and name in _missing(schema, given)]
        if not pairs and open_ones:
            raise ToolRetry(
                f"There are {len(value)} results with different `{open_ones[0]}`. Choose one: extract_path "
                f"[0].{open_ones[0]}, or a filter and the aggregate first."
            )
    else:
        pairs = dict.fromkeys(_missing(schema, given)[:1], value)
    return {name: _fit(item, properties[name]) for name, item in pairs.items()}


def _shared_names(value: Any, properties: Mapping[str, Any]) -> list[str]:
    """Return the parameters that all objects of a list have a value for; none where it is no such list."""
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        return []
    return [name for name in properties if value and all(name in row for row in value)]


def composable(output: Mapping[str, Any] | None, schema: Mapping[str, Any]) -> bool:
    """Return whether an output of the JSON Schema `output` (None: text) can be an argument of a tool with the
    parameters `schema`, by their types alone.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    kinds = _kinds(output) if output is not None else {"string"}
    if "object" in kinds and output is not None and set(output.get("properties", {})) & set(properties):
        return True
    # A parameter that is a text takes everything: any value can be written as one.
    wanted_kinds = (_kinds(item) | _kinds(item.get("items", {})) for item in properties.values())
    return any(
        "string" in wanted or bool(wanted & kinds) or any((kind, other) in _ALIKE for kind in kinds for other in wanted)
        for wanted in wanted_kinds
    )


def at(value: Any, path: str) -> Any:
    """Return the part of a JSON-like value at a path, such as `items[0].name`, indexes from 0. `''` is the value
    itself, `[*]` makes a list of what is below each item. ToolRetry names the step that does not exist.
    """
    position = 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None:
            raise ToolRetry(f"{path!r} is no path. Write it like items[0].name or [*].path.")
        name, index = match[1], match[2]
        if index == "*":
            return [at(item, path[match.end() :].removeprefix(".")) for item in _list(value, "[*]")]
        value = _step(value, name if index is None else int(index), path)
        position = match.end()
    return value


def plain(value: Any) -> Any:
    """Return a tool's data as JSON values: dataclasses and models become objects, collections lists, anything else its
    `str`.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _own(value: Any, parameter: str, schema: Mapping[str, Any]) -> Any:
    """Return the entry of an object that has the parameter's name, where the parameter takes no object."""
    named = isinstance(value, Mapping) and parameter in value and "object" not in _kinds(schema)
    return value[parameter] if named else value


def _by_parameter(mapping: Mapping[str, str], properties: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a mapping from parameters to paths; one from paths to parameters is turned round."""
    turned = {parameter: path for path, parameter in mapping.items()}
    if set(mapping) <= set(properties) or not set(turned) <= set(properties) or len(turned) < len(mapping):
        return mapping
    return turned


def _step(value: Any, key: str | int, path: str) -> Any:
    if isinstance(key, str) and isinstance(value, list) and (place := whole_number(key)) is not None:
        key = place  # `rows.0.name` for `rows[0].name`
    if key in _OF_LISTS and isinstance(value, list):
        return _OF_LISTS[key](value)
    if isinstance(key, int) and isinstance(value, list) and key < len(value):
        return value[key]
    if isinstance(key, str) and isinstance(value, Mapping) and key in value:
        return value[key]
    there = (
        _names(value)
        if isinstance(value, Mapping)
        else f"{_kind(value)} of {len(value)}"
        if isinstance(value, (list, str))
        else ""
    )
    raise ToolRetry(f"{path!r} leads nowhere at {key!r}. There is: {there or _kind(value)}.")


def _names(mapping: Iterable[Any]) -> str:
    return ", ".join(map(str, mapping)) or "nothing"


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ToolRetry(f"{what} needs a list, and this is {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else _JSON_TYPES.get(type(value), type(value).__name__)


def _keeps(rule: Filter, item: Any) -> bool:
    try:
        found = at(item, rule.field)
    except ToolRetry:  # an item without the field
        return rule.op == "ne"
    match rule.op:
        case "eq":
            return bool(found == rule.value)
        case "ne":
            return bool(found != rule.value)
        case "has":
            wanted = rule.value if isinstance(rule.value, Mapping) else {}
            return all(_keeps(Filter(field=path, value=value), found) for path, value in wanted.items())
        case "contains":
            return str(rule.value) in found if isinstance(found, str) else _contains(found, rule.value)
    return _compare_order(rule.op, found, rule.value)


def _contains(found: Any, wanted: Any) -> bool:
    return isinstance(found, (list, Mapping)) and wanted in found


def _compare_order(op: str, found: Any, wanted: Any) -> bool:
    numbers = isinstance(found, (int, float)) and isinstance(wanted, (int, float))
    if not numbers and not (isinstance(found, str) and isinstance(wanted, str)):
        return False
    return bool(
        {"lt": found < wanted, "le": found <= wanted, "gt": found > wanted, "ge": found >= wanted}[op],
    )


def _aggregate(rule: Aggregate, items: list[Any]) -> Any:
    values = [at(item, rule.field) for item in items]
    if rule.function == "count":
        return len(values)
    if rule.function == "sum":
        if not all(isinstance(value, (int, float)) for value in values):
            raise ToolRetry("sum needs numbers.")
        return sum(values)
    if not values:
        raise ToolRetry(f"{rule.function} of an empty list.")
    return values[0 if rule.function == "first" else -1]


def _missing(schema: Mapping[str, Any], given: Iterable[str]) -> list[str]:
    """Return the names of the parameters without a value, required ones first."""
    known, required = set(given), schema.get("required", [])
    return [name for name in (*required, *schema.get("properties", {})) if name not in known]


def _fit(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value converted to a parameter's type: joined or dumped as text for strings, wrapped in a list for
    arrays.
    """
    kinds = _kinds(schema)
    if _kind(value) in kinds or not kinds:
        return value
    if "string" in kinds:
        if isinstance(value, list) and all(not isinstance(item, (list, Mapping)) for item in value):
            return "\n".join(map(str, value))
        return json.dumps(value, ensure_ascii=False)
    return [value] if "array" in kinds else value


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema allows; an empty set if it allows any."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return {kind for option in options for kind in _kinds(option)} - {"null"}
    kind = schema.get("type", [])
    if "enum" in schema and not kind:
        return {_kind(item) for item in schema["enum"]}
    return {kind} if isinstance(kind, str) else set(kind)
