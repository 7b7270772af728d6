"""To which project of a workspace a file belongs: changes in one are not due in another. Pure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

MARKERS = (
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "composer.json",
)  # fmt: skip


def project_of(path: str, is_file: Callable[[str], bool]) -> str:
    """Return the folder of the nearest marker above a file; '' for the workspace itself."""
    for folder in PurePosixPath(path).parents:
        if any(is_file(str(folder / marker)) for marker in MARKERS):
            return str(folder)
    return ""
