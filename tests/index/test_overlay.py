"""Texts that are not on disk over the index: buffers and staged ones count, each is looked into once, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeagent_lsp.index import answers as overlays
from codeagent_lsp.index import intake
from codeagent_lsp.index.answers import Overlay
from codeagent_lsp.index.intake import packed_text
from codeagent_lsp.index.service import IndexService
from tests.index.workspaces import service, write
from tests.workspace.file_fakes import Workspace, workspace

SHOP = {"a.py": "def disk(): pass\n", "m.py": "disk()\n", "z.py": "def other(): pass\n"}


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    made = workspace(tmp_path / "ws")
    write(made.root, SHOP)
    return made


@pytest.fixture
async def index(place: Workspace, tmp_path: Path) -> AsyncIterator[IndexService]:
    async with service(place.root, store=tmp_path / "state" / "index.sqlite") as made:
        await made.refresh()
        yield made


@pytest.fixture
def overlay(index: IndexService) -> Overlay:
    return Overlay(index.store, index.folders)


def test_a_buffer_counts_before_the_disk_and_what_is_staged_before_both(place: Workspace, overlay: Overlay) -> None:
    place.open("a.py", "def buffer():\n    other()\n")
    assert overlay.view(place.view).defining("buffer") == ("a.py",)
    place.stage("a.py", "def staged(): pass\n")
    view = overlay.view(place.view)
    assert (view.defining("disk"), view.defining("buffer"), view.defining("staged")) == ((), (), ("a.py",))


def test_every_answer_has_it(place: Workspace, index: IndexService, overlay: Overlay) -> None:
    before = overlay.view(place.view)
    place.open("a.py", "def buffer():\n    other()\n")
    place.stage("new.py", "def fresh(): pass\n")
    view = overlay.view(place.view)
    assert view.using("other") == ("a.py",)
    assert [path for path, _ in view.defined()] == ["a.py", "m.py", "new.py", "z.py"]
    assert dict(view.used())["a.py"] == {"other": 1}
    assert [symbol.name for _, symbols in view.definitions() for symbol in symbols] == ["buffer", "fresh", "other"]
    assert dict(view.all_tags())["a.py"] == view.tags("a.py")
    assert [symbol.name for symbol in view.symbols("a.py")] == ["buffer"]
    assert [symbol.name for symbol in view.symbols("z.py")] == ["other"]
    assert view.files()["a.py"] != before.files()["a.py"]
    assert view.generation() != before.generation()
    assert before.defining("disk") == ("a.py",)


def test_deleted_and_moved_files_are_gone(place: Workspace, overlay: Overlay) -> None:
    place.stage("a.py", None)
    place.stage("b.py", SHOP["a.py"])
    view = overlay.view(place.view)
    assert set(view.files()) == {"b.py", "m.py", "z.py"}
    assert (view.defining("disk"), view.using("disk")) == (("b.py",), ("m.py",))
    assert (view.tags("a.py"), view.symbols("a.py")) == (None, ())
    assert [path for path, _ in view.all_tags()] == ["b.py", "m.py", "z.py"]


def test_a_new_file_that_is_deleted_again_is_nowhere(place: Workspace, overlay: Overlay) -> None:
    place.stage("new.py", "def fresh(): pass\n")
    place.stage("new.py", None)
    assert set(overlay.view(place.view).files()) == set(SHOP)


def test_an_open_file_as_it_is_on_disk_changes_nothing(place: Workspace, index: IndexService, overlay: Overlay) -> None:
    plain = overlay.view(place.view)
    place.open("a.py", SHOP["a.py"])
    view = overlay.view(place.view)
    assert view.unsaved == {}
    assert view.generation() == plain.generation() == index.view().generation()


def test_the_same_texts_are_the_same_generation(place: Workspace, overlay: Overlay) -> None:
    seen = set()
    for text in ("def one(): pass\n", "def two(): pass\n", "def one(): pass\n"):
        place.open("a.py", text)
        seen.add(overlay.view(place.view).generation())
    assert len(seen) == 2


def test_each_text_is_looked_into_once(place: Workspace, overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counting(path: str, text: str) -> object:
        looked.append(path)
        return packed_text(path, text)

    monkeypatch.setattr(intake, "packed_text", counting)
    place.open("a.py", "def buffer(): pass\n")
    for _ in range(3):
        overlay.view(place.view)
    assert looked == ["a.py"]
    place.stage("a.py", "def staged(): pass\n")
    overlay.view(place.view)
    overlay.view(place.view)
    assert looked == ["a.py", "a.py"]


def test_what_is_kept_of_texts_is_bounded(place: Workspace, overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "_KEPT", 3)
    for number in range(9):
        place.open("a.py", f"def f{number}(): pass\n")
        assert overlay.view(place.view).defining(f"f{number}") == ("a.py",)
    assert len(overlay._known) == 3


def test_ignored_files_those_elsewhere_and_what_is_no_text_are_left_out(place: Workspace, overlay: Overlay) -> None:
    write(place.root, {".gitignore": "*.log\nout/\n"})
    place.open("a.log", "x")
    place.stage("out/b.py", "def hidden(): pass\n")
    place.buffers.open("/elsewhere/c.py", "def far(): pass\n")
    place.buffers.open("untitled:Untitled-1", "def nowhere(): pass\n")
    place.open("m.py", "x" * (2 << 20))
    again = workspace(place.root)
    again.buffers, again.staged = place.buffers, place.staged
    view = overlay.view(type(place.view)(again.view.roots, place.buffers, place.staged))
    assert view.unsaved == {}
    assert set(view.files()) == set(SHOP)


def test_broken_and_empty_texts_are_fine(place: Workspace, overlay: Overlay) -> None:
    place.open("a.py", "def half(:\n  class\n")
    place.open("z.py", "")
    view = overlay.view(place.view)
    assert view.symbols("z.py") == ()
    assert view.tags("a.py") is not None
