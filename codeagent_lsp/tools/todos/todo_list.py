"""The todo list of a session, in which the model keeps track of its work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
Priority = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Todo:
    """One item of the model's todo list; its `id` is unique in the list, `content` is what to do."""

    id: str
    content: str
    status: TodoStatus = "pending"
    priority: Priority = "medium"


class TodoList:
    """The list, shared by the runs of a session; it is replaced as a whole at every change, and
    `on_change` is called.
    """

    def __init__(self, todos: Iterable[Todo] = (), on_change: Callable[[], None] = lambda: None) -> None:
        self._todos = tuple(todos)
        self._on_change = on_change

    @property
    def items(self) -> tuple[Todo, ...]:
        """All todos in order, as a tuple that later changes leave as it is."""
        return self._todos

    def select(self, status: str | None, priority: str | None) -> tuple[Todo, ...]:
        """Return the todos with the given status and priority; None means any."""
        return tuple(
            todo
            for todo in self._todos
            if (status is None or todo.status == status) and (priority is None or todo.priority == priority)
        )

    def replace_all(self, todos: Iterable[Todo]) -> None:
        """Replace the whole list; ids have to be unique, which is not checked. `on_change` is called."""
        self._change(tuple(todos))

    def add(self, todos: Iterable[Todo]) -> None:
        """Append todos; one with a known id replaces the old one in its place. `on_change` is called."""
        fresh = {todo.id: todo for todo in todos}
        kept = tuple(fresh.pop(todo.id, todo) for todo in self._todos)
        self._change((*kept, *fresh.values()))

    def update(self, changes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """Change fields by id, as each mapping with `id` says (None leaves a field); return (), or the unknown ids, if
        there are some: then nothing is changed.
        """
        by_id = {str(change["id"]): change for change in changes}
        known = {todo.id for todo in self._todos}
        if unknown := tuple(name for name in by_id if name not in known):
            return unknown
        self._change(
            tuple(
                replace(todo, **{k: v for k, v in by_id[todo.id].items() if k != "id" and v is not None})
                if todo.id in by_id
                else todo
                for todo in self._todos
            )
        )
        return ()

    def to_data(self) -> list[dict[str, Any]]:
        """Return the list as plain JSON data, `{id, content, status, priority}` each, for `restore`."""
        return [asdict(todo) for todo in self._todos]

    def restore(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Restore the list from `to_data` without calling `on_change`. TypeError if the data is malformed."""
        self._todos = tuple(Todo(**item) for item in data)

    def _change(self, todos: tuple[Todo, ...]) -> None:
        self._todos = todos
        self._on_change()


def render(todos: Iterable[Todo]) -> str:
    """Return the list as text for the model: one line each with state, id, content and priority; a sentence for an
    empty list.
    """
    marks = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
    lines = [f"{marks[todo.status]} {todo.id}: {todo.content} ({todo.priority})" for todo in todos]
    return "\n".join(lines) or "The todo list is empty."
