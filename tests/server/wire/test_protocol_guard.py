"""The dispatcher, in process: every id is answered exactly once, whatever the client and the handlers do."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from lsprotocol import types

from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.wire.framing import make_converter
from codeagent_lsp.server.wire.lifecycle import Phase
from tests.clock import sooner_than
from tests.server.loopback import INITIALIZE, Loopback

HOVER = {"textDocument": {"uri": "file:///a"}, "position": {"line": 1, "character": 2}}


@pytest.fixture(autouse=True, scope="module")
def _one_converter() -> Iterator[None]:
    """Making the converter takes longer than most tests; it keeps nothing of what it has converted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codeagent_lsp.server.server.make_converter", cache(make_converter))
        yield


@pytest.fixture
async def loop() -> Loopback:
    loopback = Loopback()
    loopback.initialize()
    await asyncio.sleep(0.01)
    loopback.take()
    return loopback


def _code(answers: list[dict[str, Any]]) -> int:
    (answer,) = answers
    code: int = answer["error"]["code"]
    return code


async def _until(loop: Loopback, count: int = 1, seconds: float = 2.0) -> list[dict[str, Any]]:
    deadline = time.monotonic() + seconds
    while len(loop.sent) < count and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.002)
    return loop.take()


async def test_params_may_be_left_out(loop: Loopback) -> None:
    assert loop.say(id=1, method="test/echo") == [{"jsonrpc": "2.0", "id": 1, "result": None}]
    assert loop.say(id=2, method="test/echo", params=None) == [{"jsonrpc": "2.0", "id": 2, "result": None}]


@pytest.mark.parametrize("identity", [0, 1, -7, 1.5, "a", "", "1", 10**30])
async def test_ids_are_echoed_unchanged(loop: Loopback, identity: Any) -> None:
    (answer,) = loop.say(id=identity, method="test/echo", params=[1])
    assert answer["id"] == identity
    assert type(answer["id"]) is type(identity)


@pytest.mark.parametrize("identity", [None, True, {}, {"a": 1}, [], [1]])
async def test_other_ids_are_refused(loop: Loopback, identity: Any) -> None:
    (answer,) = loop.say(id=identity, method="test/echo")
    assert answer["id"] is None
    assert answer["error"]["code"] == -32600


@pytest.mark.parametrize(
    "params",
    [
        {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}},
        {"a": [{"jsonrpc": "2.0", "id": 1, "result": {}}], "class": 1, "def-x": 2, "type_name": "T"},
        {"deep": {"jsonrpc": "1.0", "error": {}}},
    ],
)
async def test_params_are_data_whatever_they_look_like(loop: Loopback, params: Any) -> None:
    assert loop.say(id=1, method="test/echo", params=params)[0]["result"] == params


async def test_typed_params_hold_plain_data(loop: Loopback) -> None:
    inner = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}
    loop.say(id=1, method="workspace/executeCommand", params={"command": "demo.echo", "arguments": [inner]})
    assert (await _until(loop))[0]["result"]["arguments"] == [inner]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (None, "params"),
        (5, "params"),
        ([], "params"),
        ({}, "params.textDocument is missing"),
        ({**HOVER, "position": {"line": "3", "character": 0}}, "params.position.line must be a whole number"),
        ({**HOVER, "position": {"line": -1, "character": 0}}, "params.position"),
        ({**HOVER, "textDocument": {"uri": 5}}, "params.textDocument.uri must be a string"),
        ({**HOVER, "textDocument": "x" * 50}, "params.textDocument"),
    ],
)
async def test_wrong_params_are_named_and_not_repeated(loop: Loopback, params: Any, words: str) -> None:
    (answer,) = loop.say(id=1, method="textDocument/hover", params=params)
    assert answer["error"]["code"] == -32602
    assert words in answer["error"]["message"]
    assert "xxxx" not in answer["error"]["message"]


async def test_right_params_are_lsp_types(loop: Loopback) -> None:
    assert loop.say(id=1, method="textDocument/hover", params=HOVER)[0]["result"] == {"contents": "1:2"}
    whole = {**HOVER, "position": {"line": 1.0, "character": 2.0}}
    assert loop.say(id=2, method="textDocument/hover", params=whole)[0]["result"] == {"contents": "1:2"}


async def test_commands(loop: Loopback) -> None:
    loop.say(id=1, method="workspace/executeCommand", params={"command": "demo.echo"})
    assert (await _until(loop))[0]["result"] == {"name": "demo.echo", "arguments": []}
    assert _code(loop.say(id=2, method="workspace/executeCommand", params={"command": 5})) == -32602


async def test_without_commands_every_command_is_unknown() -> None:
    loop = Loopback(CodeAgentServer())
    loop.initialize()
    loop.say(id=1, method="workspace/executeCommand", params={"command": "x"})
    assert _code(await _until(loop)) == -32602


