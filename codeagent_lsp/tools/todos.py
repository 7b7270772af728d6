"""The todo list of a session: the model's own memory of what is left. A value with pure changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
Priority = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do."""

    id: str
    content: str
    status: TodoStatus = "pending"
    priority: Priority = "medium"


class TodoList:
    """The list, shared by the runs of a session; replaced as a whole at every change."""

    def __init__(self, todos: Iterable[Todo] = ()) -> None:
        self._todos = tuple(todos)

    @property
    def items(self) -> tuple[Todo, ...]:
        """All todos in order."""
        return self._todos

    def select(self, status: str | None, priority: str | None) -> tuple[Todo, ...]:
        """Those with the given status and priority; None means any."""
        return tuple(
            todo
            for todo in self._todos
            if (status is None or todo.status == status) and (priority is None or todo.priority == priority)
        )

    def replace_all(self, todos: Iterable[Todo]) -> None:
        """A new list."""
        self._todos = tuple(todos)

    def add(self, todos: Iterable[Todo]) -> None:
        """More at the end; one with a known id takes that one's place."""
        fresh = {todo.id: todo for todo in todos}
        kept = tuple(fresh.pop(todo.id, todo) for todo in self._todos)
        self._todos = (*kept, *fresh.values())

    def update(self, changes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """Change fields by id; ids that are not in the list are returned, and then nothing has changed."""
        by_id = {str(change["id"]): change for change in changes}
        known = {todo.id for todo in self._todos}
        if unknown := tuple(name for name in by_id if name not in known):
            return unknown
        self._todos = tuple(
            replace(todo, **{k: v for k, v in by_id[todo.id].items() if k != "id" and v is not None})
            if todo.id in by_id
            else todo
            for todo in self._todos
        )
        return ()

    def to_data(self) -> list[dict[str, Any]]:
        """Plain data."""
        return [asdict(todo) for todo in self._todos]


def render(todos: Iterable[Todo]) -> str:
    """The list as the model reads it."""
    marks = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
    lines = [f"{marks[todo.status]} {todo.id}: {todo.content} ({todo.priority})" for todo in todos]
    return "\n".join(lines) or "The todo list is empty."
