"""What is stated twice agrees: commands and their handlers, sentences and their keys, generated pages, the README."""

from __future__ import annotations

import ast
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp import cli, errors, texts
from codeagent_lsp.protocol import COMMANDS
from tests.clients.neovim.support import find_neovim
from tests.tidy.source import ROOT, modules

USER_ERRORS = {
    name
    for name, item in vars(errors).items()
    if isinstance(item, type) and issubclass(item, errors.UserError) and not issubclass(item, errors.AgentError)
}
KEY = re.compile(r"[a-z_]+(\.[a-z_]+)+")
SHELL_BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.md")]


def test_every_command_has_a_handler() -> None:
    server = "".join(module.text for module in modules() if module.name.startswith("codeagent_lsp.server"))
    handled = set(re.findall(r'"(codeagent\.[A-Za-z.]+)":', server))
    wanted = {command.name for command in COMMANDS if not command.starts_run}
    assert wanted == handled & wanted, sorted(wanted - handled)


def test_every_sentence_that_is_used_exists() -> None:
    used, known = [*used_keys()], set(texts.keys())
    assert len(used) > 400, "the scan finds nothing any more"
    missing = {f"{where}: {key}" for where, key in used if key not in known}
    assert not missing, "\n".join(sorted(missing))


def test_every_sentence_has_both_languages_with_the_same_placeholders() -> None:
    pairs = {key: texts.pair(key) for key in texts.keys()}  # noqa: SIM118 (a function, not a dict)
    assert not [key for key in pairs if not KEY.fullmatch(key)]
    assert not [key for key, both in pairs.items() if not all(map(str.strip, both))]
    assert not [key for key, both in pairs.items() if len(set(map(placeholders, both))) != 1]


def test_generated_files_are_current() -> None:
    command = [sys.executable, "-m", "scripts.generate", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(find_neovim() is None, reason="no Neovim 0.11 here; scripts/get-neovim.sh gets one")
def test_the_help_page_of_the_neovim_plugin_is_current() -> None:
    command = [str(find_neovim()), "--clean", "-l", "editors/neovim/scripts/vimdoc.lua", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_the_documents_are_real(page: Path) -> None:
    bad = [line for line in command_lines(page.read_text("utf-8")) if not is_real(line)]
    assert not bad, f"{page.name}: {bad}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_in_the_documents_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text("utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_a_command_that_is_not_real_is_seen() -> None:
    assert not is_real("sh scripts/no-such-script.sh")
    assert not is_real("codeagent-lsp no-such-command")
    assert is_real("codeagent-lsp doctor --json")


def used_keys() -> Iterator[tuple[str, str]]:
    """Keys written as literals where a sentence is asked for or an error for the user is made."""
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.Call) and node.args and asks_for_text(node.func):
                first = node.args[0]
                for option in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                    if isinstance(option, ast.Constant) and isinstance(option.value, str):
                        yield module.where(node), option.value


def asks_for_text(function: ast.expr) -> bool:
    """Whether a call takes the key of a sentence first."""
    if isinstance(function, ast.Name):
        return function.id == "text" or function.id in USER_ERRORS
    return isinstance(function, ast.Attribute) and function.attr == "text" and not is_field(function.value)


def is_field(value: ast.expr) -> bool:
    """Whether `.text(...)` is asked of a library's object, which has nothing to do with sentences."""
    return isinstance(value, ast.Name) and value.id in {"rich", "response"}


def placeholders(template: str) -> frozenset[str]:
    """The names in braces."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def command_lines(markdown: str) -> Iterator[str]:
    """The lines of the shell blocks of a page, without comments and prompts."""
    for block in SHELL_BLOCK.findall(markdown):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.strip().removeprefix("$ ").partition(" #")[0].strip()
            if command and not command.startswith("#"):
                yield command


def is_real(line: str) -> bool:
    """Whether a line's command exists: a script here, a subcommand of ours, a module, or a known program."""
    words = [word for word in line.split() if "=" not in word or word.startswith("-")]
    if not words:
        return True
    match words[0]:
        case "sh" | "bash":
            return (ROOT / words[1]).is_file()
        case "codeagent-lsp":
            return len(words) == 1 or words[1].startswith("--") or words[1] in subcommands()
        case "python" if words[1:2] == ["-m"]:
            return module_exists(words[2])
        case "pytest":
            return all((ROOT / word.partition("::")[0]).exists() for word in words[1:] if word.startswith("tests"))
    known = {"git", "cd", "pip", "pipx", "uvx", "mypy", "ruff", "lint-imports", "export", "harbor", "ray"}
    return words[0] in known or bool(shutil.which(words[0]))


def module_exists(name: str) -> bool:
    """Whether a module of ours, or any other, can be run by its name."""
    if not name.startswith(("codeagent_lsp", "tests")):
        return True
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def subcommands() -> set[str]:
    """The names after `codeagent-lsp`."""
    source = Path(cli.__file__).read_text("utf-8")
    return set(re.findall(r'add_parser\("([\w-]+)"', source))