async def test_before_initialize() -> None:
    loop = Loopback()
    assert _code(loop.say(id=1, method="test/echo")) == -32002
    assert _code(loop.say(id=2, method="shutdown")) == -32002
    item = {"uri": "file:///a", "languageId": "x", "version": 1, "text": "a"}
    assert loop.say(method="textDocument/didOpen", params={"textDocument": item}) == []
    assert loop.server.documents.all() == ()
    loop.initialize()


async def test_exit_before_initialize_is_heard() -> None:
    loop = Loopback()
    loop.say(method="exit")
    assert loop.server.departure.code == 1


async def test_a_second_initialize_is_refused(loop: Loopback) -> None:
    assert _code(loop.say(id=1, method="initialize", params=INITIALIZE)) == -32600
    assert loop.say(id=2, method="test/echo", params=[2])[0]["result"] == [2]


async def test_a_failed_initialize_may_be_repeated() -> None:
    loop = Loopback()
    assert _code(loop.say(id=1, method="initialize", params={"processId": "x"})) == -32602
    loop.initialize()


async def test_a_failing_feature_handler_fails_initialize_and_leaves_it_open() -> None:
    loop = Loopback()
    attempts = []

    @loop.server.feature(types.INITIALIZE)
    async def prepare(params: types.InitializeParams) -> None:
        await asyncio.sleep(0)
        attempts.append(params)
        if len(attempts) == 1:
            raise ValueError("not yet")

    loop.say(id=1, method="initialize", params=INITIALIZE)
    assert _code(await _until(loop)) == -32603
    assert loop.server.protocol.phase is Phase.FRESH
    loop.say(id=2, method="initialize", params=INITIALIZE)
    assert "result" in (await _until(loop))[0]


async def test_after_shutdown_everything_is_refused(loop: Loopback) -> None:
    assert loop.say(id=1, method="shutdown") == [{"jsonrpc": "2.0", "id": 1, "result": None}]
    for identity, method in enumerate(("test/echo", "shutdown", "initialize", "unknown")):
        assert _code(loop.say(id=identity, method=method)) == -32600
    item = {"uri": "file:///a", "languageId": "x", "version": 1, "text": "a"}
    assert loop.say(method="textDocument/didOpen", params={"textDocument": item}) == []
    assert loop.server.documents.all() == ()
    loop.say(method="exit")
    assert loop.server.departure.code == 0


async def test_shutdown_cancels_what_runs_but_itself(loop: Loopback) -> None:
    @loop.server.feature(types.SHUTDOWN)
    async def tidy_up(_params: Any) -> None:
        await asyncio.sleep(0.01)

    loop.say(id="run", method="test/sleep", params={"seconds": 30})
    await asyncio.sleep(0.01)
    loop.say(id="end", method="shutdown")
    answers = {answer["id"]: answer for answer in await _until(loop, 3) if "id" in answer}
    assert answers["run"]["error"]["code"] == -32800
    assert answers["end"]["result"] is None


async def test_unknown_methods(loop: Loopback) -> None:
    assert _code(loop.say(id=1, method="no/such")) == -32601
    assert _code(loop.say(id=2, method="$/no/such", params={})) == -32601
    assert loop.say(method="no/such") == []
    assert loop.say(method="$/setTrace/odd", params=[]) == []


@pytest.mark.parametrize("method", ["test/raise", "test/raiseLater", "test/raiseInThread"])
@pytest.mark.parametrize(
    "kind",
    ["ValueError", "SystemExit", "MemoryError", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "BaseException"],
)
async def test_handlers_may_raise_anything(loop: Loopback, method: str, kind: str) -> None:
    secret = "tok" + "en-" + "q7" * 8
    (answer,) = loop.say(id=1, method=method, params={"kind": kind, "secret": secret}) or await _until(loop)
    assert answer["error"]["code"] == -32603
    assert secret not in str(answer)
    assert "Traceback" not in str(answer)
    assert loop.say(id=2, method="test/echo", params=[2])[0]["result"] == [2]


async def test_errors_of_our_own_speak_the_language_of_the_user(loop: Loopback) -> None:
    (english,) = loop.say(id=1, method="test/raise", params={"kind": "UsageError"})
    loop.server.language = "zh-cn"
    (chinese,) = loop.say(id=2, method="test/raise", params={"kind": "UsageError"})
    assert english["error"]["code"] == chinese["error"]["code"] == -32602
    assert english["error"]["data"] == {"code": "INVALID_PARAM"}
    assert "does not exist" in english["error"]["message"]
    assert "不存在" in chinese["error"]["message"]


@pytest.mark.parametrize("kind", ["nan", "object", "deep"])
async def test_results_that_are_no_json(loop: Loopback, kind: str) -> None:
    assert _code(loop.say(id=1, method="test/unserializable", params={"kind": kind})) == -32603


