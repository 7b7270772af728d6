"""Inline completion as a stock editor meets it: offered or not, asked, ended, and nothing sent that must not be."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.inline.fill_server import FillServer, fill_server
from tests.language_servers.rig import FAKE
from tests.server.conftest import StartEditor
from tests.server.stock_editor import STOCK, StockEditor

METHOD = "textDocument/inlineCompletion"
TEXT = "def add(a, b):\n    return \n"
CURSOR = (1, 11)


def capabilities(*, dynamic: bool = True) -> dict[str, Any]:
    found = copy.deepcopy(STOCK)
    found["textDocument"]["inlineCompletion"] = {"dynamicRegistration": dynamic}
    found["experimental"] = {"codeagent": {"inlineStatus": True}}
    return found


@pytest.fixture
def server() -> Iterator[FillServer]:
    with fill_server(lambda path, body: ["a ", "+ b", "\n\n"]) as server:
        yield server


@pytest.fixture
def editor(start: StartEditor, server: FillServer) -> StockEditor:
    return begin(start, server)


def begin(start: StartEditor, server: FillServer, /, *, dynamic: bool = True, **inline: Any) -> StockEditor:
    """An editor that completes; it waits until the server has said so."""
    settings = {"model": {"baseUrl": server.url}, "inline": {"debounceMs": 10, **inline}}
    editor = start(capabilities=capabilities(dynamic=dynamic), settings=settings)
    if inline.get("enabled") is not False:
        state(editor, "ready")
    return editor


def state(editor: StockEditor, wanted: str) -> dict[str, Any]:
    """Wait until the server tells this state."""

    def told(message: dict[str, Any]) -> bool:
        return message.get("method") == "codeagent/inlineStatus" and message["params"]["state"] == wanted

    params: dict[str, Any] = editor.client.wait(told, 30.0)["params"]
    return params


def ask(uri: str, place: tuple[int, int] = CURSOR, kind: int = 2, **more: Any) -> dict[str, Any]:
    at = {"line": place[0], "character": place[1]}
    return {"textDocument": {"uri": uri}, "position": at, "context": {"triggerKind": kind, **more}}


def test_a_completion_at_the_cursor(editor: StockEditor, server: FillServer, workspace: Path) -> None:
    path = workspace / "x.py"
    path.write_text("")
    uri = editor.open(path, TEXT)
    answer = editor.client.result(METHOD, ask(uri))
    place = {"line": 1, "character": 11}
    assert answer == {"items": [{"insertText": "a + b", "range": {"start": place, "end": place}}]}
    assert server.bodies[0]["input_prefix"] == TEXT[:-1]
    assert not path.read_text(), "nothing is written"


def test_a_text_that_is_not_known_has_no_completion_until_it_is(editor: StockEditor, workspace: Path) -> None:
    path = workspace / "x.py"
    path.write_text("")
    uri = editor.open(path, TEXT)
    place = {"line": 99, "character": 0}
    for version, change in ((50, {"range": {"start": place, "end": place}, "text": "x"}), (51, {"text": TEXT})):
        identity = {"uri": uri, "version": version}
        editor.client.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [change]})
        answer = editor.client.result(METHOD, ask(uri))
        assert [item["insertText"] for item in (answer or {}).get("items", ())] == (["a + b"] if version == 51 else [])


def test_a_buffer_without_a_name_is_completed_while_it_is_the_only_one(editor: StockEditor) -> None:
    editor._open("file://", TEXT)
    assert editor.client.result(METHOD, ask("file://"))["items"][0]["insertText"] == "a + b"
    editor.client.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": "file://", "languageId": "python", "version": 0, "text": "two\n"}},
    )
    assert editor.client.result(METHOD, ask("file://", (0, 0))) is None, "of which one is the cursor?"


def test_typing_along_needs_no_model(editor: StockEditor, server: FillServer, workspace: Path) -> None:
    uri = editor.open(workspace / "x.py", TEXT)
    editor.client.result(METHOD, ask(uri))
    for number, char in enumerate("a + "):
        editor.type(uri, (1, 11 + number), (1, 11 + number), char)
        answer = editor.client.result(METHOD, ask(uri, (1, 12 + number)))
        assert answer["items"][0]["insertText"] == "a + b"[number + 1 :]
    assert len(server.asked) == 1


def test_registered_only_where_a_model_is_at_hand(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["x"], model="mystery-9b") as server:
        settings = {"model": {"baseUrl": server.url}}
        editor = start(capabilities=capabilities(), settings=settings)
        assert "inline.enabled" in state(editor, "unavailable")["detail"]
        assert "client/registerCapability" not in [message.get("method") for message in editor.client.messages]
        uri = editor.open(workspace / "x.py", TEXT)
        assert editor.client.result(METHOD, ask(uri)) is None
        assert server.asked == []


def test_a_model_of_an_unknown_name_is_asked_where_the_user_wants_it(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["x\n"], model="mystery-9b") as server:
        editor = begin(start, server, enabled=True)
        uri = editor.open(workspace / "x.py", TEXT)
        assert editor.client.result(METHOD, ask(uri))["items"][0]["insertText"] == "x"


def test_switched_off_nothing_is_asked(start: StartEditor, server: FillServer, workspace: Path) -> None:
    editor = begin(start, server, enabled=False)
    state(editor, "off")
    uri = editor.open(workspace / "x.py", TEXT)
    assert editor.client.result(METHOD, ask(uri)) is None
    assert server.asked == []


def test_switched_off_and_on_again_while_it_runs(start: StartEditor, server: FillServer, workspace: Path) -> None:
    registered: list[str] = []
    answers = {
        "client/registerCapability": lambda params: registered.append(params["registrations"][0]["method"]),
        "client/unregisterCapability": lambda params: registered.append("-"),
    }
    settings = {"model": {"baseUrl": server.url}}
    editor = start(capabilities=capabilities(), settings=settings, answers=answers)
    state(editor, "ready")
    editor.wait_until(lambda: registered == [METHOD])
    configure = "workspace/didChangeConfiguration"
    editor.client.notify(configure, {"settings": {"codeagent": {"inline": {"enabled": False}}}})
    editor.wait_until(lambda: registered == [METHOD, "-"])
    editor.client.notify(configure, {"settings": {"codeagent": {"inline": {"enabled": "auto"}}}})
    editor.wait_until(lambda: registered == [METHOD, "-", METHOD])
    uri = editor.open(workspace / "x.py", TEXT)
    assert editor.client.result(METHOD, ask(uri))["items"]


def test_a_client_that_takes_no_registration_is_told_at_once(
    start: StartEditor, server: FillServer, workspace: Path
) -> None:
    editor = begin(start, server, dynamic=False)
    assert editor.capabilities["inlineCompletionProvider"] is True
    uri = editor.open(workspace / "x.py", TEXT)
    assert editor.client.result(METHOD, ask(uri))["items"]


def test_a_client_without_inline_completion_has_none_of_it(start: StartEditor, server: FillServer) -> None:
    editor = start(settings={"model": {"baseUrl": server.url}, "inline": {"enabled": True}})
    assert "inlineCompletionProvider" not in editor.capabilities
    editor.command("codeagent.doctor")
    assert not any(m.get("method") == "client/registerCapability" for m in editor.client.messages)


@pytest.mark.parametrize("name", [".env", "secret.key", "kept/out.py", "../outside.py"])
def test_files_that_are_never_sent(editor: StockEditor, server: FillServer, workspace: Path, name: str) -> None:
    (workspace / ".codeagentignore").write_text("kept/\n")
    path = workspace / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEXT)
    uri = editor.open(path.resolve())
    assert editor.client.result(METHOD, ask(uri)) is None
    assert server.asked == []


def test_nothing_beside_a_secret_and_none_is_sent(editor: StockEditor, server: FillServer, workspace: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    uri = editor.open(workspace / "x.py", f"token = '{secret}'\n# token {secret} \n{TEXT}")
    assert editor.client.result(METHOD, ask(uri, (1, len(secret) + 9), kind=1)) is None
    assert server.asked == []
    assert editor.client.result(METHOD, ask(uri, (3, 11)))["items"]
    assert secret not in str(server.bodies)


def test_pieces_come_from_unsaved_texts_but_not_from_ignored_ones(
    editor: StockEditor, server: FillServer, workspace: Path
) -> None:
    (workspace / ".codeagentignore").write_text("hidden.py\n")
    piece = "def total(prices, taxes):\n    subtotal = sum(prices)\n    return subtotal + taxes\n"
    editor.open(workspace / "other.py", piece)
    editor.open(workspace / "hidden.py", piece.replace("subtotal", "hidden_total"))
    here = "def total_of(prices, taxes):\n    subtotal = sum(prices)\n    return \n"
    uri = editor.open(workspace / "x.py", here)
    editor.client.result(METHOD, ask(uri, (2, 11)))
    (body,) = server.bodies
    assert [piece["filename"] for piece in body["input_extra"]] == ["other.py"]
    assert "hidden" not in str(body)


def test_an_answer_for_a_text_that_is_gone_is_none(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["a ", "+ b", "\n"], pause=0.2) as server:
        editor = begin(start, server)
        uri = editor.open(workspace / "x.py", TEXT)
        asked = editor.client.start(METHOD, ask(uri))
        editor.wait_until(lambda: bool(server.asked))
        editor.type(uri, (0, 0), (0, 0), "# new\n")
        assert editor.client.response(asked)["result"] is None


def test_a_cancelled_request_is_answered_at_once_and_ends(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["word "] * 500, pause=0.02) as server:
        editor = begin(start, server)
        uri = editor.open(workspace / "x.py", TEXT)
        asked = editor.client.start(METHOD, ask(uri))
        editor.wait_until(lambda: bool(server.asked))
        editor.client.notify("$/cancelRequest", {"id": asked})
        assert editor.client.response(asked)["error"]["code"] == -32800
        editor.wait_until(lambda: server.broken_off == 1)


def test_the_entry_of_the_list_is_completed(editor: StockEditor, server: FillServer, workspace: Path) -> None:
    uri = editor.open(workspace / "x.py", "def add(a, b):\n    ret\n")
    span = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 7}}
    chosen = {"range": span, "text": "return "}
    (item,) = editor.client.result(METHOD, ask(uri, (1, 7), selectedCompletionInfo=chosen))["items"]
    assert item == {"insertText": "return a + b", "range": span}
    assert server.bodies[0]["input_prefix"].endswith("    return ")


def test_positions_count_as_the_client_does(editor: StockEditor, server: FillServer, workspace: Path) -> None:
    uri = editor.open(workspace / "x.py", "s = '𝔘𝔘é' + \n")
    place = {"line": 0, "character": 14}
    (item,) = editor.client.result(METHOD, ask(uri, (0, 14)))["items"]
    assert item["range"] == {"start": place, "end": place}
    assert server.bodies[0]["input_prefix"].endswith("é' + ")


def test_a_server_that_is_gone_is_told_once_and_not_by_a_message(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["a\n"]) as server:
        editor = begin(start, server)
    uri = editor.open(workspace / "x.py", TEXT)
    assert editor.client.result(METHOD, ask(uri)) is None
    assert state(editor, "unavailable")["detail"]
    assert editor.notifications("window/showMessage") == []


# Completion as an entry of the list, for editors without ghost text.

LIST = "textDocument/completion"


def begin_plain(
    start: StartEditor,
    server: FillServer,
    /,
    *,
    ghost: bool = False,
    replaces: bool = False,
    name: str = "",
    **inline: Any,
) -> StockEditor:
    """An editor that shows lists, and ghost text if `ghost`."""
    found = capabilities()
    found["textDocument"]["completion"] = {"completionItem": {"snippetSupport": True, "insertReplaceSupport": replaces}}
    if not ghost:
        del found["textDocument"]["inlineCompletion"]
    settings = {"model": {"baseUrl": server.url}, "inline": {"debounceMs": 10, **inline}}
    editor = start(capabilities=found, settings=settings, client={"name": name} if name else None)
    state(editor, "off" if False in inline.values() else "ready")
    return editor


def items(editor: StockEditor, uri: str, place: tuple[int, int]) -> list[dict[str, Any]]:
    at = {"line": place[0], "character": place[1]}
    answer = editor.client.result(LIST, {"textDocument": {"uri": uri}, "position": at})
    if answer is None:
        return []
    assert answer["isIncomplete"], "the client asks again at each key"
    return list(answer["items"])


def test_one_entry_below_all_others(start: StartEditor, server: FillServer, workspace: Path) -> None:
    editor = begin_plain(start, server)
    uri = editor.open(workspace / "x.py", "def add(a, b):\n    x = ret\n")
    (item,) = items(editor, uri, (1, 11))
    span = {"start": {"line": 1, "character": 8}, "end": {"line": 1, "character": 11}}
    assert item["textEdit"] == {"range": span, "newText": "reta + b"}
    assert item["filterText"] == "ret" and item["label"] == "reta + b", "a client that filters keeps it"
    assert item["detail"] == "CodeAgent" and item["sortText"] > "zzzz"
    assert item["insertTextFormat"] == 1, "`$` in code is no place of a snippet"
    assert item["commitCharacters"] == [] and "preselect" not in item
    editor.type(uri, (1, 11), (1, 11), "a")
    (item,) = items(editor, uri, (1, 12))
    assert item["textEdit"]["newText"] == "reta + b" and len(server.asked) == 1, "typed along: no model is asked"


@pytest.mark.parametrize(
    ("line", "replaces", "wanted"),
    [
        ("    x = ret", False, "retsum(\n    a)"),  # its lines are relative, and none can be left of the first one
        ("    .a-ret", False, None),  # the editor may take `a-ret` for the word
        ("    x = ret", True, None),  # a plugin that carries out edits
    ],
)
def test_neovim_is_given_text_as_it_takes_of_an_edit_no_more_than_a_word(
    start: StartEditor, workspace: Path, line: str, replaces: bool, wanted: str | None
) -> None:
    with fill_server(lambda path, body: ["sum(\n", "        a)\n  .b\n", "\n"]) as server:
        editor = begin_plain(start, server, name="Neovim", replaces=replaces)
        uri = editor.open(workspace / "x.py", f"def add(a, b):\n{line}\n")
        (item,) = items(editor, uri, (1, len(line)))
        assert (item.get("insertText"), "textEdit" in item) == (wanted, wanted is None)


def test_the_entry_of_a_block_shows_its_first_line_and_inserts_all(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["\n    if a:\n        return b\n\n"]) as server:
        editor = begin_plain(start, server)
        uri = editor.open(workspace / "x.py", "def add(a, b):\n")
        (item,) = items(editor, uri, (0, 14))
        assert item["label"] == "if a: …"
        assert item["textEdit"]["newText"] == item["documentation"] == "\n    if a:\n        return b"


def test_what_is_late_comes_with_the_next_key(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["a ", "+ b", "\n"], pause=0.6) as server:
        editor = begin_plain(start, server)
        uri = editor.open(workspace / "x.py", TEXT)
        assert items(editor, uri, CURSOR) == []
        editor.wait_until(lambda: bool(items(editor, uri, CURSOR)))
        assert len(server.asked) == 1, "what was late was kept"


@pytest.mark.parametrize(
    "settings", [{"ghost": True}, {"plain": False}, {"enabled": False}], ids=["ghost text", "off", "none at all"]
)
def test_no_entry_where_it_is_not_wanted(
    start: StartEditor, server: FillServer, workspace: Path, settings: dict[str, Any]
) -> None:
    editor = begin_plain(start, server, **settings)
    uri = editor.open(workspace / "x.py", TEXT)
    assert items(editor, uri, CURSOR) == []
    assert server.asked == []


def test_an_editor_may_have_both(start: StartEditor, server: FillServer, workspace: Path) -> None:
    editor = begin_plain(start, server, ghost=True, plain=True)
    uri = editor.open(workspace / "x.py", TEXT)
    assert items(editor, uri, CURSOR)[0]["textEdit"]["newText"] == "a + b"


def test_no_entry_beside_a_secret_and_in_a_prompt_only_what_belongs_there(
    start: StartEditor, server: FillServer, workspace: Path
) -> None:
    editor = begin_plain(start, server)
    secret = "ghp_" + "a1B2" * 9
    uri = editor.open(workspace / "x.py", f"token = '{secret}'\n")
    assert items(editor, uri, (0, len(secret) + 10)) == []
    assert server.asked == []


# Suggestions are checked where a run has left a language server running.


@pytest.mark.slow
def test_after_a_run_an_answer_with_an_error_is_not_shown(start: StartEditor, workspace: Path) -> None:
    edit = {"path": "x.py", "old_string": "return a", "new_string": "return b"}
    script = ({"tool_calls": [{"name": "edit_file", "arguments": edit}]}, {"text": "Done."})
    # To this server every name `undefined_<n>` is an error.
    fake = {
        "command": [sys.executable, str(FAKE), "--way", "pull"],
        "languages": {"py": "python"},
        "diagnostics": "pull",
    }
    others = dict.fromkeys(("basedpyright", "pyright", "ruff"), False)

    def answer(path: str, body: dict[str, Any]) -> list[str]:
        return ["b", " + undefined_1" if body["temperature"] == 0 else " + a", "\n\n"]

    with fill_server(answer) as server:
        editor = start(
            *script,
            capabilities=capabilities(),
            settings={
                "model": {"inline": f"qwen2.5-coder-1.5b@{server.url}"},
                "inline": {"debounceMs": 10},
                "edits": {"apply": "auto"},
                "languageServers": {"fake": fake, **others},
            },
        )
        state(editor, "ready")
        uri = editor.open(workspace / "x.py", "def add(a, b):\n    return a\n\n\ndef sub(a, b):\n    return \n")
        (item,) = editor.client.result(METHOD, ask(uri, (5, 11)))["items"]
        assert item["insertText"] == "b + undefined_1", "no server runs, so nothing is known of it"
        editor.run("codeagent.run", task="return b")
        editor.type(uri, (5, 4), (5, 10), "yield")
        (item,) = editor.client.result(METHOD, ask(uri, (5, 10)))["items"]
        assert item["insertText"] == "b + a"
        assert len(server.asked) == 3
