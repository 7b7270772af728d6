"""The settings of one server in one project: the known ones, and what is read from the project's files.

Reads names only. Not here: the known settings (`known.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codeagent_lsp.language_servers.installed import Installed

_ENVIRONMENTS = (".venv", "venv")


def settings_for(each: Installed) -> Mapping[str, Any]:
    """Return the settings that the server is given for its project."""
    settings = dict(each.server.settings)
    if "python" in settings and (interpreter := _interpreter(each.folder)):
        settings["python"] = {**settings["python"], "pythonPath": interpreter}
    return settings


def _interpreter(folder: str) -> str | None:
    """Return the interpreter of the environment in a project's folder."""
    found = (Path(folder, name, "bin", "python") for name in _ENVIRONMENTS)
    return next((str(path) for path in found if path.exists()), None)