async def test_notification_handlers_fail_in_silence(loop: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    secret = "tok" + "en-" + "z3" * 8
    with caplog.at_level(logging.DEBUG, "codeagent_lsp"):
        assert loop.say(method="test/raise", params={"kind": "ValueError", "secret": secret}) == []
        loop.say(method="test/raiseLater", params={"kind": "SystemExit", "secret": secret})
        await asyncio.sleep(0.01)
    assert loop.take() == []
    assert "ValueError" in caplog.text
    assert "SystemExit" in caplog.text
    assert secret not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(("method", "afterwards"), [("test/sleep", ["test/cleanedUp"]), ("test/block", [])])
async def test_a_cancelled_request_is_answered_at_once(loop: Loopback, method: str, afterwards: list[str]) -> None:
    loop.say(id=1, method=method, params={"seconds": 0.2})
    await asyncio.sleep(0.01)
    (answer,) = loop.say(method="$/cancelRequest", params={"id": 1})  # says what is answered before anything else runs
    assert (answer["id"], answer["error"]["code"]) == (1, -32800)
    await asyncio.sleep(0.3)
    assert [message["method"] for message in loop.take()] == afterwards


@pytest.mark.slow
async def test_the_late_result_of_a_cancelled_id_answers_nobody_else(loop: Loopback) -> None:
    loop.say(id=1, method="test/block", params={"seconds": 0.1})
    await asyncio.sleep(0.01)
    loop.say(method="$/cancelRequest", params={"id": 1})
    loop.take()
    loop.say(id=1, method="test/sleep", params={"seconds": 0.3})
    (answer,) = await _until(loop)
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "slept"}


async def test_a_command_can_be_cancelled(loop: Loopback) -> None:
    loop.say(id=1, method="workspace/executeCommand", params={"command": "demo.slow"})
    await asyncio.sleep(0.01)
    assert _code(loop.say(method="$/cancelRequest", params={"id": 1})) == -32800


@pytest.mark.parametrize("params", [None, {}, [], 5, {"id": 99}, {"id": None}, {"id": {}}, {"id": [1]}])
async def test_cancels_of_nothing_are_ignored(loop: Loopback, params: Any) -> None:
    loop.say(id=1, method="test/echo")
    loop.take()
    assert loop.say(method="$/cancelRequest", params=params) == []
    assert loop.say(method="$/cancelRequest", params={"id": 1}) == []


async def test_a_handler_that_cancels_itself_is_answered(loop: Loopback) -> None:
    loop.say(id=1, method="test/cancelSelf")
    assert _code(await _until(loop)) == -32800


@pytest.mark.slow
async def test_a_storm_of_cancels_leaves_nothing_behind(loop: Loopback) -> None:
    before = len(asyncio.all_tasks())
    with sooner_than(25, "one handler ends by itself"):
        for number in range(2000):
            loop.say(id=number, method="test/sleep", params={"seconds": 30})
            loop.sent.extend(loop.say(method="$/cancelRequest", params={"id": number}))
            assert _code(loop.take()) == -32800
        await asyncio.sleep(0.05)
    assert len(asyncio.all_tasks()) == before
    assert loop.take() == []  # nothing ran, nothing is answered twice


async def test_an_id_in_use_is_refused(loop: Loopback) -> None:
    loop.say(id=1, method="test/sleep", params={"seconds": 0.05})
    assert _code(loop.say(id=1, method="test/echo")) == -32600
    (answer,) = await _until(loop)
    assert answer["result"] == "slept"
    assert loop.say(id=1, method="test/echo", params=[1])[0]["result"] == [1]


async def test_the_ids_of_both_sides_are_apart(loop: Loopback) -> None:
    loop.say(id="server-1", method="test/ask", params={"method": "window/x", "seconds": 1})
    (ours,) = await _until(loop)
    assert ours["method"] == "window/x"
    loop.say(id=ours["id"], result="yes")
    (answer,) = await _until(loop)
    assert answer == {"jsonrpc": "2.0", "id": "server-1", "result": {"answer": "yes", "open": 0}}


@pytest.mark.parametrize("identity", ["server-99", 5, None, {}, [1]])
async def test_responses_to_nothing_are_ignored(loop: Loopback, identity: Any) -> None:
    loop.say(id=5, method="test/sleep", params={"seconds": 0.02})
    assert loop.say(id=identity, result={}) == []
    assert loop.say(id=identity, error={"code": 1, "message": "x"}) == []
    assert (await _until(loop))[0] == {"jsonrpc": "2.0", "id": 5, "result": "slept"}


