"""The catalogue of all settings, derived from their declarations: public key, type, default and metadata of each.

Not here: the declarations (`config.py`), reading values (`settings_layers.py`).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from codeagent_lsp.config import Settings


class Setting(NamedTuple):
    """One setting: its public key (dotted, without `codeagent.`), its attribute names in `Settings`, its type, default
    and metadata (see `config.py`).
    """

    key: str
    path: tuple[str, ...]
    type: Any
    default: Any
    metadata: Mapping[str, Any]

    @property
    def alternatives(self) -> tuple[Any, ...]:
        """The types that a value may have, without None: one for each part of a union, which may be a `Literal`."""
        if typing.get_origin(self.type) in (typing.Union, types.UnionType):
            return tuple(option for option in typing.get_args(self.type) if option is not type(None))
        return (self.type,)


class OtherKey(NamedTuple):
    """Another spelling of a setting: the key of the setting, and what some values of that spelling mean there, by value
    ({}: all as they are).
    """

    key: str
    values: Mapping[Any, Any] = MappingProxyType({})


OTHER_KEYS: Mapping[str, OtherKey] = MappingProxyType(
    {
        "base_url": OtherKey("model.baseUrl"),
        "model": OtherKey("model.name"),
        "temperature": OtherKey("model.temperature"),
        "max_tokens": OtherKey("model.maxTokens"),
        "timeout_s": OtherKey("model.timeoutSeconds"),
        "api_mode": OtherKey("model.apiMode", MappingProxyType({"openai_compat": "chat"})),
        "model.apiMode": OtherKey("model.apiMode", MappingProxyType({"openai_compat": "chat"})),
        "enable_planning": OtherKey("agent.planning", MappingProxyType({True: "auto", False: "never"})),
        "confirm_write": OtherKey("edits.apply", MappingProxyType({True: "review", False: "auto"})),
        "confirm_exec": OtherKey("shell.confirm", MappingProxyType({True: "always", False: "never"})),
        "allow_network": OtherKey("shell.allowNetwork"),
    }
)
"""Settings by other names that are understood, with the values that differ."""


@cache
def catalogue() -> tuple[Setting, ...]:
    """Return all settings in the order of their declaration; the same tuple each time, made on the first call."""
    return tuple(_walk(Settings, (), ()))


def value_of(settings: Settings, setting: Setting) -> Any:
    """Return the value that `settings` has for one setting of the catalogue."""
    found: Any = settings
    for name in setting.path:
        found = getattr(found, name)
    return found


def allowed_values(setting: Setting) -> str:
    """Return the values that a setting accepts as English text for users, such as `whole number (1 … 600)`."""
    words = " | ".join(_type_words(setting))
    low, high = setting.metadata["minimum"], setting.metadata["maximum"]
    if low is not None and high is not None:
        return f"{words} ({low:g} … {high:g})"
    return f"{words} (≥ {low:g})" if low is not None else words


def is_table(option: Any) -> bool:
    """Return whether a setting's type is `Mapping[str, str]`, a table of texts by name; False for mappings to anything
    else.
    """
    return typing.get_origin(option) is Mapping and typing.get_args(option) == (str, str)


def _walk(cls: type, keys: tuple[str, ...], path: tuple[str, ...]) -> Iterator[Setting]:
    # The annotations are texts here, as in all modules.
    hints = typing.get_type_hints(cls)
    for item in fields(cls):
        hint = hints[item.name]
        here = (*keys, _camel(item.name))
        if is_dataclass(hint):
            yield from _walk(typing.cast("type", hint), here, (*path, item.name))
        else:
            yield Setting(".".join(here), (*path, item.name), hint, _default(item), item.metadata)


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)


def _type_words(setting: Setting) -> Iterator[str]:
    names = {bool: "true | false", str: "text", int: "whole number", float: "number"}
    for option in setting.alternatives:
        if typing.get_origin(option) is Literal:
            yield from typing.get_args(option)
        elif typing.get_origin(option) is tuple:
            yield "list of texts"
        elif is_table(option):
            yield "object of texts"
        else:
            yield names.get(option, "object")
