"""Files that are not UTF-8: the editor alone knows in which encoding one is, so a change is computed on its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import Views
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.session.rewind.earlier_texts import taking_back
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path, to_path
from codeagent_lsp.workspace.text.document import Document
from tests.server.editor_client import ALL, FakeClient, obedient
from tests.server.replies import edit, say
from tests.server.stock_editor import StockEditor

TEXTS = {
    "gbk": "标题",
    "gb18030": "标题㐀",
    "shift_jis": "表示",
    "euc_jp": "日本",
    "iso2022_jp": "日本",
    "big5": "功能",
    "euc_kr": "제목",
    "cp1251": "имя",
    "latin-1": "grüße",
    "cp1252": "it’s",
    "utf-16": "标题",
}
EDITS: dict[str, tuple[str, str]] = {
    "before": ("title", "name"),
    "behind": ("= 1", "= 25"),
    "another line": ("b = 2", "b = 3"),
    "a new line": ("b = 2\n", "b = 2\nc = 3\n"),
    "a line less": ('note = "{}"\n', ""),
    "a line twice": ('note = "{}"\n', 'note = "{}"\nother = "{}"\n'),
}
SHOWS = replace(ALL, shows_documents=True)
KEEPS_SILENT = replace(ALL, shows_documents=False)


class ReadingClient(FakeClient):
    """Opens files in an encoding; with `errors` it shows others than there are."""

    def __init__(self, encoding: str, errors: str = "strict") -> None:
        super().__init__(obedient)
        self.encoding, self.errors = encoding, errors

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        if method != types.WINDOW_SHOW_DOCUMENT:
            return await super().request(method, params, seconds)
        assert params.take_focus is False
        self.read(params.uri)
        return types.ShowDocumentResult(success=True)

    def read(self, uri: str) -> None:
        """Open a file."""
        data = Path(to_path(uri) or "").read_bytes()
        self.documents.open(Document(uri, data.decode(self.encoding, self.errors), 1))

    def save_and_close(self, path: Path) -> None:
        """Write the buffer to the disk and close it."""
        path.write_bytes((self.text(path) or "").encode(self.encoding))
        self.documents.close(from_path(path))


class Place:
    """A folder with one file, which the agent has read while it was closed."""

    def __init__(self, folder: Path, encoding: str, client: ReadingClient, policy: ClientPolicy = SHOWS) -> None:
        self.folder, self.encoding, self.client = folder.resolve(), encoding, client
        self.path = self.folder / "a.py"
        words = TEXTS[encoding]
        self.text = f'title = "{words}"; level = 1  # {words}\na = 1\nb = 2\nnote = "{words}"\nend = 1\n'
        self.path.write_bytes(self.text.encode(encoding))
        self.views = Views(lambda: [str(self.folder)], client.documents)
        linked = Client(cast("CodeAgentServer", client), policy=policy)
        self.editor = LspEditor(linked, self.views.disk_text, self.views.is_certain)

    async def apply(self, made: Callable[[str], str | None]) -> Applied:
        read = self.views.plain().read(str(self.path))
        return await self.editor.apply(
            Changeset((FileChange(str(self.path), read.text, made(read.text), read.version),)), "test"
        )

    async def undo(self, done: Changeset) -> Applied:
        await self.editor.open_unclear(done.paths)
        back = taking_back([done], self.views.plain())
        assert not back.conflicts
        return await self.editor.apply(back.changeset, "undo", back.deleted)

    def edits(self, name: str) -> tuple[Callable[[str], str], str]:
        """An edit of the text as the agent sees it, and what is to be in the file then."""
        old, new = EDITS[name]
        words = TEXTS[self.encoding]
        shown = words if self.encoding == "utf-16" else words.encode(self.encoding).decode("latin-1")
        return (
            lambda text: text.replace(old.format(shown), new.format(shown, shown), 1),
            self.text.replace(old.format(words), new.format(words, words), 1),
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("encoding", TEXTS)
async def test_a_closed_file_is_opened_changed_and_taken_back(tmp_path: Path, encoding: str, name: str) -> None:
    place = Place(tmp_path, encoding, ReadingClient(encoding))
    made, wanted = place.edits(name)
    applied = await place.apply(made)
    assert (applied.outcome, place.client.text(place.path)) == ("full", wanted)
    place.client.save_and_close(place.path)
    assert place.path.read_bytes() == wanted.encode(encoding)
    assert (await place.undo(applied.done)).outcome == "full"
    place.client.save_and_close(place.path)
    assert place.path.read_bytes() == place.text.encode(encoding)


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("encoding", TEXTS)
async def test_opened_by_the_user_after_the_agent_has_read_it(tmp_path: Path, encoding: str, name: str) -> None:
    place = Place(tmp_path, encoding, ReadingClient(encoding), KEEPS_SILENT)
    made, wanted = place.edits(name)

    def opened_meanwhile(text: str) -> str:
        place.client.read(from_path(place.path))
        return made(text)

    assert (await place.apply(opened_meanwhile)).outcome == "full"
    assert place.client.text(place.path) == wanted


@pytest.mark.parametrize("encoding", sorted(TEXTS.keys() - {"iso2022_jp"}))  # that is ASCII: nothing gets lost
@pytest.mark.parametrize("opens", [True, False])
async def test_a_client_that_reads_other_characters_gets_advice(tmp_path: Path, encoding: str, opens: bool) -> None:
    client = ReadingClient("utf-8", "replace")
    place = Place(tmp_path, encoding, client, SHOWS if opens else KEEPS_SILENT)
    applied = await place.apply(place.edits("behind")[0])
    assert applied.outcome == "none" and not applied.conflicts and not client.sent
    assert "Open it in the editor in its encoding" in applied.reason
    assert place.path.read_bytes() == place.text.encode(encoding)
    assert len(applied.left.files) == 1, "it is still pending"


@pytest.mark.parametrize("encoding", ["gbk", "shift_jis", "iso2022_jp", "latin-1", "cp1252"])
async def test_a_client_that_reads_bytes_as_we_do_keeps_them(tmp_path: Path, encoding: str) -> None:
    place = Place(tmp_path, encoding, ReadingClient("latin-1"))
    made, wanted = place.edits("behind")
    assert (await place.apply(made)).outcome == "full"
    place.client.save_and_close(place.path)
    assert place.path.read_bytes() == wanted.encode(encoding)


@pytest.mark.parametrize("new", ["25°C", "±1", "é", "标±"])
async def test_characters_that_may_mean_either_are_refused(tmp_path: Path, new: str) -> None:
    place = Place(tmp_path, "gbk", ReadingClient("gbk"))
    applied = await place.apply(lambda text: text.replace("a = 1", f"a = '{new}'"))
    assert applied.outcome == "none" and "encoding" in applied.reason
    assert place.client.text(place.path) == place.text


async def test_what_the_user_typed_meanwhile_stays(tmp_path: Path) -> None:
    place = Place(tmp_path, "gbk", ReadingClient("gbk"))

    def opened_and_typed(text: str) -> str:
        place.client.documents.open(Document(from_path(place.path), place.text.replace("a = 1", "a = 1  # 级"), 7))
        return place.edits("behind")[0](text)

    assert (await place.apply(opened_and_typed)).outcome == "full"
    assert place.client.text(place.path) == place.edits("behind")[1].replace("a = 1", "a = 1  # 级")


@pytest.mark.parametrize("encoding", TEXTS)
async def test_a_deleted_file_comes_back_with_its_characters(tmp_path: Path, encoding: str) -> None:
    place = Place(tmp_path, encoding, ReadingClient(encoding))
    assert not place.editor.has_unsaved_text(str(place.path))
    deleted = await place.apply(lambda text: None)
    assert deleted.outcome == "full" and not place.path.exists()
    assert (await place.undo(deleted.done)).outcome == "full"
    assert place.client.text(place.path) == place.text


async def test_files_in_utf_8_are_not_opened(tmp_path: Path) -> None:
    place = Place(tmp_path, "latin-1", ReadingClient("utf-8"))
    place.path.write_text("grüße = 1\n", encoding="utf-8")
    applied = await place.editor.apply(Changeset((FileChange(str(place.path), "grüße = 1\n", "grüße = 2\n"),)), "test")
    assert applied.outcome == "full"


@pytest.mark.slow
@pytest.mark.parametrize("opens", [True, False])
def test_the_whole_way_in_a_stock_editor(tmp_path: Path, opens: bool) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    path = folder / "a.py"
    text = 'title = "标题"; level = 1  # 级别\n'
    path.write_bytes(text.encode("gbk"))

    def show(params: dict[str, Any]) -> dict[str, bool]:
        if opens:
            editor.open(path, text)
        return {"success": opens}

    script = [edit("a.py", "level = 1", "level = 25"), say("Done.")]
    answers = {"window/showDocument": show}
    with StockEditor(folder, tmp_path / "state", script=script, answers=answers) as editor:
        run_id = editor.command("codeagent.run", task="raise the level")["runId"]
        editor.ended(run_id)
        if not opens:
            assert "Open it in the editor in its encoding" in editor.told("a.py is not UTF-8")
            assert not editor.edits and path.read_bytes() == text.encode("gbk")
            return
        assert editor.text(path) == 'title = "标题"; level = 25  # 级别\n'
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: editor.text(path) == text)
