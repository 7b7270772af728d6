"""A JSON file of facts about models, by key. A damaged or missing file counts as an empty object.

Blocking. Not here: the facts (`factory.py`, `agent/forms/proof.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; an empty one if it has none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read(path: Path) -> dict[str, Any]:
    """Return all facts in a file."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(path: Path, key: str, value: object) -> None:
    """Store one fact and replace the file atomically. Errors of the file system are ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({**read(path), key: value}, file, indent=1)
        Path(name).replace(path)
