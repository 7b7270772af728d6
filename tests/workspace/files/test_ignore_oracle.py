"""Generated trees with generated ignore files: what a walk leaves out is what git leaves out."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.ignore import BUILT_IN, IgnoreRules
from tests.workspace.file_fakes import workspace

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")]

FOLDERS = ("src", "out", "docs", "a b", "deep", "x.d")
FILES = ("main.py", "a.log", "keep.log", "data.csv", "note.txt", "#hash", "!bang", "sp ace", "b[1].c", "Z.PY", "out")
PATTERNS = (
    *(
        "*.log",
        "!keep.log",
        "*.py",
        "!main.py",
        "out/",
        "/out",
        "out",
        "/src/*.csv",
        "src/**",
        "**/deep",
        "deep/**/a.log",
    ),
    *("docs/*", "!docs/note.txt", "*.[ch]", "b[1].c", "b\\[1\\].c", "\\#hash", "\\!bang", "# comment", "", "   ", "*"),
    *("!*/", "!*.txt", "note.t?t", "[a-m]*.csv", "[!a-m]*.csv", "sp\\ ace", "data.csv ", "/**/x.d", "x.d/**/", "a b/"),
    *(
        "a*g",
        "**",
        "**/*.txt",
        "src/",
        "!src/",
        "/deep/deep",
        "./note.txt",
        "deep//a.log",
        "*.LOG",
        "z.py",
        "[]-]",
        "\\",
    ),
)


def grow(folder: Path, chance: random.Random, depth: int) -> None:
    """Files, folders and now and then an ignore file."""
    folder.mkdir(exist_ok=True)
    if chance.random() < 0.5:
        lines = chance.choices(PATTERNS, k=chance.randrange(1, 6))
        (folder / ".gitignore").write_text(chance.choice(["\n", "\n", "\r\n"]).join(lines) + chance.choice(["", "\n"]))
    for name in chance.sample(FILES, 6):
        (folder / name).write_text("x")
    for name in chance.sample(FOLDERS, 3) if depth else ():
        if not (folder / name).exists():
            grow(folder / name, chance, depth - 1)


def git(root: Path, *arguments: str) -> list[str]:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(root), "-c", "core.quotePath=false", "-c", "core.ignoreCase=false", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | quiet,
    )
    return sorted(name for name in done.stdout.split("\0") if name)


@pytest.mark.parametrize("seed", range(12))
def test_a_walk_finds_what_git_would_add(tmp_path: Path, seed: int) -> None:
    grow(tmp_path / "ws", random.Random(seed), 3)
    ws = workspace(tmp_path / "ws")
    git(ws.root, "init", "-q")
    (ws.root / ".git/info").mkdir(exist_ok=True)
    (ws.root / ".git/info/exclude").write_text("Z.PY\n")
    ours = sorted(os.path.relpath(path, ws.root) for path in ws.view.walk(str(ws.root)))
    assert ours == git(ws.root, "ls-files", "-z", "--others", "--exclude-standard")


@pytest.mark.parametrize("seed", range(12, 18))
def test_every_single_name_is_judged_as_the_walk_judges_it(tmp_path: Path, seed: int) -> None:
    grow(tmp_path / "ws", random.Random(seed), 2)
    ws = workspace(tmp_path / "ws")
    git(ws.root, "init", "-q")
    walked = set(ws.view.walk(str(ws.root)))
    rules = IgnoreRules(str(ws.root))
    every = [path for path in ws.root.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert {str(path) for path in every if not rules.is_ignored(str(path), is_dir=False)} == walked
    assert any(str(path) not in walked for path in every)


@pytest.mark.parametrize("name", sorted(BUILT_IN - {".git"}))
def test_built_in_names_hold_at_any_depth_even_when_asked_back(tmp_path: Path, name: str) -> None:
    ws = workspace(tmp_path / "ws")
    ws.write(".gitignore", f"!{name}\n!**/{name}/**\n")
    ws.write(f"src/deep/{name}/inside.txt", "x")
    ws.write(f"src/{name}.txt", "x")
    assert [os.path.relpath(path, ws.root) for path in ws.view.walk(str(ws.root))] == [".gitignore", f"src/{name}.txt"]
