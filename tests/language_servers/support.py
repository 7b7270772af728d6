"""Where the language servers of tests are: those that `scripts/get-language-servers.sh` installed, else on PATH."""

from __future__ import annotations

import os
import shutil

import pytest

VARIABLE = "CODEAGENT_LANGUAGE_SERVERS"


def program(name: str) -> str:
    """Return the path of a program; the test is skipped visibly where it is not installed."""
    found = shutil.which(name, path=search_path())
    if found is None:
        pytest.skip(f"{name} is not installed; `sh scripts/get-language-servers.sh` installs it")
    return found


def search_path() -> str:
    """Return PATH with the folders of the installed servers before it."""
    return os.pathsep.join(filter(None, (os.environ.get(VARIABLE, ""), os.environ.get("PATH", ""))))
