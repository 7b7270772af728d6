"""The patch of a run: git makes of the folder before exactly the folder after."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.batch.perform import patch_of
from codeagent_lsp.lsp_client.disk import FileWrite

NAMES = ("a.py", "deep/er/b.txt", "with blank.md", "ünïcode/文.txt", 'quo"te', "tab\tname", "-dash")
TEXTS = st.none() | st.sampled_from(
    [b"", b"one\n", b"no newline", b"crlf\r\nlines\r\n", b"latin \xe9\n", b"\xff\xfeu\x00", b"1\n2\n3\n4\n5\n6\n7\n8\n"]
)


def laid(folder: Path, files: dict[str, bytes | None]) -> None:
    for name, content in files.items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(NAMES), TEXTS), max_size=8), st.dictionaries(st.sampled_from(NAMES), TEXTS))
def test_git_applies_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes | None]], before: dict[str, bytes | None]
) -> None:
    folder = tmp_path_factory.mktemp("project")
    laid(folder, before)
    now = {name: text for name, text in before.items() if text is not None}
    writes = []
    for name, text in steps:
        writes.append(FileWrite(folder / name, now.get(name), text))
        now = {
            **{key: value for key, value in now.items() if key != name},
            **({name: text} if text is not None else {}),
        }
    patch = patch_of(writes, folder)
    assert bool(patch.text) == (files_of(folder) != now)
    if patch.text:
        subprocess.run(["git", "apply", "-"], input=patch.text, cwd=folder, check=True, capture_output=True)
    assert files_of(folder) == now


def test_what_came_back_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert patch_of([FileWrite(path, b"1\n", b"2\n"), FileWrite(path, b"2\n", b"1\n")], tmp_path) == patch_of(
        [], tmp_path
    )


def test_lines_are_counted(tmp_path: Path) -> None:
    patch = patch_of(
        [FileWrite(tmp_path / "a", b"1\n2\n", b"1\n3\n4\n"), FileWrite(tmp_path / "b", None, b"x\n")], tmp_path
    )
    assert (patch.files, patch.added, patch.removed) == (("a", "b"), 3, 1)
    assert b"new file mode" in patch.text
