"""A JSON object in a file, in which facts about models are kept by key. A damaged or missing file is an empty object.

Blocks. Not here: what the facts are (`probe.py` here, `agent/forms/proof.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object of a text; an empty one where it holds none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read(path: Path) -> dict[str, Any]:
    """All that is kept in a file."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(path: Path, key: str, value: object) -> None:
    """Keep one more fact, replacing the file as a whole. Best effort: a folder that cannot be written keeps nothing."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({**read(path), key: value}, file, indent=1)
        Path(name).replace(path)
