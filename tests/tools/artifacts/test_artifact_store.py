"""Artifacts: names, room, what is exported from where, and what is imported by whom allowed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.loop import result_event
from codeagent_lsp.config import PermissionsSettings, Settings, WebSettings
from codeagent_lsp.errors import FileRefused, ToolFailed, ToolRetry
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.texts import text
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore, checked_name
from codeagent_lsp.tools.artifacts.artifact_tools import (
    BatchExportArtifacts,
    ExportArtifact,
    ImportFile,
    ImportFilesBatch,
    ListArtifacts,
)
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.web.http import Fetcher, PageLimits
from codeagent_lsp.tools.web.scraping import Web
from tests.tools.fakes import Bench
from tests.tools.shells import DIRECT, OPEN_COPY, FakeShell
from tests.tools.web.net import PUBLIC, Net, answer, pages, redirect, server

HOST = "files.example.org"
ONCE, DENY = text("choice.once"), text("choice.deny")


class Rig:
    """The five tools over a workspace, a store and a network of the test."""

    def __init__(self, folder: Path, shell: FakeShell | None = None, settings: Settings | None = None) -> None:
        self.net = Net({HOST: [[PUBLIC]], "inside.example.org": [["10.0.0.5"]]})
        web = Web(Fetcher(self.net.dialer, PageLimits(seconds=3, size=100_000)), "")
        tools = (ExportArtifact(), ListArtifacts(), BatchExportArtifacts(), ImportFile(web), ImportFilesBatch(web))
        self.bench = Bench(folder / "ws", tools)
        self.store = ArtifactStore(folder / "artifacts", file_bytes=200_000, total_bytes=300_000, max_files=5)
        self.bench.shell = shell
        self.bench.configure(settings or Settings())
        self.bench.context = self.bench.context.having((ArtifactStore, self.store))
        self.bench.executor = ToolExecutor(
            self.bench.registry, self.bench.context, lambda: self.bench.mode, self.bench.approvals
        )

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.bench.call(name, **arguments)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.parametrize("name", ["a", "shop-1.0.tar.gz", "Über uns (2).txt", "_x", "a@2,b=c+d.txt", "x" * 120])
def test_names_that_can_be(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b", "/a", "a\\b", "a\0b", "a\nb", "-rf", " a", "a ", "a.", "x" * 121, "ü" * 61,
     "con", "NUL.txt", "com1.log", "a:b", "~a", "a\u202eb", "*", "a|b", "%2e%2e"],
)  # fmt: skip
def test_names_that_cannot(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolRetry):
        checked_name(name)
    with pytest.raises(ToolRetry):
        ArtifactStore(tmp_path / "a").put(name, b"")
    assert not (tmp_path / "a").exists()


def test_one_name_however_it_is_composed() -> None:
    assert checked_name("u\u0308.txt") == "ü.txt"


def test_there_is_no_more_room_than_there_is(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "a", file_bytes=10, total_bytes=25, max_files=3)
    with pytest.raises(ToolFailed, match="at most 10"):
        store.put("large", b"x" * 11)
    store.put("a", b"x" * 10)
    store.put("b", b"x" * 10)
    with pytest.raises(ToolFailed, match="25 bytes together"):
        store.put("c", b"x" * 6)
    store.put("a", b"x" * 5)  # in its own place
    store.put("c", b"x")
    with pytest.raises(ToolFailed, match="3 artifacts"):
        store.put("d", b"")
    assert [(item.name, item.size) for item in store.list()] == [("a", 5), ("b", 10), ("c", 1)]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").iterdir()} == {0o600}
    store.remove()
    assert store.list() == () and not (tmp_path / "a").exists()


def test_a_link_is_no_artifact(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "a")
    store.put("x", b"1")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "a/link").symlink_to(tmp_path / "secret")
    assert [item.name for item in store.list()] == ["x"]
    with pytest.raises(FileRefused, match="There are: x"):
        store.read("link")
    store.put("link", b"own")
    assert (tmp_path / "secret").read_text() == "secret"


async def test_what_is_exported_is_what_the_run_sees(rig: Rig) -> None:
    rig.bench.write("disk.bin", b"\0\1")
    rig.bench.write("open.txt", "saved\n")
    rig.bench.open("open.txt", "typed\n")
    rig.bench.staging.write({rig.bench.path("new.txt"): "staged\n"})
    for name, data in {"disk.bin": b"\0\1", "open.txt": b"typed\n", "new.txt": b"staged\n"}.items():
        result = await rig.call("export_artifact", file_path=name)
        assert result.ok, result.text
        assert Path(result.data["path"]).read_bytes() == data and result.data["size"] == len(data)  # noqa: ASYNC240
        assert result.artifacts == (result.data,) and result.data["name"] == name
        event = events.to_dict(result_event(ToolCall("export_artifact", {}), result))
        assert event["artifacts"] == [result.data]
    assert rig.bench.asker.asked == []
    listed = await rig.call("list_artifacts")
    assert [item["name"] for item in listed.data] == ["disk.bin", "new.txt", "open.txt"]
    assert "new.txt (7 bytes)" in listed.text


async def test_what_only_commands_see_comes_by_a_command(tmp_path: Path) -> None:
    shell = FakeShell(Finished(0, "", reports={"artifact": b"built"}), isolation=OPEN_COPY)
    rig = Rig(tmp_path, shell)
    result = await rig.call("export_artifact", file_path="dist/x.bin", artifact_name="shop.bin")
    assert result.data["name"] == "shop.bin" and rig.store.read("shop.bin") == b"built"
    (command,) = shell.commands
    assert not command.proposes and command.environment == {"CODEAGENT_EXPORT": rig.bench.path("dist/x.bin")}
    assert "dist" not in str(command.script)  # a name is never a part of a script


@pytest.mark.parametrize(
    ("finished", "code"), [(Finished(44, ""), "NOT_FOUND"), (Finished(1, "cp: too large"), "EXECUTION_ERROR")]
)
async def test_a_command_that_cannot_copy(tmp_path: Path, finished: Finished, code: str) -> None:
    result = await Rig(tmp_path, FakeShell(finished)).call("export_artifact", file_path="x")
    assert result.error is not None and result.error.code == code


@pytest.mark.parametrize("source", ["artifact:x.bin", "file:x.bin"])
async def test_what_is_no_text_goes_where_commands_see_it(tmp_path: Path, source: str) -> None:
    data = b"\x00\xff" * 9
    shell = FakeShell(Finished(0, "", reports={"artifact": data}), isolation=OPEN_COPY)
    rig = Rig(tmp_path, shell)
    rig.store.put("x.bin", data)
    result = await rig.call("import_file", source_url=source, dest_path="dist/y.bin")
    assert result.ok and result.data == {"path": "dist/y.bin", "source_url": source, "bytes": 18}
    command = shell.commands[-1]
    assert (command.stdin, command.proposes) == (data, False) and "dist" not in str(command.script)
    assert command.environment == {"CODEAGENT_EXPORT": rig.bench.path("dist/y.bin")}
    assert not rig.bench.staging.changeset


async def test_what_is_no_text_is_not_put_over_one_or_into_the_real_folder(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FakeShell(isolation=OPEN_COPY))
    rig.store.put("x.bin", b"\x00\xff")
    rig.bench.open("a.txt", "typed")
    assert not (await rig.call("import_file", source_url="artifact:x.bin", dest_path="a.txt")).ok
    shell = FakeShell(isolation=DIRECT)
    bare = Rig(tmp_path / "other", shell)
    bare.store.put("x.bin", b"\x00\xff")
    assert not (await bare.call("import_file", source_url="artifact:x.bin", dest_path="y.bin")).ok
    assert shell.commands == []


async def test_no_command_runs_in_the_real_folder(tmp_path: Path) -> None:
    shell = FakeShell(isolation=DIRECT)
    rig = Rig(tmp_path, shell)
    rig.bench.write("a.txt", "a")
    assert (await rig.call("export_artifact", file_path="a.txt")).ok
    assert shell.commands == []


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "~/x"])
async def test_nothing_outside_is_exported(rig: Rig, path: str) -> None:
    result = await rig.call("export_artifact", file_path=path)
    assert not result.ok and rig.store.list() == ()


async def test_secrets_ask_also_among_others(rig: Rig) -> None:
    rig.bench.write(".env", "A=b\n")
    rig.bench.write("a.txt", "a\n")
    rig.bench.asker.answers = [DENY, DENY, ONCE]
    assert (await rig.call("export_artifact", file_path=".env")).status == "denied"
    assert (await rig.call("batch_export_artifacts", file_paths=["a.txt", ".env"])).status == "denied"
    assert rig.store.list() == ()
    assert (await rig.call("export_artifact", file_path=".env", artifact_name="env")).ok
    assert len(rig.bench.asker.asked) == 3


async def test_several_each_by_itself(rig: Rig) -> None:
    rig.bench.write("a.txt", "a\n")
    rig.bench.write("b/c.txt", "c\n")
    result = await rig.call("batch_export_artifacts", file_paths=["a.txt", "none.txt", "b/c.txt"])
    assert result.ok and "Not exported: none.txt" in result.text
    assert [item["name"] for item in result.artifacts] == ["a.txt", "c.txt"]
    assert [item.name for item in rig.store.list()] == ["a.txt", "c.txt"]
    same = await rig.call("batch_export_artifacts", file_paths=["a.txt", "b/a.txt"])
    assert same.error is not None and same.error.code == "INVALID_PARAM"
    none = await rig.call("batch_export_artifacts", file_paths=["none.txt"])
    assert none.status == "failed"


async def test_read_only_exports_and_imports_nothing(rig: Rig) -> None:
    rig.bench.write("a.txt", "a\n")
    rig.bench.mode = "readOnly"
    assert (await rig.call("export_artifact", file_path="a.txt")).status == "denied"
    assert (await rig.call("import_file", source_url="file:a.txt", dest_path="b.txt")).status == "denied"
    assert (await rig.call("list_artifacts")).ok


async def test_an_import_asks_and_is_staged(rig: Rig) -> None:
    before = rig.bench.disk()
    async with server(pages({"/a.txt": answer("from afar\n", media="text/plain")}), rig.net, (PUBLIC, 80)):
        url = f"HTTP://{HOST.upper()}/a.txt#part"
        rig.bench.asker.answers = [DENY, ONCE]
        assert (await rig.call("import_file", source_url=url, dest_path="a.txt")).status == "denied"
        assert rig.net.tried == []
        result = await rig.call("import_file", source_url=url, dest_path="a.txt")
    assert f"http://{HOST}/a.txt" in rig.bench.asker.asked[1].detail
    assert result.text == f"Created a.txt (1 lines) from http://{HOST}/a.txt."
    assert rig.bench.text("a.txt") == "from afar\n" and rig.bench.disk() == before


async def test_hosts_that_the_settings_allow_do_not_ask(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(web=WebSettings(allowed_hosts=(HOST,))))
    async with server(pages({"/a": answer("a"), "/b": answer("b")}), rig.net, (PUBLIC, 80)):
        files = [{"source_url": f"http://{HOST}/{name}", "dest_path": f"{name}.txt"} for name in "ab"]
        assert (await rig.call("import_files_batch", files=files)).ok
        assert rig.bench.asker.asked == []
        files.append({"source_url": "http://other.example.org/", "dest_path": "c.txt"})
        assert (await rig.call("import_files_batch", files=files)).status == "denied"
    assert len(rig.bench.asker.asked) == 1


async def test_files_that_run_code_ask_even_so(tmp_path: Path) -> None:
    for settings in (
        Settings(web=WebSettings(allowed_hosts=(HOST,))),
        Settings(permissions=PermissionsSettings(allow=("import_file*",))),
    ):
        rig = Rig(tmp_path, settings=settings)
        rig.bench.mode = "bypass"
        rig.bench.write("a.txt", "a\n")
        for source in (f"http://{HOST}/x", "file:a.txt"):
            one = {"source_url": source, "dest_path": ".git/hooks/pre-commit"}
            assert (await rig.call("import_file", **one)).status == "denied"
            assert (await rig.call("import_files_batch", files=[one])).status == "denied"
        assert len(rig.bench.asker.asked) == 4 and rig.net.tried == []


@pytest.mark.parametrize(
    "rule", [f"import_file(http://{HOST}/*)", "import_file(vendor/*)", "import_files_batch(vendor/*)", "import_*"]
)
async def test_a_rule_speaks_of_the_address_and_of_the_place(tmp_path: Path, rule: str) -> None:
    rig = Rig(tmp_path, settings=Settings(permissions=PermissionsSettings(deny=(rule,))))
    one = {"source_url": f"http://{HOST}/x", "dest_path": "vendor/x.txt"}
    name = "import_files_batch" if "batch" in rule else "import_file"
    result = await rig.call(name, **({"files": [one]} if "batch" in rule else one))
    assert result.status == "denied" and rig.bench.asker.asked == []


async def test_addresses_that_are_not_fetched(rig: Rig) -> None:
    rig.bench.mode = "bypass"
    for url in (
        "http://127.0.0.1/",
        "http://localhost/",
        "ftp://x.org/",
        "http://user@x.org/",
        "gopher://x",
        "/etc/passwd",
    ):
        result = await rig.call("import_file", source_url=url, dest_path="a.txt")
        assert result.error is not None and result.error.code == "INVALID_PARAM", url
        rig.bench.registry.circuits.close("import_file")  # it would rest: wrong arguments count
    for url in ("http://inside.example.org/", f"http://{HOST}:8080/"):
        assert (await rig.call("import_file", source_url=url, dest_path="a.txt")).status == "failed"
    async with server(pages({"/": redirect("http://127.0.0.1:1/")}), rig.net, (PUBLIC, 80)):
        assert not (await rig.call("import_file", source_url=f"http://{HOST}/", dest_path="a.txt")).ok
    assert rig.net.tried == [(PUBLIC, 80)] and not rig.bench.changeset


@pytest.mark.parametrize(
    ("body", "why"), [(b"\0\1\2", "Only text"), (b"x" * 100_001, "larger than"), (b"<html>" * 10, "")]
)
async def test_what_can_be_staged(rig: Rig, body: bytes, why: str) -> None:
    rig.bench.mode = "bypass"
    async with server(pages({"/": answer(body)}), rig.net, (PUBLIC, 80)):
        result = await rig.call("import_file", source_url=f"http://{HOST}/", dest_path="a.txt")
    assert (result.ok, why in result.text) == (not why, True)


async def test_from_artifacts_and_from_the_workspace(rig: Rig) -> None:
    path = rig.store.put("one.txt", b"one\n").path
    rig.bench.write("two words.txt", "two\n")
    rig.bench.open("two words.txt", "typed\n")
    uri = f"file://{rig.bench.root}/two%20words.txt"
    files = [
        {"source_url": "artifact:one.txt", "dest_path": "1"},
        {"source_url": f"file://{path}", "dest_path": "2"},
        {"source_url": "file:two%20words.txt", "dest_path": "3"},
        {"source_url": uri, "dest_path": "4"},
    ]
    result = await rig.call("import_files_batch", files=files)
    assert result.ok, result.text
    assert [rig.bench.text(name) for name in "1234"] == ["one\n", "one\n", "typed\n", "typed\n"]
    assert rig.bench.asker.asked == []
    rig.bench.staging.undo()
    assert not rig.bench.changeset  # it was one step


@pytest.mark.parametrize(
    "source",
    ["file:///etc/passwd", "file:../x", "file:.env", "artifact:../x", "artifact:none", "file:none", "file://host/x"],
)
async def test_no_other_file_of_this_machine(rig: Rig, source: str) -> None:
    rig.bench.write(".env", "A=b\n")
    rig.bench.mode = "bypass"
    result = await rig.call("import_file", source_url=source, dest_path="a.txt")
    assert not result.ok and not rig.bench.changeset


async def test_all_or_none(rig: Rig) -> None:
    rig.bench.write("a.txt", "a\n")
    files = [{"source_url": "file:a.txt", "dest_path": "b.txt"}, {"source_url": "file:none", "dest_path": "c.txt"}]
    assert not (await rig.call("import_files_batch", files=files)).ok
    assert not rig.bench.changeset
    replaced = await rig.call("import_file", source_url="file:a.txt", dest_path="a.txt")
    assert replaced.text.startswith("Replaced a.txt")
    below = await rig.call("import_file", source_url="file:a.txt", dest_path="a.txt/b.txt")
    assert below.error is not None and below.error.code == "INVALID_PARAM"


async def test_where_nothing_is_kept(bench: Bench) -> None:
    result = await bench.call("list_artifacts")
    assert result.error is not None and "not kept here" in result.text


@pytest.mark.slow
def test_a_list_beside_exports_never_fails(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts")
    done = threading.Event()

    def put(name: str) -> None:
        for _ in range(300):
            assert store.put(name, b"text").size == 4

    with ThreadPoolExecutor(3) as pool:
        puts = [pool.submit(put, name) for name in "ab"]
        lists = pool.submit(lambda: [store.list() for _ in iter(done.is_set, True)])
        for each in puts:
            each.result()
        done.set()
        assert all({item.name for item in found} <= {"a", "b"} for found in lists.result())
