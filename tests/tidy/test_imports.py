"""Importing does nothing but define names, and the start-up path stays light. In a fresh Python each."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.source import modules

HEAVY = (
    "pydantic",
    "httpx",
    "rich",
    "yaml",
    "tree_sitter",
    "xllamacpp",
    "json_repair",
    "merge3",
    "pathspec",
    "importlinter",
)
EXTRAS = ("keyring", "lancedb", "mcp", "ray", "redis", "lxml", "playwright")
LATER = ("pydantic", "httpx", "rich", "tree_sitter", "sqlite3", *EXTRAS)
START_UP = ("codeagent_lsp.cli", "codeagent_lsp.app", "codeagent_lsp.server.server", "codeagent_lsp.server.features")

WATCH = """
import importlib, sys, threading
seen = []
FORBIDDEN = ("socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system")
sys.addaudithook(lambda event, args: seen.append(event) if event in FORBIDDEN else None)
for name in sys.argv[1:]:
    importlib.import_module(name)
    if seen or threading.active_count() > 1:
        sys.exit(f"{name}: {seen} {threading.enumerate()}")
"""

NEEDS = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[2:])))
"""


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_importing_every_module_prints_and_starts_nothing() -> None:
    left_out = ("__main__", ".harbor", ".system.windows", ".shadow.job")  # imported by Harbor alone, and on Windows
    names = [module.name for module in modules() if not module.name.endswith(left_out)]
    done = python(WATCH, *names)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", START_UP)
def test_the_start_up_path_leaves_heavy_libraries_alone(name: str) -> None:
    done = python(NEEDS, name, *HEAVY)
    assert (done.returncode, done.stdout.split()) == (0, [])


@pytest.mark.slow
def test_what_stands_behind_an_idle_server_leaves_them_alone_too() -> None:
    done = python(NEEDS, "codeagent_lsp.server.backend", *LATER)
    assert (done.returncode, done.stdout.split()) == (0, [])


def test_the_watch_sees_what_it_forbids() -> None:
    assert python(NEEDS, "json", "json").stdout.split() == ["json"]
    started = "import threading, time; threading.Thread(target=time.sleep, args=(1,), daemon=True).start()"
    done = python(f"import types, sys; m = types.ModuleType('x'); {started}\n{WATCH}", "json")
    assert done.returncode != 0
