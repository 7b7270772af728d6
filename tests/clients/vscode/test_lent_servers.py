"""VS Code lends its own TypeScript to the real server, which asks it about a file as a tool would."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients import lending_server
from tests.clients.neovim.support import call
from tests.clients.vscode.support import SECONDS, Editor, Window, window

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

SHAPES = """\
export interface Shape {
  area(): number;
}

/** The area of "😀" and other squares. */
export function areaOf(side: number): number { return side * side; }
"""
USES = """\
import { areaOf } from "./shapes";

const s = "😀"; const a = areaOf(2);
export function twice(): number { return areaOf(a)*2 }
areOf(3);
"""
USER = 'import {{ areaOf }} from "./shapes";\nexport const area{0} = areaOf({0});\n'
FILES = {"shapes.ts": SHAPES, "uses.ts": USES, "tsconfig.json": '{"compilerOptions": {"strict": true}}'}


@dataclass
class Asker:
    """Asks by the server in one window: files in `folder` carry questions and answers."""

    opened: Window
    folder: Path
    count: int = field(default=0)

    def uri(self, name: str) -> str:
        """The URI of a file of the workspace."""
        return (self.opened.workspace / name).as_uri()

    def ask(self, method: str, name: str, place: tuple[int, int] | None = None, /, **params: Any) -> Any:
        """The result for one file and place; None where nothing was answered."""
        self.count += 1
        question = self.folder / f"{self.count}.part"
        given: dict[str, Any] = {"textDocument": {"uri": self.uri(name)}, **params}
        if place:
            given["position"] = dict(zip(("line", "character"), place, strict=True))
        question.write_text(json.dumps({"uri": self.uri(name), "method": method, "params": given}))
        question.rename(question.with_suffix(".question"))
        answer = question.with_suffix(".answer")
        end = time.monotonic() + SECONDS
        while not answer.exists():
            assert time.monotonic() < end, f"{method}: no answer"
            self.opened.page.wait_for_timeout(50)
        found = json.loads(answer.read_text())
        assert [one[0] for one in found] in ([], ["vscode"])
        return found[0][1] if found else None

    def until_defined(self, name: str, place: tuple[int, int], wanted: str) -> Any:
        """The definition once it is in the wanted file: before the project is loaded, the import is taken for it."""
        end = time.monotonic() + SECONDS
        while not ((found := self.ask("textDocument/definition", name, place)) and found[0]["uri"] == wanted):
            assert time.monotonic() < end, f"not found, but {found}"
        return found


def place(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_the_editor_lends_its_typescript(tmp_path: Path, editor: Editor) -> None:
    folder = tmp_path / "asked"
    folder.mkdir()
    command = [sys.executable, lending_server.__file__, str(folder)]
    settings = {"codeagent.server.command": command}
    with window(tmp_path, editor, files=FILES, script=[], settings=settings) as opened:
        opened.open("uses.ts")
        asker = Asker(opened, folder)
        uses, shapes = asker.uri("uses.ts"), asker.uri("shapes.ts")

        found = asker.until_defined("uses.ts", (2, 27), shapes)
        assert [one["range"]["start"]["line"] for one in found] == [5]

        found = asker.ask("textDocument/references", "uses.ts", (2, 27), context={"includeDeclaration": True})
        assert sorted((one["uri"], one["range"]["start"]["line"]) for one in found) == [
            (shapes, 5), (uses, 0), (uses, 2), (uses, 3),
        ]  # fmt: skip
        assert {"uri": uses, "range": place(2, 27 - 1, 33 - 1)} in found, "two units for one emoji"

        edit = asker.ask("textDocument/rename", "shapes.ts", (5, 18), newName="squareOf")
        assert set(edit["changes"]) == {shapes, uses}
        assert edit["changes"][shapes] == [{"range": place(5, 16, 22), "newText": "squareOf"}]

        _check_code_actions(asker)
        _check_hierarchy(asker)
        _check_the_rest(asker)
        assert asker.ask("workspace/executeCommand", "uses.ts", command="workbench.action.files.saveAll") is None
        assert opened.disk("uses.ts") == USES, "nothing was applied"
        assert opened.disk("shapes.ts") == SHAPES


@pytest.mark.volume
def test_runs_fix_and_rename_over_fifty_files_by_the_typescript_of_the_editor(tmp_path: Path, editor: Editor) -> None:
    folder = tmp_path / "asked"
    folder.mkdir()
    users = {f"use{number}.ts": USER.format(number) for number in range(50)}
    settings = {
        "codeagent.server.command": [sys.executable, lending_server.__file__, str(folder)],
        "codeagent.edits.apply": "auto",
    }
    script = [
        call("code_actions", path="uses.ts", line_start=5, apply="Change spelling to 'areaOf'"),
        {"text": "Spelled right."},
        call("rename_symbol", path="shapes.ts", symbol="areaOf", new_name="squareOf"),
        {"text": "Renamed."},
    ]
    files = {**FILES, **users}
    with window(tmp_path, editor, files=files, script=script, settings=settings) as opened:
        opened.open("uses.ts")
        asker = Asker(opened, folder)
        asker.until_defined("uses.ts", (2, 27), asker.uri("shapes.ts"))
        opened.page.locator(".squiggly-error").first.wait_for()
        opened.task("fix it")
        opened.transcript().get_by_text("Spelled right.").first.wait_for()
        opened.idle()
        opened.task("rename it")
        opened.transcript().get_by_text("Renamed.").first.wait_for()
        opened.idle()
        assert all(opened.disk(name) == text for name, text in files.items()), "nothing is saved for the user"
        opened.command("File: Save All Files")
        until(lambda: "squareOf" in (opened.disk("use49.ts") or ""))
        until(lambda: opened.disk("uses.ts") == USES.replace("areOf(", "areaOf(").replace("areaOf", "squareOf"))
        for name, text in users.items():
            until(lambda name=name, text=text: opened.disk(name) == text.replace("areaOf", "squareOf"))  # type: ignore[misc]


def until(holds: Callable[[], bool]) -> None:
    """Wait until something outside of the page holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def _check_code_actions(asker: Asker) -> None:
    found = asker.ask("textDocument/codeAction", "uses.ts", range=place(4, 0, 5), context={"diagnostics": []})
    (fix,) = [one for one in found if "spelling" in one["title"]]
    assert fix["edit"]["changes"][asker.uri("uses.ts")][0]["newText"] == "areaOf"
    assert all(one["edit"] and "command" not in one and "CodeAgent" not in one["title"] for one in found)
    assert asker.ask("codeAction/resolve", "uses.ts", **fix)["edit"] == fix["edit"]


