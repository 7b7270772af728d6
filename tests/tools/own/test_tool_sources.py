"""Finding own tools: which files count, which never do, and what trust is given to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codeagent_lsp.tools.own.tool_sources import MAX_BYTES, find_sources
from codeagent_lsp.tools.own.worker_connection import launch_of


def written(path: Path, text: str = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(own: Path, *folders: Path) -> list[tuple[str, str]]:
    sources, _ = find_sources(own, [str(folder) for folder in folders])
    return [(source.place, source.name) for source in sources if source.place != "package"]


def test_plain_python_files_count_in_both_folders(tmp_path: Path) -> None:
    mine = written(tmp_path / "own/tools/a.py")
    theirs = written(tmp_path / "ws/.codeagent/tools/b.py")
    for other in (
        "own/tools/_a.py",
        "own/tools/.a.py",
        "own/tools/a.txt",
        "own/tools/deep/c.py",
        "own/b.py",
        "own/tools/a\n.py",
        "own/tools/\u202eyp.py",
    ):
        written(tmp_path / other)
    (tmp_path / "own/tools/folder.py").mkdir()
    os.mkfifo(tmp_path / "own/tools/pipe.py")
    assert names(tmp_path / "own", tmp_path / "ws") == [("user", str(mine)), ("project", str(theirs))]
    assert names(tmp_path / "nothing", tmp_path / "nowhere") == []


@pytest.mark.parametrize("link", [".codeagent", ".codeagent/tools", ".codeagent/tools/b.py"])
def test_links_in_a_workspace_are_not_followed(tmp_path: Path, link: str) -> None:
    real = tmp_path / "ws/.codeagent/tools/b.py"
    written(real)
    (tmp_path / "ws" / link).rename(tmp_path / "elsewhere")
    (tmp_path / "ws" / link).symlink_to(tmp_path / "elsewhere")
    assert real.exists() and names(tmp_path / "own", tmp_path / "ws") == []


def test_a_file_too_large_is_told(tmp_path: Path) -> None:
    written(tmp_path / "own/tools/a.py", "#" * (MAX_BYTES + 1))
    sources, problems = find_sources(tmp_path / "own", [])
    assert [source for source in sources if source.place == "user"] == []
    assert "> 1 MiB" in str(problems[0])


def test_trust_belongs_to_the_path_and_the_bytes(tmp_path: Path) -> None:
    written(tmp_path / "own/tools/a.py")
    written(tmp_path / "own/tools/b.py")
    one, other = find_sources(tmp_path / "own", [])[0][:2]
    assert one.digest == other.digest and one.approval != other.approval
    written(tmp_path / "own/tools/a.py", "x = 2\n")
    assert find_sources(tmp_path / "own", [])[0][0].approval != one.approval


def test_a_worker_searches_no_relative_folder_for_modules(tmp_path: Path) -> None:
    written(tmp_path / "own/tools/a.py")
    source = find_sources(tmp_path / "own", [])[0][0]
    path = os.pathsep.join(["", ".", "lib", "/opt/lib", str(tmp_path), str(tmp_path / "own/../lib")])
    launch = launch_of(source.settings(5.0), str(tmp_path), {"PATH": "/bin", "PYTHONPATH": path})
    assert launch.environment["PYTHONPATH"] == "/opt/lib" and launch.argv[1] == "-P"
    launch = launch_of(source.settings(5.0), str(tmp_path), {"PATH": "/bin", "PYTHONPATH": "."})
    assert "PYTHONPATH" not in launch.environment
