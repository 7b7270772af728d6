"""Names of files relative to the workspace folders, to and fro; what is refused is in `test_paths.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.errors import PathRefused
from codeagent_lsp.workspace.files.paths import FolderNames


@pytest.mark.parametrize(
    ("folders", "path", "shown"),
    [
        (["one"], "one/a.py", "a.py"),
        (["one"], "one", "."),
        (["one", "two"], "two/b/c.py", "two/b/c.py"),
        (["one", "two"], "two", "two"),
    ],
)
def test_a_name_leads_back_to_its_file(tmp_path: Path, folders: list[str], path: str, shown: str) -> None:
    places = [str(tmp_path / folder) for folder in folders]
    file = tmp_path / path
    file.mkdir(parents=True)
    names = FolderNames(places)
    root = next(place for place in places if f"{file}/".startswith(f"{place}/"))
    assert names.relative(str(file), root) == shown
    assert Path(names.absolute(shown)) == file


def test_folders_of_one_name_are_shown_by_their_whole_path() -> None:
    names = FolderNames(["/x/same", "/y/same", "/z"])
    assert names.relative("/y/same/a", "/y/same") == "/y/same/a"
    assert names.relative("/z/a", "/z") == "z/a"


def test_the_first_folder_that_has_a_file_has_its_name_else_the_first(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "b.py").write_bytes(b"")
    names = FolderNames([str(tmp_path / "one"), str(tmp_path / "two")])
    assert names.absolute("b.py") == str(tmp_path / "two" / "b.py")
    assert names.absolute("none.py") == str(tmp_path / "one" / "none.py")
    assert names.absolute("/any/where") == "/any/where"


def test_without_a_folder_there_are_no_names() -> None:
    with pytest.raises(PathRefused, match="No workspace folder"):
        FolderNames([]).absolute("a.py")
