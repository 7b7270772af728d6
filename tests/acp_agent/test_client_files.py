# ruff: noqa: ASYNC240 - the files are small, and nothing else waits for the loop

"""The files of a client: what the server is told of them, and how changes get into them."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.acp_agent.client_files import ClientFiles, FileRequestFailed
from codeagent_lsp.workspace.files import uris


class Client:
    """A client with some open buffers. It keeps line ends to itself if it `hides` them."""

    def __init__(self, *, reads: bool = True, writes: bool = True, hides: bool = False) -> None:
        self.reads, self.writes, self.hides = reads, writes, hides
        self.buffers: dict[str, str] = {}
        self.refuses = False

    async def read(self, path: str) -> str:
        await asyncio.sleep(0)
        if path in self.buffers:
            return self.buffers[path]
        try:
            text = Path(path).read_bytes().decode()
        except (OSError, ValueError) as error:
            raise FileRequestFailed(str(error)) from error
        return text.replace("\r\n", "\n") if self.hides else text

    async def write(self, path: str, text: str) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise FileRequestFailed("read only")
        if path in self.buffers:
            self.buffers[path] = text
        Path(path).write_bytes((text.replace("\n", "\r\n") if self.hides else text).encode())


class Server:
    """What the server knows by the notifications that it gets."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[int, str]] = {}
        self.changed: list[tuple[str, int]] = []

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        match method.removeprefix("textDocument/"):
            case "didOpen":
                assert params["textDocument"]["uri"] not in self.open
                self._put(params["textDocument"], params["textDocument"]["text"])
            case "didChange":
                assert params["textDocument"]["version"] == self.open[params["textDocument"]["uri"]][0] + 1
                self._put(params["textDocument"], params["contentChanges"][0]["text"])
            case "didClose":
                del self.open[params["textDocument"]["uri"]]
            case "workspace/didChangeWatchedFiles":
                self.changed += [(each["uri"], each["type"]) for each in params["changes"]]

    def _put(self, document: Mapping[str, Any], text: str) -> None:
        self.open[document["uri"]] = (document["version"], text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    return tmp_path / "a.py"


def made(path: Path, client: Client) -> tuple[ClientFiles, Server]:
    server = Server()
    return ClientFiles([path.parent], client, server.notify), server


def edit_of(path: Path, version: int | None, line: int, text: str) -> dict[str, Any]:
    """An edit that puts a text in the place of a line."""
    span = {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}
    document = {"uri": uris.from_path(path), "version": version}
    return {"documentChanges": [{"textDocument": document, "edits": [{"range": span, "newText": text}]}]}


async def test_only_unsaved_texts_are_open(path: Path) -> None:
    client = Client()
    files, server = made(path, client)
    await files.sync([path])
    assert server.open == {}
    client.buffers[str(path)] = "one\nunsaved\n"
    await files.sync([path])
    assert server.open == {uris.from_path(path): (1, "one\nunsaved\n")}
    client.buffers[str(path)] = "more\n"
    await files.sync()  # what is open is looked at each time
    assert server.open == {uris.from_path(path): (2, "more\n")}
    client.buffers[str(path)] = path.read_text()
    await files.sync()
    assert server.open == {}


async def test_what_was_asked_for_once_is_looked_at_again(path: Path) -> None:
    client = Client()
    files, server = made(path, client)
    await files.sync([path])
    client.buffers[str(path)] = "typed later\n"
    await files.sync()
    assert server.open == {}
    await files.sync(again=True)
    assert server.open == {uris.from_path(path): (1, "typed later\n")}


async def test_line_ends_and_marks_that_a_client_hides_are_no_change(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    files, server = made(path, Client(hides=True))
    await files.sync([path])
    assert server.open == {}


async def test_an_unsaved_text_has_the_line_ends_of_the_file(path: Path) -> None:
    path.write_bytes(b"one\r\ntwo\r\n")
    client = Client(hides=True)
    client.buffers[str(path)] = "one\nunsaved\n"
    files, server = made(path, client)
    await files.sync([path])
    assert server.open[uris.from_path(path)] == (1, "one\r\nunsaved\r\n")
    assert (await files.apply(edit_of(path, 1, 0, "ONE\r\n")))["applied"]
    assert client.buffers[str(path)] == "ONE\nunsaved\n"
    assert path.read_bytes() == b"ONE\r\nunsaved\r\n"


async def test_the_last_line_end_that_a_client_hides_survives(path: Path) -> None:
    class Joined(Client):
        async def read(self, path: str) -> str:
            return (await super().read(path)).removesuffix("\n")

    client = Joined()
    files, server = made(path, client)
    await files.sync([path])
    assert server.open == {}
    assert (await files.apply(edit_of(path, None, 0, "ONE\n")))["applied"]
    assert path.read_text() == "ONE\ntwo\n"
    client.buffers[str(path)] = "ONE\nunsaved\n"
    await files.sync([path])
    assert server.open[uris.from_path(path)] == (1, "ONE\nunsaved\n")


async def test_nothing_outside_is_asked_for(path: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    class Asked(Client):
        async def read(self, path: str) -> str:
            asked.append(path)
            return await super().read(path)

    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("/etc/hostname")
    files, _ = made(tmp_path / "in" / "x", Asked())
    await files.sync([path, Path("/etc/hostname"), tmp_path / "in"])
    files, _ = made(path, Asked())
    await files.sync([tmp_path / "link"])
    assert asked == []


async def test_an_edit_of_a_text_that_has_moved_on_is_not_made(path: Path) -> None:
    client = Client()
    client.buffers[str(path)] = "one\nunsaved\n"
    files, server = made(path, client)
    await files.sync([path])
    client.buffers[str(path)] = "one\nunsaved and more\n"
    answer = await files.apply(edit_of(path, 1, 0, "ONE\n"))
    assert not answer["applied"]
    assert "version" in answer["failureReason"]
    assert server.open[uris.from_path(path)] == (2, "one\nunsaved and more\n")
    assert (await files.apply(edit_of(path, 2, 0, "ONE\n")))["applied"]
    assert client.buffers[str(path)] == "ONE\nunsaved and more\n"


async def test_what_is_typed_right_before_the_writing_is_not_lost(path: Path) -> None:
    class Late(Client):
        looks = 0

        async def read(self, path: str) -> str:
            self.looks += 1
            if self.looks == 2:  # between the check of the version and the writing
                self.buffers[path] = "typed\n"
            return await super().read(path)

    client = Late()
    files, _ = made(path, client)
    assert not (await files.apply(edit_of(path, None, 0, "ONE\n")))["applied"]
    assert client.buffers[str(path)] == "typed\n"
    assert path.read_text() == "one\ntwo\n"


async def test_a_client_that_refuses_is_believed(path: Path) -> None:
    client = Client()
    client.refuses = True
    files, _ = made(path, client)
    answer = await files.apply(edit_of(path, None, 0, "ONE\n"))
    assert answer == {"applied": False, "failureReason": "read only"}
    assert path.read_text() == "one\ntwo\n"


async def test_other_encodings_and_modes_are_kept(path: Path) -> None:
    path.write_bytes("öne\ntwo\n".encode("utf-16"))
    path.chmod(0o755)
    files, _ = made(path, Client())
    assert (await files.apply(edit_of(path, None, 1, "TWO\n")))["applied"]
    assert path.read_bytes() == "öne\nTWO\n".encode("utf-16")
    path.write_text("one\n")

    class Replacing(Client):
        async def write(self, path: str, text: str) -> None:
            Path(path).unlink()
            await super().write(path, text)

    files, server = made(path, Replacing())
    assert (await files.apply(edit_of(path, None, 0, "ONE\n")))["applied"]
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("ONE\n", 0o755)
    assert server.changed == [(uris.from_path(path), 2)]


@pytest.mark.parametrize("writes", [True, False])
async def test_files_are_made_renamed_and_deleted(path: Path, *, writes: bool) -> None:
    files, _ = made(path, Client(writes=writes))
    new, moved = path.with_name("new.sh"), path.with_name("moved.py")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    document = {"uri": uris.from_path(new), "version": None}
    for changes in (
        [
            {"kind": "create", "uri": uris.from_path(new)},
            {"textDocument": document, "edits": [{"range": span, "newText": "#!/bin/sh\n"}]},
        ],
        [{"kind": "rename", "oldUri": uris.from_path(path), "newUri": uris.from_path(moved)}],
    ):
        assert await files.apply({"documentChanges": changes}) == {"applied": True}
    assert new.stat().st_mode & 0o100  # a script can be run
    assert (path.exists(), moved.read_text()) == (False, "one\ntwo\n")
    assert (await files.apply({"documentChanges": [{"kind": "delete", "uri": uris.from_path(moved)}]}))["applied"]
    assert not moved.exists()


async def test_several_files_are_written_all_or_none_where_the_client_writes_none(path: Path) -> None:
    other = path.with_name("b.py")
    other.write_text("b\n")
    files, _ = made(path, Client(reads=False, writes=False))
    both = edit_of(path, None, 0, "ONE\n")["documentChanges"] + edit_of(other, None, 7, "x\n")["documentChanges"]
    assert not (await files.apply({"documentChanges": both}))["applied"]
    assert path.read_text() == "one\ntwo\n"
