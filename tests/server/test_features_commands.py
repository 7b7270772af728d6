"""Every command, with good and with bad arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.app import create_server
from codeagent_lsp.protocol import COMMANDS, Argument, Command
from codeagent_lsp.server.wire import lifecycle
from tests.server.loopback import INITIALIZE, Loopback
from tests.server.replies import edit, say
from tests.server.stock_editor import StockEditor

SPAN = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
WRONG: dict[str, Any] = {"string": 7, "uri": 7, "integer": "x", "object": [], "array": "x", "range": {"start": 1}}


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockEditor]:
    folder = tmp_path_factory.mktemp("commands")
    workspace = folder / "ws"
    workspace.mkdir()
    (workspace / "a.py").write_text("x = 1\ny = 2\n")
    with StockEditor(workspace, folder / "state", script=[say("Done."), {"loop": True}]) as started:
        started.open(workspace / "a.py")
        yield started


class Refusing:
    """The server in this process, with an event loop that runs while it is asked: for commands that start nothing."""

    def __init__(self, runner: asyncio.Runner, server: Loopback) -> None:
        self._runner = runner
        self._server = server

    def refusal(self, name: str, *arguments: Any) -> str:
        """The error message of a command that must fail."""
        answer = self._answer({"command": name, "arguments": list(arguments)})
        assert "error" in answer, answer
        message: str = answer["error"]["message"]
        return message

    def result(self, params: dict[str, Any]) -> Any:
        """What a command returns."""
        return self._answer(params)["result"]

    def _answer(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._runner.run(self._asked(params))

    async def _asked(self, params: dict[str, Any]) -> dict[str, Any]:
        said = self._server.say(id="asked", method="workspace/executeCommand", params=params)
        while not (answers := [message for message in said if message.get("id") == "asked"]):
            await asyncio.sleep(0.001)
            said = self._server.take()
        return answers[0]


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    workspace = tmp_path_factory.mktemp("refusing")
    (workspace / "a.py").write_text("x = 1\ny = 2\n")
    with asyncio.Runner() as runner, _served(runner, workspace) as server:
        yield Refusing(runner, server)


@contextmanager
def _served(runner: asyncio.Runner, workspace: Path) -> Iterator[Loopback]:
    """A server that is ready, and its end."""
    server = create_server()

    async def begun() -> Loopback:
        loopback = Loopback(server)
        options = {"foreign": {"watch": "off"}, "index": {"enabled": False}}
        params = {**INITIALIZE, "rootUri": workspace.as_uri(), "initializationOptions": options}
        (answer,) = loopback.say(id="init", method="initialize", params=params)
        assert "result" in answer, answer
        loopback.say(method="initialized", params={})
        return loopback

    async def ended() -> None:
        server.protocol.close()
        await lifecycle.run_callbacks(server._on_close)
        server._tasks.cancel()

    yield runner.run(begun())
    runner.run(ended())


@pytest.mark.slow
def test_all_commands_are_offered(editor: StockEditor) -> None:
    offered = editor.capabilities["executeCommandProvider"]["commands"]
    assert set(offered) == {command.name for command in COMMANDS}
    assert len(offered) == len(set(offered))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_bad_arguments_are_named(refusing: Refusing, command: Command) -> None:
    good = {argument.name: _sample(argument) for argument in command.arguments if argument.required}
    said = refusing.refusal(command.name, {**good, "colour": "red"})
    assert "colour" in said
    assert "arguments" in refusing.refusal(command.name, {}, {}).lower() or command.name in said
    assert command.name in refusing.refusal(command.name, "a string")
    for argument in command.arguments:
        others = {name: value for name, value in good.items() if name != argument.name}
        if argument.required:
            assert argument.name in refusing.refusal(command.name, others)
        if argument.kind in WRONG:
            assert argument.name in refusing.refusal(command.name, {**others, argument.name: WRONG[argument.kind]})
        if argument.choices:
            said = refusing.refusal(command.name, {**others, argument.name: "purple"})
            assert all(choice in said for choice in argument.choices)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [item for item in COMMANDS if item.starts_run and item.name != "codeagent.nextEdit.apply"],  # which needs edits
    ids=lambda item: item.name,
)
def test_a_command_that_works_answers_at_once_with_its_run(editor: StockEditor, command: Command) -> None:
    uri = next(iter(editor.buffers))
    given = {argument.name: _sample(argument, uri) for argument in command.arguments if argument.required}
    if command.name == "codeagent.edit":
        given["instruction"] = "change it"
    if command.name == "codeagent.ask":
        given["question"] = "why?"
    if command.name == "codeagent.skills.install":
        given["source"] = "./no-such-skill"
    if "runId" in given:
        given["runId"] = editor.command("codeagent.ask", question="why?")["runId"]
    answer = editor.command(command.name, **given)
    assert answer["runId"]
    assert editor.ended(answer["runId"], 5)["message"]


@pytest.mark.parametrize("name", ["codeagent.nothing", "", "editor.action.save"])
def test_an_unknown_command_is_an_error(refusing: Refusing, name: str) -> None:
    assert refusing.refusal(name, {})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("codeagent.cancel", {"runId": "nothing"}),
        ("codeagent.respond", {"requestId": "nothing", "answer": "x"}),
        ("codeagent.review", {"runId": "nothing"}),
        ("codeagent.apply", {"runId": "nothing"}),
        ("codeagent.discard", {"runId": "nothing"}),
        ("codeagent.undo", {"runId": "nothing"}),
        ("codeagent.session.resume", {"sessionId": "../../etc/passwd"}),
        ("codeagent.session.delete", {"sessionId": "nothing"}),
        ("codeagent.tools.enable", {"name": "nothing"}),
        ("codeagent.tools.disable", {"name": "nothing"}),
        ("codeagent.explain", {"uri": "file:///etc/passwd", "range": SPAN}),
        ("codeagent.edit", {"uri": "file:///nowhere/at/all.py", "range": SPAN, "instruction": "x"}),
    ],
)
def test_what_does_not_exist_is_refused_in_words(refusing: Refusing, name: str, given: dict[str, Any]) -> None:
    said = refusing.refusal(name, given)
    assert "Internal error" not in said
    assert "Traceback" not in said


def test_a_command_without_arguments_is_as_good_as_an_empty_object(refusing: Refusing) -> None:
    params = {"command": "codeagent.pending"}
    assert refusing.result(params) == []
    assert refusing.result({**params, "arguments": []}) == []
    assert refusing.result({**params, "arguments": [{}]}) == []


def test_null_counts_as_left_out(refusing: Refusing) -> None:
    assert refusing.result({"command": "codeagent.cancel", "arguments": [{"runId": None}]}) == {"cancelled": []}


@pytest.mark.slow
def test_the_lists_and_the_doctor(editor: StockEditor) -> None:
    tools = {tool["name"]: tool for tool in editor.command("codeagent.tools.list")}
    assert {"read_file", "edit_file", "grep"} <= set(tools)
    assert {"description", "effect", "group", "state"} <= set(tools["read_file"])
    assert [row["name"] for row in editor.command("codeagent.tools.stats", name="grep")] == ["grep"]
    assert editor.command("codeagent.model.list")
    assert {"name", "provider", "facts", "answerForms"} == set(editor.command("codeagent.model.list", details=True)[0])
    checks = {check["name"]: check for check in editor.command("codeagent.doctor")}
    assert checks["client"]["detail"].startswith("stock")
    assert "edits: by tools" in checks["model"]["detail"] and "200 model calls" in checks["limits"]["detail"]
    assert editor.command("codeagent.session.new")["sessionId"]
    assert isinstance(editor.command("codeagent.session.list"), list)


@pytest.mark.slow
def test_hunks_must_be_named_as_the_review_shows_them(workspace: Path, tmp_path: Path) -> None:
    script = [edit("a.py", "x = 1", "x = 2"), say("Done.")]
    with StockEditor(workspace, tmp_path / "state", script=script, choose=lambda params: None) as editor:
        editor.open(workspace / "a.py", "x = 1\n")
        run_id = editor.command("codeagent.run", task="go")["runId"]
        editor.ended(run_id)
        for bad in ("a.py", "a.py#0", "a.py#x", "#1", "a.py#"):
            assert "hunks" in editor.refusal("codeagent.apply", {"runId": run_id, "hunks": [bad]})


def _sample(argument: Argument, uri: str = "file:///x.py") -> Any:
    if argument.choices:
        return argument.choices[0]
    samples = {"uri": uri, "range": SPAN, "array": [], "object": {}, "integer": 1}
    return samples.get(argument.kind, "text")
