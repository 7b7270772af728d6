"""The tools `todoread` and `todowrite`, the session's todo list, and `think`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, given_as, has, unpack_json, without
from codeagent_lsp.errors import ToolRetry, WrongArguments
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.todos.todo_list import Priority, Todo, TodoList, TodoStatus, render
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

_LIST = ("operation", "command", "todoList", "task_list")
_STATES: Mapping[TodoStatus, str] = {
    "pending": "pending todo open new planned queued waiting blocked notstarted 待办 待处理 待完成 未开始 未完成",
    "in_progress": "inprogress progress doing active started current running wip ongoing 进行中 处理中 正在进行",
    "completed": "completed complete done finished closed resolved 完成 已完成 完毕 已结束",
    "cancelled": "cancelled canceled deleted removed skipped dropped abandoned 取消 已取消 跳过 已跳过",
}
"""Other words for a state, in small letters without blanks and dashes, as models write them."""
_PRIORITIES: Mapping[Priority, str] = {
    "high": "high urgent critical highest 高 紧急",
    "medium": "medium normal default mid moderate 中 普通",
    "low": "low minor lowest optional 低",
}
MOST_TODOS = 500
MOST_CHARACTERS = 4000
_BLANKS = re.compile(r"[\s_-]+")
# `- [x] Write it`, `2. [ ] Test it`.
_BOX = re.compile(r"^\s*(?:[-*]|\d+\.)?\s*\[(?P<mark>.)\]\s*(?P<content>\S.*)$", re.MULTILINE)
_MARKS = {"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress", ">": "in_progress"}


def _contents(key: str, content: str) -> Shape:
    """Return the conversion of a list under `key` whose items have their text under `content`."""

    def todo(item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        return {**({"content": item[content]} if content in item else {}), **_kept_fields(item)}

    def converted(given: dict[str, Any]) -> dict[str, Any]:
        items = unpack_json(given.get(key))
        return {**without(given, key), "todos": list(map(todo, items)) if isinstance(items, list) else items}

    return Shape(f"`{key}` with `{content}`", converted)


def _kept_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state, the priority and the id of an item."""
    # Other fields are dropped, as `TodoItem` refuses them: agents add forms of the content for display, and times.
    kept = {key: item[key] for key in ("status", "priority") if item.get(key) is not None}
    return {**kept, "id": str(item["id"])} if item.get("id") not in (None, "") else kept


