"""The tools `todoread` and `todowrite`: the session's todo list."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.todos.todo_list import Priority, Todo, TodoList, TodoStatus, render
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class TodoReadParameters(Parameters):
    """Which todos to show."""

    status: TodoStatus | None = None
    priority: Priority | None = None


class TodoRead(Tool[TodoReadParameters]):
    """Read the list."""

    traits: ClassVar[ToolTraits] = ToolTraits("todoread", "Read your todo list.", "read")
    parameters = TodoReadParameters
    example: ClassVar[Example] = {"status": "pending"}
    output = list[dict[str, str]]

    async def run(self, arguments: TodoReadParameters, context: ToolContext) -> ToolOutput:
        """Return one line per todo."""
        todos = context.need(TodoList, "There is no todo list here.")
        chosen = todos.select(arguments.status, arguments.priority)
        return ToolOutput(render(chosen), todos.to_data())


class TodoItem(Parameters):
    """A todo; for `update` only the id and the changed fields."""

    id: str = Field(min_length=1)
    content: str | None = Field(None, min_length=1)
    status: TodoStatus | None = None
    priority: Priority | None = None


class TodoWriteParameters(Parameters):
    """The action and its todos."""

    action: Literal["replace", "add", "update"] = "replace"
    todos: list[TodoItem] = Field(max_length=100)


class TodoWrite(Tool[TodoWriteParameters]):
    """Change the list."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "todowrite",
        "Replace, add to, or update your todo list. Use it for tasks of three steps or more.",
        "read",
    )
    parameters = TodoWriteParameters
    example: ClassVar[Example] = {
        "action": "add",
        "todos": [{"id": "1", "content": "Add the tax", "status": "pending"}],
    }
    output = list[dict[str, str]]

    async def run(self, arguments: TodoWriteParameters, context: ToolContext) -> ToolOutput:
        """Return the new list."""
        known = context.need(TodoList, "There is no todo list here.")
        ids = [item.id for item in arguments.todos]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ToolRetry(f"Each todo needs an id of its own; given more than once: {', '.join(twice)}.")
        if arguments.action == "update":
            unknown = known.update([item.model_dump() for item in arguments.todos])
            if unknown:
                raise ToolRetry(f"No todo with id {', '.join(unknown)}; nothing changed.\n{render(known.items)}")
        else:
            todos = [_todo(item) for item in arguments.todos]
            change = known.replace_all if arguments.action == "replace" else known.add
            change(todos)
        return ToolOutput(render(known.items), known.to_data())


def _todo(item: TodoItem) -> Todo:
    if not item.content:
        raise ToolRetry(f"Todo {item.id!r} needs content.")
    return Todo(item.id, item.content, item.status or "pending", item.priority or "medium")
