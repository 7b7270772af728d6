"""Ignore rules, compared with git itself where it matters."""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.ignore import IgnoreRules


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _ignored(root: Path, name: str) -> bool:
    return IgnoreRules(str(root)).is_ignored(str(root / name), is_dir=name.endswith("/"))


@pytest.mark.parametrize(
    "name", ["node_modules/", "src/node_modules/x/y.js", ".git/config", "a/__pycache__/m.pyc", ".venv/bin/python"]
)
def test_built_in(tmp_path: Path, name: str) -> None:
    assert _ignored(tmp_path, name)


def test_nothing_else_without_rules(tmp_path: Path) -> None:
    assert not _ignored(tmp_path, "src/a.py")
    assert not IgnoreRules(str(tmp_path)).is_ignored(str(tmp_path), is_dir=True)


RULES = {
    ".gitignore": "*.log\n!keep.log\nbuild/\n/top.txt\ndoc/**/x\n# note\n\n\\!bang\ntrail  \n",
    "sub/.gitignore": "!again.log\nlocal\n",
    "sub/deep/.gitignore": "*\n!.gitignore\n!kept\r\n",
    ".git/info/exclude": "private\n",
}
NAMES = """a.log keep.log sub/a.log sub/again.log build/ build/x/y sub/build/z build top.txt sub/top.txt doc/x doc/a/b/x
!bang trail sub/local local sub/deep/a sub/deep/kept private sub/private src/a.py build.txt""".split()


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_same_as_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, text in RULES.items():
        _write(tmp_path, name, text)
    asked = [name for name in NAMES if name != "build"]  # git looks at the disk for what is a folder
    answer = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin"],
        input="\n".join(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [name for name in asked if _ignored(tmp_path, name)]
    assert ours == answer.stdout.split()
    assert len(ours) > 8


def test_a_pattern_for_folders_spares_files(tmp_path: Path) -> None:
    _write(tmp_path, ".gitignore", "build/\n")
    assert _ignored(tmp_path, "build/") and not _ignored(tmp_path, "build")


def test_own_file_only_takes_away(tmp_path: Path) -> None:
    _write(tmp_path, ".gitignore", "*.log\n")
    _write(tmp_path, ".codeagentignore", "!a.log\n*.csv\n!small.csv\n")
    assert _ignored(tmp_path, "a.log")
    assert _ignored(tmp_path, "big.csv") and not _ignored(tmp_path, "small.csv")


def test_rules_above_a_folder_of_a_repository_hold(tmp_path: Path) -> None:
    _write(tmp_path, ".gitignore", "*.gen\n/sub/only\n")
    (tmp_path / ".git").mkdir()
    assert _ignored(tmp_path / "sub", "a.gen") and _ignored(tmp_path / "sub", "only")
    assert not _ignored(tmp_path / "sub", "x/only")


def test_a_folder_that_a_repository_ignores_has_only_its_own_rules(tmp_path: Path) -> None:
    _write(tmp_path, ".gitignore", "/out/\n*.txt\n")
    _write(tmp_path, "out/ws/.gitignore", "*.log\n")
    (tmp_path / ".git").mkdir()
    assert not _ignored(tmp_path / "out/ws", "a.py") and not _ignored(tmp_path / "out/ws", "a.txt")
    assert _ignored(tmp_path / "out/ws", "sub/a.log")


def test_a_change_is_seen(tmp_path: Path) -> None:
    rules = IgnoreRules(str(tmp_path))
    path = str(tmp_path / "a.txt")
    assert not rules.is_ignored(path, is_dir=False)
    _write(tmp_path, ".gitignore", "*.txt\n")
    assert rules.is_ignored(path, is_dir=False)
    _write(tmp_path, ".gitignore", "*.text\n")
    assert not rules.is_ignored(path, is_dir=False)
    (tmp_path / ".gitignore").unlink()
    assert not rules.is_ignored(path, is_dir=False)


def test_files_are_read_only_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, ".gitignore", "*.txt\n")
    rules = IgnoreRules(str(tmp_path))
    opened: list[object] = []
    real = os.open

    def counting(path: str, flags: int, *rest: int) -> int:
        opened.append(path)
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", counting)
    for _ in range(5):
        assert rules.is_ignored(str(tmp_path / "a.txt"), is_dir=False)
    assert len(opened) == 1


def test_bad_files_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe\n!\n[z-a]\n/\n*.log\n")
    assert _ignored(tmp_path, "a.log") and not _ignored(tmp_path, "a.py")
    (tmp_path / "dir/.gitignore").mkdir(parents=True)
    os.mkfifo(tmp_path / "dir/.codeagentignore")
    assert not _ignored(tmp_path, "dir/a.py")


def test_a_linked_rule_file_is_not_followed(tmp_path: Path) -> None:
    _write(tmp_path, "outside", "*\n")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/.gitignore").symlink_to("../outside")
    assert not _ignored(tmp_path / "ws", "a.py")


@pytest.mark.parametrize(
    ("rules", "ignored", "kept"),
    [
        ("build/**\n!build/keep.txt\n", ["build/a", "build/sub/"], ["build/", "build/keep.txt"]),
        ("*.txt\n!src/\n", ["src/a.txt", "src/deep/a.txt"], ["src/", "src/a.py"]),
        ("*.txt\n!*/\n", ["a.txt", "src/a.txt"], ["src/", "src/deep/"]),
        ("*\n!*/\n!*.py\n", ["a.txt", "src/a.txt"], ["a.py", "src/", "src/deep/a.py"]),
        ("out/**/\n", ["out/sub/", "out/sub/deep/"], ["out/", "out/a.txt"]),
        ("out/*\n!out/sub/\n", ["out/a", "out/other/"], ["out/", "out/sub/", "out/sub/a"]),
    ],
)
def test_asking_back_a_folder_asks_back_nothing_in_it(
    tmp_path: Path, rules: str, ignored: list[str], kept: list[str]
) -> None:
    _write(tmp_path, ".gitignore", rules)
    assert [name for name in (*ignored, *kept) if _ignored(tmp_path, name)] == ignored


@pytest.mark.parametrize(("rule", "name"), [("caf\u00e9.py", "cafe\u0301.py"), ("cafe\u0301/*.py", "caf\u00e9/a.py")])
def test_what_agents_are_to_leave_alone_is_named_however_unicode_composes_it(
    tmp_path: Path, rule: str, name: str
) -> None:
    _write(tmp_path, ".codeagentignore", f"{rule}\n")
    _write(tmp_path, "cafe\u0301/.codeagentignore", "x\n")
    _write(tmp_path, "cafe\u0301/x", "")
    assert _ignored(tmp_path, name) and IgnoreRules(str(tmp_path)).is_named_for_agents(str(tmp_path / name))
    assert _ignored(tmp_path, "cafe\u0301/x") and not _ignored(tmp_path, "cafe\u0301/y")
