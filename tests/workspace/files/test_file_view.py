"""The view of a run: staged over buffers over disk, for reading and for listing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.file_view import FileText
from tests.workspace.file_fakes import Workspace, workspace


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "ws")


def _names(ws: Workspace, path: str = "") -> list[str]:
    return [os.path.relpath(found, ws.root) for found in ws.view.walk(str(ws.root / path))]


def _listed(ws: Workspace, path: str = "", depth: int = 1) -> list[str]:
    entries = ws.view.list_dir(str(ws.root / path), depth).entries
    return [os.path.relpath(entry.path, ws.root) + ("/" if entry.kind == "folder" else "") for entry in entries]


class TestRead:
    def test_the_disk(self, ws: Workspace) -> None:
        ws.write("a.py", b"a\r\n")
        assert ws.view.read(ws.path("a.py")) == FileText(ws.path("a.py"), "a\r\n", "disk")

    def test_a_buffer_hides_the_disk_and_has_its_version(self, ws: Workspace) -> None:
        ws.write("a.py", b"\xef\xbb\xbfdisk")
        ws.open("a.py", "buffer", 7)
        found = ws.view.read(ws.path("a.py"))
        assert (found.text, found.source, found.version, found.encoding) == ("buffer", "buffer", 7, "utf-8-sig")

    def test_staged_text_hides_both_but_not_from_the_base(self, ws: Workspace) -> None:
        ws.write("a.py", b"caf\xe9")
        ws.open("a.py", "buffer", 7)
        ws.stage("a.py", "staged")
        found = ws.view.read(ws.path("a.py"))
        assert (found.text, found.source, found.version, found.encoding) == ("staged", "staged", None, "latin-1")
        base = ws.view.base(ws.path("a.py"))
        assert base is not None and base.text == "buffer"

    def test_a_staged_deletion_is_told_and_the_base_stays(self, ws: Workspace) -> None:
        ws.write("a.py", "x")
        ws.stage("a.py", None)
        with pytest.raises(FileRefused, match=r"a\.py is deleted in the pending changes"):
            ws.view.read(ws.path("a.py"))
        base = ws.view.base(ws.path("a.py"))
        assert base is not None and base.text == "x"

    def test_a_buffer_and_a_staged_text_without_a_file(self, ws: Workspace) -> None:
        ws.open("new/b.py", "b")
        ws.stage("new/c.py", "c")
        assert ws.view.read(ws.path("new/b.py")).text == "b"
        assert ws.view.read(ws.path("new/c.py")).encoding == "utf-8"
        assert ws.view.base(ws.path("new/c.py")) is None

    def test_an_untitled_buffer_never_touches_the_disk(self, ws: Workspace) -> None:
        ws.buffers.open("untitled:U-1", "draft", 3)
        assert ws.view.read("untitled:U-1").text == "draft"
        assert ws.view.exists("untitled:U-1")
        assert not ws.view.exists("untitled:U-2")
        assert ws.view.base("untitled:U-2") is None
        with pytest.raises(FileRefused, match="does not exist"):
            ws.view.read("untitled:U-2")
        assert _names(ws) == []

    def test_a_note_for_a_guessed_encoding(self, ws: Workspace) -> None:
        ws.write("a.txt", b"caf\xe9")
        assert "Latin-1" in ws.view.read(ws.path("a.txt")).note

    def test_refusals_say_what_it_is(self, ws: Workspace) -> None:
        ws.write("bin", b"\0\1")
        ws.write("src/a.py", "")
        os.mkfifo(ws.path("pipe"))
        for name, says in [("bin", "bin: .*binary"), ("src", "src is a folder"), ("pipe", "pipe is a pipe")]:
            with pytest.raises(FileRefused, match=says):
                ws.view.read(ws.path(name))

    def test_size_limit_on_disk_and_in_buffers(self, tmp_path: Path) -> None:
        ws = workspace(tmp_path / "ws", max_bytes=8)
        ws.write("big", "123456789")
        ws.write("fits", "12345678")
        ws.open("wide", "äöüäö")
        ws.open("short", "äöüä")
        assert ws.view.read(ws.path("fits")).text == "12345678"
        assert ws.view.read(ws.path("short")).text == "äöüä"
        for name, size in (("big", 9), ("wide", 10)):
            with pytest.raises(FileRefused, match=f"{name} has {size} bytes.*limit of 8"):
                ws.view.read(ws.path(name))

    def test_a_link_is_read_where_it_leads_once_resolved(self, ws: Workspace) -> None:
        ws.write("src/a.py", "x")
        (ws.root / "link.py").symlink_to("src/a.py")
        assert ws.view.read(ws.view.roots.resolve("link.py")).path == ws.path("src/a.py")


class TestMissing:
    def test_a_typo(self, ws: Workspace) -> None:
        ws.write("src/server.py", "")
        with pytest.raises(FileRefused, match=r"src/sever\.py does not exist\. Did you mean src/server\.py\?"):
            ws.view.read(ws.path("src/sever.py"))

    def test_the_same_name_elsewhere(self, ws: Workspace) -> None:
        ws.write("lib/deep/Util.py", "")
        with pytest.raises(FileRefused, match=r"lib/deep/Util\.py"):
            ws.view.read(ws.path("src/util.py"))

    def test_nothing_alike(self, ws: Workspace) -> None:
        ws.write("zzz", "")
        with pytest.raises(FileRefused, match=r"does not exist\.$"):
            ws.view.read(ws.path("a/b/c.py"))


class TestExists:
    def test_all_layers(self, ws: Workspace) -> None:
        ws.write("disk/a", "")
        ws.write("gone", "")
        ws.stage("gone", None)
        ws.stage("new/sub/c", "")
        ws.open("buf", "")
        for name in ("disk/a", "disk", "new/sub/c", "new/sub", "new", "buf"):
            assert ws.view.exists(ws.path(name)), name
        for name in ("gone", "none", "disk/a/x", "new/none"):
            assert not ws.view.exists(ws.path(name)), name


class TestListing:
    def test_tree_order_kinds_and_depth(self, ws: Workspace) -> None:
        for name in ("b/x.py", "b/c/y.py", "a.py", "b.py"):
            ws.write(name, "")
        (ws.root / "ln").symlink_to("b")
        assert _listed(ws) == ["a.py", "b/", "b.py", "ln"]
        assert _listed(ws, depth=2) == ["a.py", "b/", "b/c/", "b/x.py", "b.py", "ln"]
        assert _listed(ws, "b", depth=9) == ["b/c/", "b/c/y.py", "b/x.py"]

    def test_staged_and_open_files_are_there_and_deleted_ones_not(self, ws: Workspace) -> None:
        ws.write("old.py", "")
        ws.write("kept.py", "")
        ws.stage("old.py", None)
        ws.stage("new/deep/n.py", "")
        ws.open("open.py", "")
        assert _listed(ws, depth=3) == ["kept.py", "new/", "new/deep/", "new/deep/n.py", "open.py"]
        assert _listed(ws, "new/deep") == ["new/deep/n.py"]

    def test_ignored_names_are_left_out_staged_ones_too(self, ws: Workspace) -> None:
        ws.write(".gitignore", "*.log\nout/\n")
        for name in ("a.log", "out/x", "node_modules/m/i.js", "a.py", "sub/b.log", "sub/b.py", ".git/HEAD"):
            ws.write(name, "")
        ws.stage("new.log", "")
        assert _listed(ws, depth=9) == [".gitignore", "a.py", "sub/", "sub/b.py"]

    def test_an_ignored_folder_can_be_asked_for(self, ws: Workspace) -> None:
        ws.write("node_modules/m/i.js", "")
        assert _listed(ws, "node_modules", depth=2) == ["node_modules/m/", "node_modules/m/i.js"]
        assert _names(ws, "node_modules") == ["node_modules/m/i.js"]

    def test_bounded(self, ws: Workspace) -> None:
        for number in range(12):
            ws.write(f"f{number:02}", "")
        listing = ws.view.list_dir(str(ws.root), limit=5)
        assert [Path(entry.path).name for entry in listing.entries] == ["f00", "f01", "f02", "f03", "f04"]
        assert listing.truncated
        assert not ws.view.list_dir(str(ws.root), limit=12).truncated

    def test_refused(self, ws: Workspace) -> None:
        ws.write("a.py", "")
        ws.stage("s.py", "")
        for name in ("a.py", "s.py"):
            with pytest.raises(FileRefused, match="not a folder"):
                ws.view.list_dir(ws.path(name))
        with pytest.raises(FileRefused, match="does not exist"):
            ws.view.list_dir(ws.path("none"))


class TestWalk:
    def test_files_of_all_layers_without_links(self, ws: Workspace) -> None:
        for name in ("b/x.py", "a.py", "b.py", "gone.py"):
            ws.write(name, "")
        (ws.root / "b/up").symlink_to("..")
        (ws.root / "ln.py").symlink_to("a.py")
        ws.stage("gone.py", None)
        ws.stage("b/new.py", "")
        assert _names(ws) == ["a.py", "b/new.py", "b/x.py", "b.py"]
        assert _names(ws, "b") == ["b/new.py", "b/x.py"]

    def test_a_file_is_its_own_walk(self, ws: Workspace) -> None:
        ws.write("a.log", "")
        ws.write(".gitignore", "*.log")
        assert _names(ws, "a.log") == ["a.log"]
        assert _names(ws, "none") == []
        ws.stage("a.log", None)
        assert _names(ws, "a.log") == []

    def test_bounded(self, ws: Workspace) -> None:
        for number in range(9):
            ws.write(f"d/f{number}", "")
        assert len(list(ws.view.walk(str(ws.root), limit=4))) == 4

    def test_deep_trees_and_strange_names(self, ws: Workspace) -> None:
        deep = "/".join(["d"] * 300)
        ws.stage(f"{deep}/f", "")
        odd = os.fsdecode(b"caf\xe9")
        ws.write(odd, "x")
        assert _names(ws) == [odd, f"{deep}/f"]

    def test_nested_rules_hold_in_their_folder(self, ws: Workspace) -> None:
        ws.write("sub/.gitignore", "x\n")
        ws.write("sub/x", "")
        ws.write("sub/y/x", "")
        ws.write("x", "")
        assert _names(ws) == ["sub/.gitignore", "x"]
        assert _names(ws, "sub/y") == []
        assert ws.view.is_ignored(ws.path("sub/x")) and not ws.view.is_ignored(ws.path("x"))
