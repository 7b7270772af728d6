"""Folders in which a program is at work: what goes while one looks is left out."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    """The files below a folder whose last parts fit the pattern, as for `Path.match`."""
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.match(pattern))


def contents(folder: Path, pattern: str = "*") -> dict[Path, bytes]:
    """What these files hold."""
    held = {}
    for path in files_below(folder, pattern):
        try:
            held[path] = path.read_bytes()
        except OSError:  # gone meanwhile, or no plain file
            continue
    return held
