"""Converts plain JSON strictly to the LSP types, and names the wrong key when that fails.

Not here: the outermost object (`framing.py`) and what a handler makes of its parameters.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import cattrs
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams

_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def make_converter() -> cattrs.Converter:
    """Return a converter for the LSP types that does not coerce types, e.g. a number to a string."""
    converter = cattrs.Converter()
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _strict)
    made = converters.get_converter(converter)
    # Clients of LSP 3.15 and older may change a document without a version; left out, all later edits would be for
    # another text than theirs.
    made.register_structure_hook(
        types.VersionedTextDocumentIdentifier,
        lambda value, _: made.structure(value, types.OptionalVersionedTextDocumentIdentifier),
    )
    return made


def structure_params(converter: cattrs.Converter, method: str, raw: dict[str, Any]) -> Any:
    """Convert the `params` of a message to their LSP type; plain JSON for methods that LSP does not define.

    JsonRpcInvalidParams names the wrong key, never the value.
    """
    known = types.METHOD_TO_TYPES.get(method)
    if known is None:
        return raw.get("params")
    try:
        # The types of requests demand an id, which one that came as a notification has not.
        return converter.structure({"id": 0, **raw}, known[0]).params
    except RecursionError:
        raise JsonRpcInvalidParams("Invalid params: nested too deeply") from None
    except Exception as error:  # noqa: BLE001 (cattrs raises what the constructors raise)
        # Without its cause, whose text quotes the value.
        raise JsonRpcInvalidParams(f"Invalid params: {wrong_key(error)}") from None


def structure_result(converter: cattrs.Converter, method: str, result: Any) -> Any:
    """Convert a client's result to its LSP type; ValueError when it does not fit."""
    known = types.METHOD_TO_TYPES.get(method)
    if known is None or known[1] is None:
        return result
    try:
        return converter.structure({"id": 0, "jsonrpc": "2.0", "result": result}, known[1]).result
    except Exception as error:  # noqa: BLE001 (as above)
        raise ValueError(wrong_key(error)) from None


def wrong_key(error: BaseException) -> str:
    """Return the path of the first wrong key and what is wrong with it."""
    path = ""
    while True:
        path += _step(error)
        inner = getattr(error, "exceptions", ())
        if not inner:
            return f"{path.lstrip('.') or 'params'} {_complaint(error)}"
        error = inner[0]


def _step(error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f".{_camel(note.name)}"
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]"
    return ""


def _complaint(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return "is missing"
    if isinstance(error, _WrongType):
        return f"must be {error}"
    return "has a value of the wrong kind"


def _camel(name: str) -> str:
    head, *tail = name.strip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


class _WrongType(TypeError):
    pass


def _strict(value: Any, kind: type) -> Any:
    # Not isinstance: True is an int.
    if type(value) is kind:
        return value
    if issubclass(kind, Enum):  # the string and number enums of LSP come here as subclasses
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():
        return int(value)  # some JSON libraries know only floats
    raise _WrongType(_WORDS[kind])
