"""The code index as a stock editor meets it: a map before the task, search on what is there now, and no trace of it
where nobody asks.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import from_path
from tests.children import command_lines
from tests.index.workspaces import many, settle, write
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor

SHOP = {
    "shop/cart.py": (
        "from shop.taxes import value_added_tax\n\n\n"
        "class Cart:\n    def checkout(self):\n        return value_added_tax(self.items)\n"
    ),
    "shop/taxes.py": "def value_added_tax(items):\n    return 19\n",
    "README.md": "A shop.\n",
}
WATCHING = {
    **STOCK,
    "workspace": {**STOCK["workspace"], "didChangeWatchedFiles": {"dynamicRegistration": True}},
}
SEARCH = "redeem the voucher of a customer"


def store(tmp_path: Path) -> Path | None:
    """The file of the index, when there is one."""
    return next(iter((tmp_path / "state" / "workspaces").glob("*/index.sqlite")), None)


def requests(tmp_path: Path) -> list[list[str]]:
    """What the model was sent, request by request, once the server has ended."""
    (trace,) = (tmp_path / "state" / "workspaces").glob("*/trace.jsonl")
    records = [json.loads(line) for line in trace.read_text().splitlines()]
    return [_texts(record) for record in records if _texts(record)]


def _texts(record: dict[str, Any]) -> list[str]:
    """The texts of the messages of a request, wherever the record has them."""
    messages = record.get("messages") or (record.get("data") or {}).get("messages") or []
    return [message["content"] for message in messages]


def workers(editor: StockEditor) -> set[int]:
    parent = editor.client.process.pid
    return {pid for pid, command in command_lines(parent=parent).items() if "index.worker" in command}


def status(editor: StockEditor) -> dict[str, Any]:
    answer: dict[str, Any] = editor.command("codeagent.index.status")
    return answer


def ready(editor: StockEditor, files: int, seconds: float = 30.0) -> dict[str, Any]:
    """The status once the index is ready with so many files."""
    deadline = time.monotonic() + seconds
    while (now := status(editor))["state"] != "ready" or now["files"] != files:
        assert time.monotonic() < deadline, now
        time.sleep(0.05)
    return now


def searched(editor: StockEditor, tmp_path: Path) -> str:
    """The result of the search in a run, and the end of the server."""
    editor.run("codeagent.run", task="Look")
    editor.close()
    return requests(tmp_path)[-1][-1]


def bars(editor: StockEditor) -> Iterator[dict[str, Any]]:
    for params in editor.notifications("$/progress"):
        if str(params["token"]).startswith("codeagent-index"):
            yield params["value"]


# --- what a user feels


@pytest.mark.slow
def test_the_map_in_the_first_request_holds_the_right_file(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    many(workspace, 120)
    write(workspace, SHOP)
    editor = start(say("Done."))
    editor.run("codeagent.run", task="The checkout of the cart adds the wrong tax")
    assert editor.close() == 0
    messages = requests(tmp_path)[0]
    best = messages[1].splitlines()[1:6]
    assert {"shop/cart.py", "shop/taxes.py"} <= set(best)
    assert "def value_added_tax(items)" in messages[1]
    assert "Repo map" not in "".join(messages), "one map is enough"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["unsaved", "saved", "watched", "polled"])
def test_search_finds_what_is_there_now(start: StartEditor, workspace: Path, tmp_path: Path, how: str) -> None:
    write(workspace, SHOP)
    told: list[dict[str, Any]] = []
    editor = start(
        call("search_semantic", query=SEARCH),
        say("Found."),
        capabilities=WATCHING if how == "watched" else STOCK,
        answers={"client/registerCapability": told.append},
    )
    ready(editor, 3)
    text = "def redeem_voucher(customer):\n    return customer.voucher\n"
    place = workspace / "shop" / "vouchers.py"
    if how == "unsaved":
        uri = editor.open(workspace / "README.md", "")
        editor.type(uri, (0, 0), (0, 0), text.replace("\n", " \n"))
    else:
        settle()
        place.write_text(text)
    if how == "saved":
        editor.client.notify("textDocument/didSave", {"textDocument": {"uri": from_path(str(place))}})
    if how == "watched":
        editor.wait_until(lambda: status(editor)["watched"])
        changes = [{"uri": from_path(str(place)), "type": 1}]
        editor.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    if how == "polled":
        time.sleep(5.1)  # as long as what was seen of the disk counts
    name = "README.md" if how == "unsaved" else "shop/vouchers.py"
    assert searched(editor, tmp_path).startswith(f"{name}:1-2")
    watching = [item["method"] for params in told for item in params["registrations"]]
    assert watching.count("workspace/didChangeWatchedFiles") == (how == "watched")


@pytest.mark.slow
def test_another_branch_is_another_index_without_parsing_again(start: StartEditor, workspace: Path) -> None:
    many(workspace, 300)
    editor = start(capabilities=WATCHING)
    ready(editor, 300)
    editor.wait_until(lambda: status(editor)["watched"])
    settle()
    for number in range(300):
        (workspace / f"part{number // 100}" / f"m{number}.py").rename(workspace / f"other{number}.py")
    names = [f"part{number // 100}/m{number}.py" for number in range(300)]
    changes = [{"uri": from_path(str(workspace / name)), "type": 3} for name in names]
    changes += [{"uri": from_path(str(workspace / f"other{number}.py")), "type": 1} for number in range(300)]
    editor.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    place = Path(ready(editor, 300)["path"])
    editor.wait_until(lambda: _paths(place) == {f"other{number}.py" for number in range(300)})
    with sqlite3.connect(place) as index:
        assert index.execute("SELECT count(*) FROM contents").fetchone() == (300,)


def _paths(place: Path) -> set[str]:
    with sqlite3.connect(place) as index:
        return {path for (path,) in index.execute("SELECT path FROM files")}


@pytest.mark.slow
def test_other_folders_are_another_index(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    write(workspace, SHOP)
    other = tmp_path / "other"
    write(other, {"a.py": "def a(): pass\n"})
    editor = start()
    first = ready(editor, 3)
    event = {"added": [{"uri": from_path(str(other)), "name": "other"}], "removed": []}
    editor.client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    second = ready(editor, 4)
    assert first["path"] != second["path"]
    assert _paths(Path(second["path"])) == {*(f"ws/{name}" for name in SHOP), "other/a.py"}


# --- nothing where nobody asks


@pytest.mark.slow
def test_the_way_to_the_index_loads_no_parser_and_no_database() -> None:
    parts = ("index.host", "server.index_host", "server.commands.commands", "index.port")
    names = ", ".join(f"codeagent_lsp.{part}" for part in parts)
    code = f"import sys, {names}; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert "codeagent_lsp.index.host" in loaded
    assert not {f"codeagent_lsp.index.{name}" for name in ("parse", "service", "store", "view")} & loaded
    assert "sqlite3" not in loaded


@pytest.mark.slow
def test_a_workspace_is_indexed_soon_after_the_first_document_and_only_once(
    start: StartEditor, workspace: Path, tmp_path: Path
) -> None:
    many(workspace, 150)
    editor = start()
    time.sleep(0.5)
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert (checks["index"]["verdict"], checks["index"]["detail"]) == ("ok", "not built yet")
    assert "codeagent-lsp index" in checks["index"]["advice"]
    assert store(tmp_path) is None
    editor.open(workspace / "part0" / "m1.py")
    editor.wait_until(lambda: [value["kind"] for value in bars(editor)][-1:] == ["end"], 30.0)
    assert editor.close() == 0
    place = store(tmp_path)
    assert place is not None
    before = place.stat().st_mtime_ns
    again = start()
    again.open(workspace / "part0" / "m1.py")
    time.sleep(2.5)
    assert list(bars(again)) == []
    assert place.stat().st_mtime_ns == before


@pytest.mark.slow
def test_switched_off_there_is_none(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    write(workspace, SHOP)
    script = [call("search_semantic", query=SEARCH), say("Done.")]
    editor = start(*script, settings={"index": {"enabled": False}})
    assert status(editor)["state"] == "off"
    assert "index.enabled" in editor.refusal("codeagent.index.rebuild")
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert "index.enabled" in checks["index"]["detail"]
    assert "switched off" in searched(editor, tmp_path)
    assert store(tmp_path) is None


@pytest.mark.slow
def test_a_home_is_no_project(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    write(workspace, SHOP)
    editor = start(say("Done."), env={"HOME": str(workspace)})
    assert "is too much" in status(editor)["problem"]
    assert editor.run("codeagent.run", task="Look at the cart")["message"] == "Done."
    assert store(tmp_path) is None


# --- commands, progress, doctor


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "title", "end"), [
    ("en", "Indexing the code", "400 files are indexed."), ("zh-cn", "正在索引代码", "已索引 400 个文件。"),
])  # fmt: skip
def test_building_is_shown_by_one_bar_with_few_reports(
    start: StartEditor, workspace: Path, locale: str, title: str, end: str
) -> None:
    many(workspace, 400)
    editor = start(locale=locale)
    ready(editor, 400)
    seen = list(bars(editor))
    assert (seen[0]["kind"], seen[0]["title"], seen[0]["cancellable"]) == ("begin", title, False)
    assert seen[-1] == {"kind": "end", "message": end}
    assert [value["kind"] for value in seen[1:-1]] == ["report"] * (len(seen) - 2)
    shares = [value["percentage"] for value in seen[:-1]]
    assert shares == sorted(shares)
    assert len(seen) <= 23


@pytest.mark.slow
def test_a_few_files_bring_no_bar(start: StartEditor, workspace: Path) -> None:
    many(workspace, 40)
    editor = start()
    ready(editor, 40)
    assert list(bars(editor)) == []


@pytest.mark.slow
def test_rebuilt_it_answers_at_once_and_goes_on(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    many(workspace, 600)
    editor = start()
    place = Path(ready(editor, 600)["path"])
    assert editor.command("codeagent.index.rebuild")["state"] in ("scanning", "building")
    editor.wait_until(lambda: status(editor)["state"] == "ready")
    assert len(_paths(place)) == 600
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert checks["index"]["verdict"] == "ok"
    assert "600 files" in checks["index"]["detail"]


@pytest.mark.slow
def test_a_damaged_index_is_seen_by_the_doctor_and_heals(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    write(workspace, SHOP)
    first = start()
    place = Path(ready(first, 3)["path"])
    assert first.close() == 0
    for part in place.parent.glob("index.sqlite*"):
        part.unlink()
    place.write_bytes(b"junk" * 5000)
    editor = start(say("Done."))
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert checks["index"]["verdict"] == "warning"
    assert editor.run("codeagent.run", task="Look at the cart")["message"] == "Done."
    ready(editor, 3)
    assert editor.close() == 0
    assert any("shop/cart.py" in text for text in requests(tmp_path)[-1])


# --- the end


@pytest.mark.slow
def test_a_shutdown_while_it_builds_leaves_nothing(start: StartEditor, workspace: Path) -> None:
    many(workspace, 4000)
    editor = start()
    editor.command("codeagent.index.rebuild")
    editor.wait_until(lambda: bool(workers(editor)))
    known = workers(editor)
    assert editor.close() == 0
    deadline = time.monotonic() + 20
    while known & set(command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_killed_while_it_builds_the_next_server_has_it_right(start: StartEditor, workspace: Path, delay: float) -> None:
    many(workspace, 3000)
    editor = start()
    editor.command("codeagent.index.rebuild")
    editor.wait_until(lambda: bool(workers(editor)), 20)
    known = workers(editor)
    time.sleep(delay)
    os.kill(editor.client.process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while known & set(command_lines()):
        assert time.monotonic() < deadline, "the workers outlive their server"
        time.sleep(0.05)
    (workspace / "part0" / "m1.py").write_text("def after_the_kill(): pass\n")
    again = start()
    place = Path(ready(again, 3000, 60)["path"])
    assert again.close() == 0
    with sqlite3.connect(place) as index:
        assert index.execute("SELECT count(*) FROM lexical").fetchone() == (3000,)
        (defined,) = index.execute("SELECT defined FROM indexed WHERE path = 'part0/m1.py'").fetchone()
        empty = index.execute("SELECT count(*) FROM indexed WHERE defined NOT LIKE '%\"%'").fetchone()
    assert "after_the_kill" in defined
    assert empty == (0,)


@pytest.mark.slow
def test_graphs_are_shown_as_documents(start: StartEditor, workspace: Path) -> None:
    write(workspace, SHOP)
    editor = start(say("unused"))

    def shown(name: str) -> str:
        editor.wait_until(lambda: any(uri.endswith(name) for uri in editor.shown), 30.0)
        return Path(next(uri for uri in editor.shown if uri.endswith(name)).removeprefix("file://")).read_text()

    editor.command("codeagent.index.graph", function="value_added_tax")
    calls = shown("calls.md")
    assert calls.startswith("# Calls around value_added_tax\n\n```mermaid\nflowchart LR\n")
    assert "Cart.checkout" in calls
    editor.command("codeagent.index.graph", uri=from_path(str(workspace / "shop/cart.py")))
    imports = shown("dependencies.md")
    assert imports.startswith("# Imports in shop/cart.py\n")
    assert "shop/cart.py -> shop/taxes.py" in imports
    editor.command("codeagent.index.graph", function="nobody")
    editor.told("No definition of nobody was found", 30.0)
    assert editor.close() == 0
