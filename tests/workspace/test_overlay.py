"""What a run sees of one path, for every state of the disk, the open buffer and the staged changes."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from codeagent_lsp.errors import FileRefused

from .file_fakes import Workspace, workspace

DISK = ("absent", "text", "binary", "large", "folder")
BUFFER = ("closed", "open", "large")
STAGED = ("none", "text", "deleted")
LIMIT = 100
NAME = "src/a.txt"


def build(root: Path, disk: str, buffer: str, staged: str, name: str = NAME) -> Workspace:
    ws = workspace(root, max_bytes=LIMIT)
    match disk:
        case "text":
            ws.write(name, "disk\n")
        case "binary":
            ws.write(name, b"\0\1\2")
        case "large":
            ws.write(name, b"x" * (LIMIT + 1))
        case "folder":
            ws.write(f"{name}/inside.txt", "x")
    if buffer != "closed":
        ws.open(name, "buffer\n" if buffer == "open" else "y" * (LIMIT + 1))
    if staged != "none":
        ws.stage(name, "staged\n" if staged == "text" else None)
    return ws


def expected(disk: str, buffer: str, staged: str) -> str:
    """The text, or a word of the refusal."""
    if staged == "deleted":
        return "!deleted"
    if staged == "text":
        return "staged\n"
    if buffer != "closed":
        return "buffer\n" if buffer == "open" else "!limit"
    return {"absent": "!not exist", "text": "disk\n", "binary": "!binary", "large": "!limit", "folder": "!folder"}[disk]


@pytest.mark.parametrize(("disk", "buffer", "staged"), list(product(DISK, BUFFER, STAGED)))
def test_reading(tmp_path: Path, disk: str, buffer: str, staged: str) -> None:
    ws = build(tmp_path / "ws", disk, buffer, staged)
    want = expected(disk, buffer, staged)
    if want.startswith("!"):
        with pytest.raises(FileRefused, match=want[1:]) as caught:
            ws.view.read(ws.path(NAME))
        assert NAME in str(caught.value)
    else:
        assert ws.view.read(ws.path(NAME)).text == want


@pytest.mark.parametrize(("disk", "buffer", "staged"), list(product(DISK, BUFFER, STAGED)))
def test_the_base_never_knows_what_is_staged(tmp_path: Path, disk: str, buffer: str, staged: str) -> None:
    ws = build(tmp_path / "ws", disk, buffer, staged)
    want = expected(disk, buffer, "none")
    if want == "!not exist":
        assert ws.view.base(ws.path(NAME)) is None
    elif want.startswith("!"):
        with pytest.raises(FileRefused, match=want[1:]):
            ws.view.base(ws.path(NAME))
    else:
        base = ws.view.base(ws.path(NAME))
        assert base is not None and base.text == want
        assert base.source == ("disk" if buffer == "closed" else "buffer")


@pytest.mark.parametrize(("disk", "buffer", "staged"), list(product(DISK[:4], BUFFER, STAGED)))
def test_existing_listing_and_walking_agree(tmp_path: Path, disk: str, buffer: str, staged: str) -> None:
    ws = build(tmp_path / "ws", disk, buffer, staged)
    there = staged == "text" or (staged == "none" and (disk != "absent" or buffer != "closed"))
    assert ws.view.exists(ws.path(NAME)) == there
    assert [os.path.relpath(path, ws.root) for path in ws.view.walk(str(ws.root))] == [NAME] * there
    listed = [entry.path for entry in ws.view.list_dir(str(ws.root), depth=3).entries]
    assert (ws.path(NAME) in listed) == there
    assert list(ws.view.walk(ws.path(NAME))) == [ws.path(NAME)] * there


@pytest.mark.parametrize(("buffer", "staged"), list(product(BUFFER[:2], STAGED)))
def test_an_ignored_file_can_be_read_but_is_not_met(tmp_path: Path, buffer: str, staged: str) -> None:
    ws = build(tmp_path / "ws", "text", buffer, staged, "src/a.log")
    ws.write(".gitignore", "*.log\n")
    assert [os.path.relpath(path, ws.root) for path in ws.view.walk(str(ws.root))] == [".gitignore"]
    want = expected("text", buffer, staged)
    if not want.startswith("!"):
        assert ws.view.read(ws.path("src/a.log")).text == want


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"plain\n", "utf-8"),
        (b"\xef\xbb\xbfmark\n", "utf-8-sig"),
        ("wide\n".encode("utf-16"), "utf-16-le"),
        (b"\xfe\xff" + "wide\n".encode("utf-16-be"), "utf-16-be"),
        (b"caf\xe9\n", "latin-1"),
        (b"\0binary", "utf-8"),
    ],
)
def test_an_open_or_staged_file_keeps_the_encoding_of_the_disk(tmp_path: Path, data: bytes, encoding: str) -> None:
    ws = workspace(tmp_path / "ws")
    ws.write(NAME, data)
    ws.open(NAME, "open")
    assert ws.view.read(ws.path(NAME)).encoding == encoding
    ws.stage(NAME, "staged")
    assert ws.view.read(ws.path(NAME)).encoding == encoding
