"""What a tool works with: parts behind ports, which may be missing."""

from pathlib import Path

import pytest

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import NobodyToAsk, OnTested, Redaction, Tally, ToolContext, tool_context
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.workspace.changes.staging import Staging
from tests.workspace.file_fakes import workspace


def context(folder: Path) -> ToolContext:
    return tool_context(workspace(folder).view, Staging(lambda path: None), Settings())


def test_a_port_gives_its_part_and_a_missing_one_says_so(tmp_path: Path) -> None:
    todos = TodoList()
    made = context(tmp_path).having((TodoList, todos))
    assert made.get(TodoList) is todos
    assert made.need(TodoList, "none") is todos
    without = made.having((TodoList, None))
    assert without.get(TodoList) is None
    with pytest.raises(ToolFailed, match="no list here") as failed:
        without.need(TodoList, "no list here", ErrorCode.TOOL_DISABLED)
    assert failed.value.code is ErrorCode.TOOL_DISABLED
    assert made.get(TodoList) is todos  # a context is a value


def test_a_function_can_be_behind_a_port(tmp_path: Path) -> None:
    told: list[Tally] = []
    tested = context(tmp_path).having((OnTested, lambda: told.append)).get(OnTested)
    assert tested is not None
    tested()(Tally(1, 0))
    assert told == [Tally(1, 0)]


async def test_without_parts_nothing_is_hidden_and_nobody_answers(tmp_path: Path) -> None:
    made = context(tmp_path)
    assert made.redaction == Redaction()
    assert made.redaction.hide("token") == "token"
    assert made.redaction.reveal({"a": 1}) == {"a": 1}
    assert isinstance(made.asker, NobodyToAsk)
    assert await made.asker.ask(Question("question", "?")) is None
