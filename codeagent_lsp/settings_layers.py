"""The catalogue of all settings, derived from their declarations (public key, type, default and metadata of each), and
their values, merged from layers: plain mappings from the user's file, the environment, the client, the command line,
and the policy.

A bad value never stops the program, it is reported and ignored; only a policy that cannot be followed does. Not here:
the declarations (`config.py`), reading the layers from the client and the command line (`server/front.py`, `cli.py`),
reading the user's file and the policy (`settings_files.py`).
"""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.settings_files import PolicyFile, UserSettings

NO_POLICY = PolicyFile()
NO_USER_SETTINGS = UserSettings()
_SERVER = ("model.baseUrl", "model.provider")  # what says whose model it is
_NO_SERVER = (None, "", "auto")


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


def load(
    *layers: Mapping[str, Any], policy: PolicyFile = NO_POLICY, user: UserSettings = NO_USER_SETTINGS
) -> tuple[Settings, list[SettingError]]:
    """Return the defaults with each layer merged over them, later ones winning, and the problems found; bad values are
    left out. A layer has the shape of the section: nested by the dots of the keys, or flat with dotted keys.

    Other spellings (`OTHER_KEYS`) are understood, but do not override a key of ours in the same
    layer. The user's file is below all layers. The policy is above them; with one that cannot be followed, no layer
    counts.
    """
    if (refused := refusal(policy)) is not None:
        return Settings(), [refused]
    fixed, unknown = fixed_by(policy)
    known = {setting.key: setting for setting in catalogue()}
    own, *others = (_spelt(_flatten(layer, known)) for layer in (user.values, *layers))
    # Once somebody else names a model's server, nothing that the file says of models counts, above all no key.
    if any(key in fixed or any(layer.get(key) not in _NO_SERVER for layer in others) for key in _SERVER):
        own = {key: value for key, value in own.items() if not key.startswith("model.")}
    settings, problems = _merge((own, *others), known)
    problems += filter(None, [user.problem])
    for setting in catalogue():
        if setting.key not in fixed:
            continue
        below, value = value_of(settings, setting), fixed[setting.key]
        settings = typing.cast("Settings", _set(settings, setting.path, value))
        # Only who has set something else needs to hear that it does not count.
        if below not in (setting.default, value):
            problems.append(SettingError("policy.fixed", key=f"codeagent.{setting.key}", path=policy.path))
    return settings, [*problems, *unknown]


def refusal(policy: PolicyFile) -> SettingError | None:
    """Return, without raising it, why nothing may run: a policy that cannot be read, or a value in it that is not
    allowed; None if all is well. Unknown keys are no reason.
    """
    if policy.problem is not None:
        return policy.problem
    bad = [problem for problem in fixed_by(policy)[1] if problem.key == "policy.bad"]
    return bad[0] if bad else None


def fixed_by(policy: PolicyFile) -> tuple[dict[str, Any], list[SettingError]]:
    """Return the values that a policy fixes, by dotted key, and its problems: unknown keys, and values that are not
    allowed. None in the policy fixes the default.
    """
    known = {setting.key: setting for setting in catalogue()}
    fixed: dict[str, Any] = {}
    problems: list[SettingError] = []
    for key, value in _spelt(_flatten(policy.values, known)).items():
        setting = known.get(key)
        if setting is None:
            problems.append(SettingError("policy.unknown", key=key, path=policy.path))
            continue
        try:
            fixed[key] = setting.default if value is None else _coerce(setting, value)
        except ValueError:
            shown = "***" if setting.metadata["secret"] else repr(value)[:80]
            problems.append(
                SettingError("policy.bad", key=key, path=policy.path, value=shown, allowed=allowed_values(setting))
            )
    return fixed, problems