async def test_a_silent_client_costs_the_time_limit_and_nothing_more(loop: Loopback) -> None:
    loop.say(id=1, method="test/ask", params={"method": "window/x", "seconds": 0.05})
    (ours,) = await _until(loop)
    (answer,) = await _until(loop)
    assert "did not answer window/x within 0.05 s" in answer["result"]["error"]
    assert answer["result"]["open"] == 0
    assert loop.say(id=ours["id"], result="late") == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"error": {"code": -32601, "message": "Method not found"}}, "refused workspace/applyEdit: Method not found"),
        ({"error": "odd"}, "unknown error"),
        ({"result": {"applied": "maybe"}}, "result.applied must be true or false"),
        ({"result": None}, "result"),
    ],
)
async def test_bad_answers_of_the_client(loop: Loopback, reply: dict[str, Any], words: str) -> None:
    edit: dict[str, Any] = {"edit": {"changes": {}}}
    loop.say(id=1, method="test/ask", params={"method": "workspace/applyEdit", "params": edit, "seconds": 1})
    (ours,) = await _until(loop)
    loop.say(id=ours["id"], **reply)
    (answer,) = await _until(loop)
    assert words in answer["result"]["error"]


async def test_answers_are_lsp_types(loop: Loopback) -> None:
    asked = asyncio.ensure_future(loop.server.request("workspace/applyEdit", {"edit": {}}, 1.0))
    (ours,) = await _until(loop)
    loop.say(id=ours["id"], result={"applied": True})
    assert await asked == types.ApplyWorkspaceEditResult(applied=True)


async def test_a_cancelled_question_is_forgotten(loop: Loopback) -> None:
    asked = asyncio.ensure_future(loop.server.request("window/x", None, 30.0))
    await _until(loop)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert len(loop.server.protocol.requests) == 0


async def test_the_ways_of_pygls_still_work(loop: Loopback) -> None:
    asked = asyncio.ensure_future(loop.server.workspace_configuration_async(types.ConfigurationParams(items=[])))
    (ours,) = await _until(loop)
    loop.say(id=ours["id"], result=[{"a": 1}])
    assert list(await asked) == [{"a": 1}]
    loop.server.window_show_message(types.ShowMessageParams(types.MessageType.Info, "hi"))
    assert loop.take()[0]["params"] == {"type": 3, "message": "hi"}


async def test_notifications_leave_out_missing_params(loop: Loopback) -> None:
    loop.server.notify("x/y")
    assert loop.take() == [{"jsonrpc": "2.0", "method": "x/y"}]


async def test_text_sync_reaches_documents_and_not_pygls(loop: Loopback) -> None:
    item = {"uri": "file:///a", "languageId": "py", "version": 0, "text": "one\n"}
    loop.say(method="textDocument/didOpen", params={"textDocument": item})
    place = {"line": 0, "character": 3}
    change = {"range": {"start": place, "end": place}, "text": "!"}
    identity = {"uri": "file:///%61", "version": 1}
    loop.say(method="textDocument/didChange", params={"textDocument": identity, "contentChanges": [change]})
    document = loop.server.documents.get("file:///a")
    assert document is not None
    assert (document.text, document.version, document.language_id) == ("one!\n", 1, "py")
    assert loop.server.workspace.text_documents == {}
    loop.say(method="textDocument/didClose", params={"textDocument": {"uri": "file:///a"}})
    assert loop.server.documents.all() == ()


async def test_features_hear_of_text_sync_after_the_documents(loop: Loopback) -> None:
    seen: list[str] = []

    @loop.server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = loop.server.documents.get(params.text_document.uri)
        seen.append(document.text if document else "nothing")

    item = {"uri": "file:///a", "languageId": "py", "version": 0, "text": "text"}
    loop.say(method="textDocument/didOpen", params={"textDocument": item})
    await asyncio.sleep(0.01)
    assert seen == ["text"]


@pytest.mark.parametrize(
    ("offered", "chosen"), [(None, "utf-16"), (["utf-8", "utf-16"], "utf-8"), (["utf-32"], "utf-32"), (["x"], "utf-16")]
)
async def test_the_position_encoding(offered: list[str] | None, chosen: str) -> None:
    loop = Loopback()
    capabilities = {} if offered is None else {"general": {"positionEncodings": offered}}
    (answer,) = loop.say(id=1, method="initialize", params={**INITIALIZE, "capabilities": capabilities})
    assert answer["result"]["capabilities"]["positionEncoding"] == chosen
    assert loop.server.documents.encoding == chosen


async def test_workspace_folders_still_work() -> None:
    loop = Loopback()
    folders = [{"uri": "file:///w", "name": "w"}]
    loop.say(id=1, method="initialize", params={**INITIALIZE, "workspaceFolders": folders})
    event = {"added": [{"uri": "file:///v", "name": "v"}], "removed": folders}
    loop.say(method="workspace/didChangeWorkspaceFolders", params={"event": event})
    assert list(loop.server.workspace.folders) == ["file:///v"]
