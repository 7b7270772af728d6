"""The two files that settings come from, read from the disk: the company's policy, which nobody below can change, and
the user's own settings, as `codeagent-lsp setup` writes them, the lowest layer of all.

The user's file is theirs to change. Its keys are in another one, in the state folder and for this user alone, as people
keep their settings in repositories; each belongs to one address and is sent to no other. Not here: the merging of
layers (`settings_layers.py`), the dialogue (`terminal/setup.py`), telling about a policy (`doctor.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codeagent_lsp.errors import SettingError
from codeagent_lsp.state import STATE_VARIABLE, replace_json, state_root
from codeagent_lsp.system import is_superuser

SYSTEM_POLICY = Path("/etc/codeagent/policy.json")
POLICY_VARIABLE = "CODEAGENT_POLICY"

_OTHERS = 0o022
_SECTION = "codeagent"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The company's policy as read. `path` is None if there is none; `problem` is set if it exists and cannot be read:
    it then fixes nothing, and nothing may run.
    """

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    problem: SettingError | None = None


def read_policy(environ: Mapping[str, str] | None = None, system: Path | None = None) -> PolicyFile:
    """Return the policy of this machine: the system's file, which the environment cannot replace, else the one that the
    environment names. Never raises: the result has a `problem`. Blocks on the disk.
    """
    named = (os.environ if environ is None else environ).get(POLICY_VARIABLE, "")
    found = _policy_at(system or SYSTEM_POLICY, required=False)
    if found.path is None and named:
        return _policy_at(Path(named), required=True)
    return found


def changeable(path: Path) -> bool:
    """Return whether somebody besides the superuser can write the policy file `path`, or replace it in its folder, by
    the permissions of both; True if that cannot be found out.
    """
    try:
        loose = any(part.stat().st_mode & _OTHERS for part in (path, path.parent) if not _sticky(part))
    except OSError:
        return True
    ours = not is_superuser() and any(os.access(part, os.W_OK) for part in (path, path.parent))
    return loose or ours


def _sticky(path: Path) -> bool:
    """Return whether files of others cannot be replaced in a folder, as in `/tmp`."""
    return path.is_dir() and bool(path.stat().st_mode & 0o1000)


def _policy_at(path: Path, *, required: bool) -> PolicyFile:
    try:
        values = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        return _broken_policy(path, error.strerror) if required else PolicyFile()
    except OSError as error:
        return _broken_policy(path, error.strerror)
    except (ValueError, RecursionError) as error:
        return _broken_policy(path, f"{error}"[:200])
    if not isinstance(values, dict):
        return _broken_policy(path, "it is no JSON object")
    # As in the settings file of an editor, under the one section.
    inner = values.get(_SECTION)
    if isinstance(inner, dict) and len(values) == 1:
        values = inner
    return PolicyFile(path, MappingProxyType({key.removeprefix(f"{_SECTION}."): values[key] for key in values}))


def _broken_policy(path: Path, reason: object) -> PolicyFile:
    return PolicyFile(path, problem=SettingError("policy.unreadable", path=path, reason=reason))


CONFIG_VARIABLE = "CODEAGENT_CONFIG_DIR"
FILE, KEYS = "settings.json", "keys.json"


@dataclass(frozen=True, slots=True)
class UserSettings:
    """The settings in the user's file by their dotted keys, {} if there is none; `problem` is set if the file exists
    and cannot be read.
    """

    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    problem: SettingError | None = None


def settings_file() -> Path:
    """Return the path of the user's settings, which need not exist. `CODEAGENT_CONFIG_DIR` names the folder; else it is
    the platform's, or the state folder if that was moved.
    """
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE):
        if folder := os.environ.get(variable):
            return Path(folder) / FILE
    from platformdirs import user_config_path  # late: most starts have all they need from the editor

    return user_config_path("codeagent-lsp") / FILE


def read_user_settings() -> UserSettings:
    """Return the user's settings, with the API key that was kept for their model's address. Never raises: the result
    has a `problem`. Blocks on the disk.
    """
    path = settings_file()
    try:
        values = _flat(_read(path))
    except SettingError as error:
        return UserSettings(problem=error)
    if values and (key := _read_keys().get(_address(values))):
        values = {"model.apiKey": key, **values}
    return UserSettings(MappingProxyType(values))


def keep_model(model: Mapping[str, Any], key: str | None) -> Path:
    """Write the settings of a model, by their dotted keys (`model.…`), in place of those in the user's file; all others
    stay. `key` is kept in a file of its own for the model's address; without one, the keys kept before stay. Return the
    path of the settings. SettingError if a present file cannot be read, or one cannot be written; the settings and keys
    that were there stay.
    """
    path = settings_file()
    others = {name: value for name, value in _flat(_read(path)).items() if not name.startswith("model.")}
    if key:
        # Strictly: from a damaged file no key could be kept.
        _write(state_root() / KEYS, {**_read(state_root() / KEYS), _address(model): key})
    _write(path, {**others, **model})
    return path


def _address(values: Mapping[str, Any]) -> str:
    return str(values.get("model.baseUrl") or values.get("model.provider") or "")


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer with the settings of models by dotted keys, and all others as they are."""
    inner = values.get(_SECTION)
    values = inner if isinstance(inner, Mapping) else values
    flat = {key.removeprefix(f"{_SECTION}."): value for key, value in values.items()}
    model = flat.pop("model", {})
    return {**flat, **{f"model.{key}": value for key, value in (model.items() if isinstance(model, Mapping) else ())}}


def _read_keys() -> dict[str, str]:
    try:
        found = _read(state_root() / KEYS)
    except SettingError:  # then there is none, and the model's server says what is missing
        return {}
    return {name: key for name, key in found.items() if isinstance(key, str)}


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file, an empty one if there is none. SettingError if it is no JSON object."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingError("user_settings.unreadable", path=path, reason=error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise SettingError("user_settings.unreadable", path=path, reason=f"{error}"[:200]) from error
    if not isinstance(found, dict):
        raise SettingError("user_settings.unreadable", path=path, reason="it is no JSON object")
    return found


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a file at once, readable by this user alone. SettingError if that fails."""
    try:
        replace_json(path, values)
    except OSError as error:
        raise SettingError("user_settings.unwritable", path=path, reason=error.strerror) from error