def environment_layer(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the settings in environment variables (those of this process if `environ` is None) by dotted key; text is
    converted to the setting's type if possible, else kept. Empty variables do not count.
    """
    environ = os.environ if environ is None else environ
    return {
        setting.key: _from_text(setting, environ[name])
        for setting in catalogue()
        if (name := setting.metadata["env"]) and environ.get(name)
    }


def without_restricted(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a layer without other spellings of restricted settings, since an editor does not know that these
    must not come from an untrusted workspace.
    """
    restricted = {setting.key for setting in catalogue() if setting.metadata["restricted"]}
    return {
        key: value
        for key, value in layer.items()
        if key not in OTHER_KEYS or OTHER_KEYS[key].key not in restricted or isinstance(value, Mapping)
    }


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


def _merge(layers: Iterable[Mapping[str, Any]], known: Mapping[str, Setting]) -> tuple[Settings, list[SettingError]]:
    settings = Settings()
    problems: list[SettingError] = []
    for layer in layers:
        for key, value in layer.items():
            setting = known.get(key)
            if setting is None:
                problems.append(SettingError("setting.unknown", key=f"codeagent.{key}"))
            # Editors show what is not set as an empty text.
            elif value is not None and (value != "" or setting.default is not None):
                settings = _assign(settings, setting, value, problems)
    return settings, problems


def _spelt(flat: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values by our keys, those written by other keys and with other values included."""
    own: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in flat:
        other = OTHER_KEYS.get(key)
        if other is None:
            own[key] = value
        else:
            known = isinstance(value, (bool, str)) and value in other.values
            (own if other.key == key else others)[other.key] = other.values[value] if known else value
    return {**others, **own}


def _flatten(layer: Mapping[str, Any], known: Mapping[str, Setting]) -> Iterator[tuple[str, Any]]:
    pending: list[tuple[str, Any]] = [(str(key), value) for key, value in layer.items()]
    while pending:
        key, value = pending.pop(0)
        # Settings that are objects, such as MCP servers, have keys of the user's below them.
        inside = any(name.startswith(f"{key}.") for name in known)
        if inside and isinstance(value, Mapping):
            pending[:0] = [(f"{key}.{name}", item) for name, item in value.items()]
        else:
            yield key, value


def _assign(settings: Settings, setting: Setting, value: Any, problems: list[SettingError]) -> Settings:
    try:
        return typing.cast("Settings", _set(settings, setting.path, _coerce(setting, value)))
    except ValueError:
        shown = "***" if setting.metadata["secret"] else repr(value)[:80]
        problems.append(
            SettingError(
                "setting.bad",
                key=f"codeagent.{setting.key}",
                value=shown,
                allowed=allowed_values(setting),
                default=repr(setting.default),
            )
        )
        return settings


def _coerce(setting: Setting, value: Any) -> Any:
    """Convert `value` to the setting's type; ValueError when it does not fit."""
    for option in setting.alternatives:
        if (result := _match(option, value)) is not None:
            return _bound(setting, result)
    raise ValueError(setting.key)


def _match(option: Any, value: Any) -> Any:
    """Return `value` as one alternative of a type; None when it does not fit."""
    if typing.get_origin(option) is Literal:
        return value if isinstance(value, str) and value in typing.get_args(option) else None
    if option is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    # By the exact type, as True is an int too.
    if option in (bool, str, int):
        return value if type(value) is option else None
    if typing.get_origin(option) is tuple:
        fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return tuple(value) if fits else None
    if not isinstance(value, Mapping) or (is_table(option) and not _holds_texts(value)):
        return None
    return dict(value)


def _holds_texts(value: Mapping[Any, Any]) -> bool:
    return all(isinstance(word, str) for pair in value.items() for word in pair)


def _bound(setting: Setting, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    low, high = setting.metadata["minimum"], setting.metadata["maximum"]
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise ValueError(setting.key)
    return value


def _from_text(setting: Setting, value: str) -> Any:
    for option in setting.alternatives:
        if option is bool and value.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off"):
            return value.lower() in ("1", "true", "yes", "on")
        if option in (int, float):
            try:
                return option(value)
            except ValueError:
                continue
    return value


def _set(node: Any, path: tuple[str, ...], value: Any) -> Any:
    name, *rest = path
    inner = _set(getattr(node, name), tuple(rest), value) if rest else value
    return replace(node, **{name: inner})
