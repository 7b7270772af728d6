"""All of a session that is worth keeping, as one value: what a model would need to go on, and nothing of the machine.

Made from a session when it is asked for; `to_dict` is plain JSON data. Not here: the files that sessions are stored in
(`store.py`), how a session comes back (`replay.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codeagent_lsp.agent.focus import FocusedFiles
from codeagent_lsp.messages import Message
from codeagent_lsp.session.replay import message_from_dict, message_to_dict
from codeagent_lsp.session.session import Session
from codeagent_lsp.tools.todos import Todo


@dataclass(frozen=True, slots=True)
class CodeAgentContext:
    """A session's mind: `plans` are the plans of its runs as text by run id, `changed_files` paths, oldest first."""

    conversation: tuple[Message, ...] = ()
    focused: FocusedFiles = FocusedFiles()
    todos: tuple[Todo, ...] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[Message, ...]:
        """What tools gave, in order."""
        return tuple(message for message in self.conversation if message.role == "tool")

    @classmethod
    def of(cls, session: Session) -> CodeAgentContext:
        """A session as it is now."""
        runs = session.runs.values()
        changes = [change for run in runs for change in (*(part.changeset for part in run.applied), run.staged)]
        paths = [path for change in changes for path in change.paths]
        return cls(
            tuple(session.messages),
            session.focused,
            session.todos.items,
            {run.run_id: run.plan.text() for run in runs if run.plan is not None},
            tuple(dict.fromkeys(paths)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "conversation": [message_to_dict(message) for message in self.conversation],
            "focused": self.focused.to_dict(),
            "todos": [asdict(todo) for todo in self.todos],
            "plans": dict(self.plans),
            "changed_files": list(self.changed_files),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CodeAgentContext:
        """What `to_dict` wrote. KeyError or TypeError when it is something else."""
        return cls(
            tuple(map(message_from_dict, data["conversation"])),
            FocusedFiles.from_dict(data["focused"]),
            tuple(Todo(**todo) for todo in data["todos"]),
            dict(data["plans"]),
            tuple(data["changed_files"]),
        )