def _usual(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the usual words for states and priorities in the todos, and numbers as ids."""
    items = unpack_json(given.get("todos"))
    if not isinstance(items, list):
        return given
    return {**given, "todos": [_usual_item(item) if isinstance(item, Mapping) else item for item in items]}


def _usual_item(item: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(item)
    if isinstance(made.get("id"), int) and not isinstance(made["id"], bool):
        made["id"] = str(made["id"])
    for key, names in (("status", _STATES), ("priority", _PRIORITIES)):
        if key in made:
            made[key] = _named(made[key], names)
    # What is empty says nothing.
    return {key: value for key, value in made.items() if value not in ("", None) or key not in TodoItem.model_fields}


def _named(value: Any, names: Mapping[Any, str]) -> Any:
    """Return the one of `names` that a word means; any other value is returned as it is."""
    if not isinstance(value, str):
        return value
    plain = _BLANKS.sub("", value).casefold()
    return next((name for name, words in names.items() if plain and plain in words.split()), value)


def _boxes(given: dict[str, Any]) -> dict[str, Any]:
    """Return a list with boxes, as Markdown has it, as todos."""
    text = given.get("todos")
    if not isinstance(text, str):
        return given
    found = [
        {"content": box["content"].strip(), "status": _MARKS.get(box["mark"], "pending")} for box in _BOX.finditer(text)
    ]
    return {**given, "todos": found} if found else given


def _merge_action(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `merge` as the action."""
    if "merge" not in given:
        return given
    action = "add" if str(given["merge"]).lower() == "true" else "replace"
    return {"action": action, **without(given, "merge")}


def _single(given: dict[str, Any]) -> dict[str, Any]:
    """Return the one task of a call as a todo, new or changed."""
    name, content = given.get("taskId"), given.get("subject") or given.get("description")
    todo = {**({"content": content} if content else {}), **_kept_fields(given)}
    # Without an id it is the creation of one, which gives the id.
    if name is None:
        return {"action": "add", "todos": [todo]}
    return {"action": "update", "todos": [{**todo, "id": str(name)}]}


class TodoReadParameters(Parameters):
    """Parameters of `todoread`: which todos to show; None means any."""

    status: TodoStatus | None = None
    priority: Priority | None = None


class TodoRead(Tool[TodoReadParameters]):
    """The tool `todoread`: shows the session's todo list to the model."""

    traits: ClassVar[ToolTraits] = ToolTraits("todoread", "Read your todo list.", "read")
    parameters = TodoReadParameters
    example: ClassVar[Example] = {"status": "pending"}
    forms: ClassVar[CallForms] = CallForms(
        names=("todo_read",),
        ignored=("session_id",),
        foreign=(
            ForeignTool("TodoRead", ("Claude Code",)),
            ForeignTool("TaskList", ("Claude Code",)),
            ForeignTool("TaskGet", ("Claude Code",), ignored=("taskId",)),
            ForeignTool("manage_todo_list", ("Copilot",), when=given_as("operation", "read"), ignored=_LIST),
            ForeignTool("task_tracker", ("OpenHands",), when=given_as("command", "view"), ignored=_LIST),
        ),
    )
    output = list[dict[str, str]]

    async def run(self, arguments: TodoReadParameters, context: ToolContext) -> ToolOutput:
        """Return one line per todo that fits; the data has them as objects. None is no error."""
        todos = context.need(TodoList, "There is no todo list here.")
        chosen = todos.select(arguments.status, arguments.priority)
        # An empty answer would read as an empty list, and the model would write a new one over it.
        others = not chosen and bool(todos.select(None, None))
        told = "None of the todos is like that." if others else render(chosen)
        return ToolOutput(told, [asdict(todo) for todo in chosen])


class TodoItem(Parameters):
    """An item of `todowrite`; for `update` only the id and the changed fields. A new one without an id gets the next
    number.
    """

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
    # Fields at the top are those of the one todo; given in both places, those in the list count.
    todos = rest.get("todos") or [{}]
    if not isinstance(todos, list) or len(todos) != 1 or not isinstance(todos[0], dict):
        raise WrongArguments("todo_id is for one todo. Give several by todos alone, each with its id.")
    wanted = str(given["todo_id"])
    if str(todos[0].get("id", wanted)) != wanted:
        raise WrongArguments("todo_id and the id in todos differ. Give one of them.")
    return {"action": "update", **rest, "todos": [{**fields, **todos[0], "id": wanted}]}


class TodoWriteParameters(Parameters):
    """Parameters of `todowrite`: the action (`replace` the whole list, `add` or `update`), and up to 100 todos that it
    is about.
    """

    action: Literal["replace", "add", "update"] = "replace"
    todos: list[TodoItem] = Field(max_length=100)


class TodoWrite(Tool[TodoWriteParameters]):
    """The tool `todowrite`: replaces, adds to or updates the session's todo list, which the user sees."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "todowrite",
        "Replace, add to, or update your todo list. Use it for tasks of three steps or more.",
        "read",
        hook_name="TodoWrite",
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
        shapes=(
            Shape("`todo_id` is the id of the one todo of an `update`, whose fields may stand at the top", _one),
            Shape("`merge` true is the action `add`, false `replace`", _merge_action),
            Shape("states and priorities in other words (`done`, `In Progress`, `进行中`), numbers as ids", _usual),
        ),
        foreign=(
            ForeignTool("TodoWrite", ("Claude Code", "Cursor")),
            ForeignTool("todo_write", ("Cursor",)),
            ForeignTool("update_plan", ("codex", "Zed"), shapes=(_contents("plan", "step"),)),
            ForeignTool("write_todos", ("Gemini CLI",), shapes=(_contents("todos", "description"),)),
            ForeignTool(
                "manage_todo_list", ("Copilot",), when=has("todoList"), ignored=("operation",),
                shapes=(_contents("todoList", "title"),),
            ),
            ForeignTool(
                "update_todo_list", ("Roo Code",), shapes=(Shape("a list with boxes, as in Markdown", _boxes),)
            ),
            ForeignTool(
                "task_tracker", ("OpenHands",), when=given_as("command", "plan"), ignored=("command",),
                shapes=(_contents("task_list", "title"),),
            ),
            ForeignTool("TaskCreate", ("Claude Code",), shapes=(Shape("one new todo", _single),)),
            ForeignTool("TaskUpdate", ("Claude Code",), shapes=(Shape("the one with this id changes", _single),)),
        ),
    )  # fmt: skip
    output = list[dict[str, str]]

    async def run(self, arguments: TodoWriteParameters, context: ToolContext) -> ToolOutput:
        """Change the list and return it. ToolRetry, with nothing changed, for unknown or repeated ids, a new todo
        without content, one of more than 4,000 characters, and a list of more than 500.
        """
        known = context.need(TodoList, "There is no todo list here.")
        arguments = arguments.model_copy(update={"todos": [_on_one_line(item) for item in arguments.todos]})
        items = arguments.todos if arguments.action == "update" else _with_ids(arguments, known)
        ids = [item.id for item in items if item.id is not None]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ToolRetry(f"Each todo needs an id of its own; given more than once: {', '.join(twice)}.")
        # Each change stores the whole list, and each request of a small window has it.
        if any(len(f"{item.id}{item.content}") > MOST_CHARACTERS for item in items):
            raise ToolRetry(f"A todo has at most {MOST_CHARACTERS:,} characters. Write long texts to a file.")
        if arguments.action == "add" and len({todo.id for todo in known.items} | set(ids)) > MOST_TODOS:
            raise ToolRetry(f"A list has at most {MOST_TODOS} todos. Replace it by what is still to be done.")
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
        return ToolOutput(render(known.items), known.to_data(), todos=tuple(known.to_data()))


class ThinkParameters(Parameters):
    """Parameters of `think`: a thought, which is kept in the conversation alone."""

    thought: str = ""


class Think(Tool[ThinkParameters]):
    """The tool `think`, which does nothing: models that know other agents write their thoughts by a call, or make
    folders, which is not needed here.
    """

    traits: ClassVar[ToolTraits] = ToolTraits("think", "Write a thought down.", "read", group="compose")
    parameters = ThinkParameters
    example: ClassVar[Example] = {"thought": "The tax is added twice."}
    forms: ClassVar[CallForms] = CallForms(
        also={"content": "thought"},
        foreign=(
            ForeignTool("think", ("OpenHands",), when=has("content")),
            ForeignTool("thinking", ("Zed",)),
            ForeignTool("act_mode_respond", ("cline",), {"response": "thought"}),
            ForeignTool("update_topic", ("Gemini CLI",), {"summary": "thought"}, ignored=("title", "strategic_intent")),
            ForeignTool("create_directory", ("Copilot", "Zed"), {"dirPath": "thought", "path": "thought"}),
            ForeignTool("bash", ("Anthropic API",), when=has("restart"), ignored=("restart",)),
        ),
    )

    async def run(self, arguments: ThinkParameters, context: ToolContext) -> ToolOutput:
        """Return "ok", whatever the thought; nothing is kept but the call itself."""
        return ToolOutput("ok")


def _on_one_line(item: TodoItem) -> TodoItem:
    """Return a todo whose texts have one line each: a second one would look like another todo, in a state of its
    own.
    """
    texts = {"id": item.id, "content": item.content}
    return item.model_copy(update={name: " ".join(text.split()) or None for name, text in texts.items() if text})


def _with_ids(arguments: TodoWriteParameters, known: TodoList) -> list[TodoItem]:
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
