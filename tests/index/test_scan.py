"""Single files compared with the index; scans of everything are in `test_service.py`."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from codeagent_lsp.index.scan import Folders, Scan, scan, scan_files
from codeagent_lsp.index.store import Store, Work
from tests.index.rig import put
from tests.index.workspaces import write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "ws"
    place.mkdir()
    return place


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "index.sqlite")


def test_single_files_are_changed_removed_or_of_no_interest(root: Path, store: Store) -> None:
    write(root, {"a.py": "one = 1\n", "new.py": "", ".gitignore": "ignored.py\n", "ignored.py": ""})
    put(store, {"a.py": "1", "gone.py": "2", "ignored.py": "3"})
    names = ("a.py", "new.py", "gone.py", "ignored.py", "never.py", "../outside.py")
    found = scan_files(Folders([str(root)]), [f"{root}/{name}" for name in names], store, 7)
    changed = (Work("a.py", f"{root}/a.py", store.digest("a.py"), 8), Work("new.py", f"{root}/new.py", b"", 0))
    assert found == Scan(changed, ("gone.py", "ignored.py"), 7)


def test_what_a_walk_did_not_reach_is_not_removed(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"a.py": "one = 1\n", "b.py": "two = 2\n"})
    put(store, {"a.py": "1", "b.py": "2", "gone.py": "3"})
    assert scan(Folders([str(root)]), store.known(), threading.Event()).removed == ("gone.py",)
    monkeypatch.setattr("codeagent_lsp.index.scan.MAX_FILES", 1)
    assert scan(Folders([str(root)]), store.known(), threading.Event()).removed == ()


@pytest.mark.parametrize("more", [[], ["other"]])
def test_a_folder_that_is_gone_takes_its_files_with_it(root: Path, store: Store, more: list[str]) -> None:
    """Only those: names that begin the same are others, and what is there again is compared."""
    folders = Folders([str(root), *(str(root.parent / name) for name in more)])
    label = "ws/" if more else ""
    names = ("pkg/m1.py", "pkg/sub/größe.py", "pkg/back.py", "pkg.py", "pkg0/m.py", "pkg-old/m.py", "a/pkg/m.py")
    put(store, {f"{label}{name}": "x = 1\n" for name in names})
    write(root, {"pkg/back.py": "x = 2\n"})
    found = scan_files(folders, [f"{root}/pkg", f"{root}/pkg/m1.py"], store, 7)
    assert found.removed == (f"{label}pkg/m1.py", f"{label}pkg/sub/größe.py")
    assert [work.absolute for work in found.changed] == [f"{root}/pkg/back.py"]


def test_a_file_in_the_place_of_a_folder(root: Path, store: Store) -> None:
    put(store, {"pkg/m1.py": "x = 1\n"})
    write(root, {"pkg": "text\n"})
    found = scan_files(Folders([str(root)]), [f"{root}/pkg"], store, 7)
    assert (found.removed, [work.path for work in found.changed]) == (("pkg/m1.py",), ["pkg"])