def _check_hierarchy(asker: Asker) -> None:
    (item,) = asker.ask("textDocument/prepareCallHierarchy", "shapes.ts", (5, 18))
    callers = asker.ask("callHierarchy/incomingCalls", "shapes.ts", item=item)
    (twice,) = [one["from"] for one in callers if one["from"]["name"] == "twice"]
    again = asker.ask("callHierarchy/outgoingCalls", "shapes.ts", item=twice)
    assert [one["to"]["name"] for one in again] == ["areaOf"]


def _check_the_rest(asker: Asker) -> None:
    hover = asker.ask("textDocument/hover", "uses.ts", (2, 27))
    assert "areaOf(side: number): number" in hover["contents"]["value"]
    symbols = asker.ask("textDocument/documentSymbol", "shapes.ts")
    assert [one["name"] for one in symbols] == ["Shape", "areaOf"]
    assert [one["name"] for one in symbols[0]["children"]] == ["area"]
    assert asker.ask("textDocument/prepareRename", "uses.ts", (2, 27))["placeholder"] == "areaOf"
    assert asker.ask("textDocument/prepareRename", "uses.ts", (4, 8)) is None, "refused"
    options = {"tabSize": 2, "insertSpaces": True}
    assert asker.ask("textDocument/formatting", "uses.ts", options=options)
    help_ = asker.ask("textDocument/signatureHelp", "uses.ts", (2, 32 + 1))
    assert help_["signatures"][0]["label"].startswith("areaOf(side: number)")
