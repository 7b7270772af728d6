"""The package on other systems, as far as Linux can tell: what it imports, and that each system has the same names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.tidy.source import PACKAGE, ROOT, Module, modules

ONLY_SOME = {"fcntl", "grp", "pty", "pwd", "resource", "spwd", "syslog", "termios", "tty", "msvcrt", "winreg"}
"""Modules that not every system has."""
NOT_EVERYWHERE = set(
    """
    dir_fd src_dir_fd dst_dir_fd start_new_session preexec_fn add_signal_handler killpg SIGKILL SIGHUP SIGALRM alarm
    setsid nice geteuid getuid getegid getgid fchmod O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_NOCTTY
    """.split()  # noqa: SIM905
)
"""Names of functions, arguments and constants that not every system has."""
MAY = ("system/", "shadow/", "environments/container_terminal.py", "environments/serving_page.py")
"""Where they are used: the last two are programs of their own, started in containers and sandboxes of Linux."""


def used(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What of these lists a module imports or names, with the place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if alias.name in ONLY_SOME)
        elif isinstance(node, ast.ImportFrom) and node.module in ONLY_SOME:
            yield node, node.module
        elif isinstance(node, ast.Attribute) and node.attr in NOT_EVERYWHERE:
            yield node, node.attr
        elif isinstance(node, ast.keyword) and node.arg in NOT_EVERYWHERE:
            yield node.value, node.arg
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield from ((node, word) for word in ONLY_SOME if word in named)


@pytest.mark.slow  # it reads all modules
def test_what_only_some_systems_have_is_used_in_one_place() -> None:
    others = [module for module in modules() if not str(module.path.relative_to(PACKAGE)).startswith(MAY)]
    assert [f"{module.where(node)}: {name}" for module in others for node, name in used(module.tree)] == []


@pytest.mark.parametrize(
    "text",
    ["import fcntl", "from termios import ECHO", "os.open(p, f, dir_fd=d)", "os.killpg(1, 9)", "a = signal.SIGKILL",
     "importlib.import_module('fcntl')", "Popen(a, start_new_session=True)", "os.O_RDONLY | os.O_NOFOLLOW"],
)  # fmt: skip
def test_each_way_to_use_it_is_seen(text: str) -> None:
    assert list(used(ast.parse(text)))


@pytest.mark.slow
def test_both_systems_have_the_same_names_with_the_same_parameters() -> None:
    posix, windows = (_interface(f"codeagent_lsp.system.{name}") for name in ("posix", "windows"))
    assert posix == windows
    assert {name for name in posix if "." not in name} == _offered()


@pytest.mark.slow
def test_every_module_is_imported_where_these_are_missing() -> None:
    command = (sys.executable, "-m", "tests.system.as_on_windows")
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200)
    *failed, last = done.stdout.splitlines() or [done.stderr]
    assert failed == []
    assert int(last.removeprefix("tried ")) > 500


def _interface(name: str) -> dict[str, str]:
    """The public names of a module and of its classes, each with its parameters."""
    return dict(_names(_module(name).tree.body, ""))


def _names(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            yield inside + node.name, ast.unparse(node.args) + str(node.returns and ast.unparse(node.returns))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ""
            yield from _names(node.body, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((item.id, "") for item in targets if isinstance(item, ast.Name) and item.id[0] != "_")


def _module(name: str) -> Module:
    return next(module for module in modules() if module.name == name)


def _offered() -> set[str]:
    """What the package itself imports, the same from both."""
    tree = _module("codeagent_lsp.system").tree
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    here, there = ({alias.name for alias in node.names} for node in imports)
    assert here == there
    return here
