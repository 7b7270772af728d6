"""Real language servers for tests and benchmarks: where they are, and a session of them in the sandbox.

Installed by `scripts/get-language-servers.sh`, which prints the folders that CODEAGENT_LANGUAGE_SERVERS lists.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.language_servers.known import KNOWN
from codeagent_lsp.language_servers.session_servers import SessionServers
from codeagent_lsp.shadow.probe import Isolator

_DEFAULT = Path.home() / ".cache" / "codeagent-lsp" / "language-servers" / "bin"
_MEMORY = 3 << 30


def path_with_servers() -> str:
    """Return a PATH that begins with the folders of the installed servers."""
    folders = os.environ.get("CODEAGENT_LANGUAGE_SERVERS") or str(_DEFAULT)
    return os.pathsep.join((folders, os.environ.get("PATH", os.defpath)))


@cache
def missing(name: str) -> str | None:
    """Return why a server cannot be used here, None if it can be."""
    program = shutil.which(name, path=path_with_servers())
    if program is None:
        return f"{name} is not installed"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    if name in ("rust-analyzer", "jdtls"):  # rustup has a program of that name that is none
        done = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False)
        return None if done.returncode == 0 else f"{name} does not run"
    return None


@asynccontextmanager
async def real_session(state: Path) -> AsyncIterator[SessionServers]:
    """The servers of one session in the sandbox, as in the product."""
    before = os.environ["PATH"]
    os.environ["PATH"] = path_with_servers()
    isolator = Isolator(str(state))
    servers = SessionServers(lambda folders: isolator.open_copy(ShellSettings(), folders), lambda: KNOWN, _MEMORY)
    try:
        yield servers
    finally:
        await servers.close()
        os.environ["PATH"] = before
