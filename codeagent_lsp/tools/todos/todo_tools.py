"""The tools `todoread` and `todowrite`: the session's todo list."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape
from codeagent_lsp.errors import ToolRetry, WrongArguments
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
    forms: ClassVar[CallForms] = CallForms(names=("todo_read",), ignored=("session_id",))
    output = list[dict[str, str]]

    async def run(self, arguments: TodoReadParameters, context: ToolContext) -> ToolOutput:
        """Return one line per todo."""
        todos = context.need(TodoList, "There is no todo list here.")
        chosen = todos.select(arguments.status, arguments.priority)
        return ToolOutput(render(chosen), [asdict(todo) for todo in chosen])


class TodoItem(Parameters):
    """A todo; for `update` only the id and the changed fields. A new one without an id gets the next number."""

    id: str | None = Field(None, min_length=1)
    content: str | None = Field(None, min_length=1)
    status: TodoStatus | None = None
    priority: Priority | None = None


def _one(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `todo_id` as the id of their only todo."""
    if "todo_id" not in given:
        return given
    fields = {name: given[name] for name in ("content", "status", "priority") if name in given}
    rest = {name: value for name, value in given.items() if name not in (*fields, "todo_id")}
    todos = rest.get("todos") or [{}]
    if not isinstance(todos, list) or len(todos) != 1 or not isinstance(todos[0], dict):
        raise WrongArguments("todo_id is for one todo. Give several by todos alone, each with its id.")
    wanted = str(given["todo_id"])
    if str(todos[0].get("id", wanted)) != wanted:
        raise WrongArguments("todo_id and the id in todos differ. Give one of them.")
    return {"action": "update", **rest, "todos": [{**fields, **todos[0], "id": wanted}]}


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
    forms: ClassVar[CallForms] = CallForms(
        names=("todo_write",),
        ignored=("session_id",),
        plain={"todos": "content"},
        shapes=(Shape("`todo_id` is the id of the one todo of an `update`, whose fields may stand at the top", _one),),
    )
    output = list[dict[str, str]]

    async def run(self, arguments: TodoWriteParameters, context: ToolContext) -> ToolOutput:
        """Return the new list."""
        known = context.need(TodoList, "There is no todo list here.")
        items = arguments.todos if arguments.action == "update" else _numbered(arguments, known)
        ids = [item.id for item in items if item.id is not None]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ToolRetry(f"Each todo needs an id of its own; given more than once: {', '.join(twice)}.")
        if arguments.action == "update":
            if len(ids) < len(items):
                raise ToolRetry("Each todo of an update needs its id.")
            unknown = known.update([item.model_dump() for item in items])
            if unknown:
                raise ToolRetry(f"No todo with id {', '.join(unknown)}; nothing changed.\n{render(known.items)}")
        else:
            todos = [_todo(item) for item in items]
            change = known.replace_all if arguments.action == "replace" else known.add
            change(todos)
        return ToolOutput(render(known.items), known.to_data())


def _numbered(arguments: TodoWriteParameters, known: TodoList) -> list[TodoItem]:
    """Return the todos, those without an id with the next free numbers."""
    taken = {item.id for item in arguments.todos}
    if arguments.action == "add":
        taken |= {todo.id for todo in known.items}
    free = (str(number) for number in itertools.count(1) if str(number) not in taken)
    return [item if item.id else item.model_copy(update={"id": next(free)}) for item in arguments.todos]


def _todo(item: TodoItem) -> Todo:
    if not item.content:
        raise ToolRetry(f"Todo {item.id!r} needs content.")
    return Todo(item.id or "", item.content, item.status or "pending", item.priority or "medium")
