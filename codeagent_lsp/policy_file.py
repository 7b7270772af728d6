"""The company's policy file: settings that nobody below can change, read from the disk.

Not here: laying them over all other settings (`settings_layers.py`), telling about them (`doctor.py`).
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
from codeagent_lsp.system import is_superuser

SYSTEM_FILE = Path("/etc/codeagent/policy.json")
VARIABLE = "CODEAGENT_POLICY"

_OTHERS = 0o022
_SECTION = "codeagent"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One policy. `path` is None if there is none; `problem` is set if it exists and cannot be read: it then fixes
    nothing, and nothing may run.
    """

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    problem: SettingError | None = None


def read_policy(environ: Mapping[str, str] | None = None, system: Path | None = None) -> PolicyFile:
    """Return the policy of this machine: the system's file, which the environment cannot replace, else the one that
    the environment names.
    """
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    found = _read(system or SYSTEM_FILE, required=False)
    if found.path is None and named:
        return _read(Path(named), required=True)
    return found


def changeable(path: Path) -> bool:
    """Return whether somebody besides the superuser can write a policy, or replace it in its folder."""
    try:
        loose = any(part.stat().st_mode & _OTHERS for part in (path, path.parent) if not _sticky(part))
    except OSError:
        return True
    ours = not is_superuser() and any(os.access(part, os.W_OK) for part in (path, path.parent))
    return loose or ours


def _sticky(path: Path) -> bool:
    """Return whether files of others cannot be replaced in a folder, as in `/tmp`."""
    return path.is_dir() and bool(path.stat().st_mode & 0o1000)


def _read(path: Path, *, required: bool) -> PolicyFile:
    try:
        values = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        return _broken(path, error.strerror) if required else PolicyFile()
    except OSError as error:
        return _broken(path, error.strerror)
    except (ValueError, RecursionError) as error:
        return _broken(path, f"{error}"[:200])
    if not isinstance(values, dict):
        return _broken(path, "it is no JSON object")
    # As in the settings file of an editor, under the one section.
    inner = values.get(_SECTION)
    if isinstance(inner, dict) and len(values) == 1:
        values = inner
    return PolicyFile(path, MappingProxyType({key.removeprefix(f"{_SECTION}."): values[key] for key in values}))


def _broken(path: Path, reason: object) -> PolicyFile:
    return PolicyFile(path, problem=SettingError("policy.unreadable", path=path, reason=reason))
