"""Merging of settings from layers: plain mappings from the user's file, the environment, the client, the command line,
and the policy.

A bad value never stops the program, it is reported and ignored; only a policy that cannot be followed does. Not here:
which settings there are (`settings_catalogue.py`), reading the layers from the client and the command line
(`server/front.py`, `cli.py`), reading the user's file and the policy (`settings_files.py`).
"""

from __future__ import annotations

import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.settings_catalogue import OTHER_KEYS, Setting, allowed_values, catalogue, is_table, value_of
from codeagent_lsp.settings_files import PolicyFile, UserSettings

NO_POLICY = PolicyFile()
NO_USER_SETTINGS = UserSettings()
_SERVER = ("model.baseUrl", "model.provider")  # what says whose model it is
_NO_SERVER = (None, "", "auto")


def load(
    *layers: Mapping[str, Any], policy: PolicyFile = NO_POLICY, user: UserSettings = NO_USER_SETTINGS
) -> tuple[Settings, list[SettingError]]:
    """Return the defaults with each layer merged over them, later ones winning, and the problems found; bad values are
    left out. A layer has the shape of the section: nested by the dots of the keys, or flat with dotted keys.

    Other spellings (`settings_catalogue.OTHER_KEYS`) are understood, but do not override a key of ours in the same
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
