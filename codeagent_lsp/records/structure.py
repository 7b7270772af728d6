"""Traversal of JSON-like values that decides by key names: mask the value, shorten an id, or sanitize the text.

The structure is kept: mappings keep their keys in order, lists stay lists, tuples tuples, numbers and
booleans unchanged. Not here: secrets within a text (`sanitizer.py` passes the function for that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

from codeagent_lsp.records.assignments import DIGITS
from codeagent_lsp.records.mark import Mark, mask_id
from codeagent_lsp.records.names import NameKind, kind_of
from codeagent_lsp.records.values import looks_generated

DEEPEST = 64
CYCLE, TOO_DEEP = "<cycle>", "<too deep>"

_AS_THEY_ARE = (bool, int, float, complex, Decimal, date, time, UUID, type(None))
_SCHEMA_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"))


class Structure:
    """Walks values. `text` sanitizes a text, `mark` replaces a whole value."""

    def __init__(self, text: Callable[[str], str], mark: Mark, *, identities: bool) -> None:
        self._text = text
        self._mark = mark
        self._identities = identities

    def walk(self, value: Any) -> Any:
        """Return `value`, sanitized."""
        return self._any(value, ())

    def _any(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, _AS_THEY_ARE):
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return self._text(bytes(value).decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if id(value) in above:
            return CYCLE
        if len(above) >= DEEPEST:
            return TOO_DEEP
        return self._container(value, (*above, id(value)))

    def _container(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, above)
        if isinstance(value, Sequence):
            items = self._sequence(list(value), above)
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Set):
            return [self._any(item, above) for item in value]
        if isinstance(value, PurePath):
            return self._text(str(value))
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {' '.join(str(self._any(item, above)) for item in value.args)}"
        return f"<{type(value).__name__}>"

    def _mapping(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> dict[Any, Any]:
        items = list(value.items())
        named = _named_value(value)
        return {
            self._key(key): self._under(named if named and key in ("value", "Value") else str(key), item, above)
            for key, item in items
        }

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._text(str(key))
        return key if isinstance(key, int | float | bool | type(None)) else self._text(str(key))

    def _under(self, name: str, value: Any, above: tuple[int, ...]) -> Any:
        """Return the sanitized value of a key called `name`."""
        kind = kind_of(name)
        if kind is NameKind.SECRET or (
            kind is NameKind.PERHAPS and (isinstance(value, str) or name.lower().startswith("cred"))
        ):
            return self._replace(value, above)
        if kind is NameKind.LOOKS and isinstance(value, str) and looks_generated(value):
            return self._mark(value)
        if kind is NameKind.PERHAPS and _is_number_token(name, value):
            return self._mark(str(value))
        if kind is NameKind.SESSION and self._identities:
            return self._replace(value, above)
        if kind is NameKind.IDENTITY and self._identities and _is_leaf(value):
            return mask_id(str(value))
        return self._any(value, above)

    def _replace(self, value: Any, above: tuple[int, ...]) -> Any:
        """Mask every text and number in a value whose name says that it is secret."""
        if value is None or isinstance(value, bool) or value == "" or value == b"":
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return self._mark(bytes(value).decode("utf-8", "surrogateescape")).encode()
        if isinstance(value, Mapping):
            return self._replace_within(value, above)
        if isinstance(value, Sequence | Set) and not isinstance(value, str):
            return self._guarded(value, above, lambda items, here: [self._replace(item, here) for item in items])
        return self._mark(str(value)) if isinstance(value, str | int | float) else self._any(value, above)

    def _replace_within(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> Any:
        if str(value.get("type")) in _SCHEMA_TYPES:  # a schema names a secret; it holds none
            return self._any(value, above)
        return self._guarded(
            value.items(), above, lambda items, here: {self._key(key): self._replace(item, here) for key, item in items}
        )

    def _guarded(
        self, items: Iterable[Any], above: tuple[int, ...], make: Callable[[list[Any], tuple[int, ...]], Any]
    ) -> Any:
        if len(above) >= DEEPEST:
            return TOO_DEEP
        return make(list(items), (*above, id(items)))

    def _sequence(self, items: list[Any], above: tuple[int, ...]) -> list[Any]:
        """Sanitize the items of a list.

        An item after `--password`, or after a header's name in a pair, is its value.
        """
        found: list[Any] = []
        for number, item in enumerate(items):
            before = items[number - 1] if number else None
            if isinstance(item, str) and isinstance(before, str) and _announces(before, item, len(items)):
                found.append(self._mark(item))
            else:
                found.append(self._any(item, above))
        return found


def _is_number_token(name: str, value: Any) -> bool:
    """Return whether a number is long enough for a token rather than a count."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return number and len(str(abs(value))) >= DIGITS and name.lower().endswith("token")


def _announces(before: str, item: str, count: int) -> bool:
    if before.startswith("--") and "=" not in before:
        kind = kind_of(before.lstrip("-"))
        telling = kind is NameKind.SECRET or (kind is NameKind.PERHAPS and "token" in before.lower())
        return telling and not item.startswith("-") and bool(item)
    return count == 2 and before.lower() in _HEADERS and bool(item)


def _named_value(value: Mapping[Any, Any]) -> str:
    """Return the name in `{"name": "api_key", "value": "…"}`, as used for headers and variables, or ''."""
    if "value" not in value and "Value" not in value:
        return ""
    name = value.get("name", value.get("key", value.get("Name", "")))
    return name if isinstance(name, str) else ""


def _is_leaf(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""
