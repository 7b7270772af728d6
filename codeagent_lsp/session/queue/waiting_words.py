"""The words of a session that wait: said to runs at work, and queued tasks. A value made from events alone.

Every item is in one place at a time, and one stored event moves it: a process that dies loses none and repeats none.
Not here: starting the tasks (`task_queue.py`), giving words to the model (`../run_parts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codeagent_lsp import events


@dataclass(slots=True)
class WaitingWords:
    """What waits, the oldest first: `said` to runs, by item, and `tasks`, by the id of the run that each will be.
    `heard` are the items that were given to the model.
    """

    said: dict[str, events.Steered] = field(default_factory=dict)
    tasks: dict[str, events.TaskQueued] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    def absorb(self, event: events.Event) -> None:
        """Update by an event; those of other matters change nothing."""
        match event:
            case events.Steered():
                self.said[event.item_id] = event
            case events.TaskQueued():
                self.said.pop(event.run_id, None)
                self.tasks[event.run_id] = event
            case events.RunStarted():
                self.tasks.pop(event.run_id, None)
            case events.MessageAdded(item_id=str(item_id)) | events.ItemWithdrawn(item_id=item_id):
                self.said.pop(item_id, None)
                self.tasks.pop(item_id, None)
                if isinstance(event, events.MessageAdded):
                    self.heard.add(item_id)

    def said_to(self, run_id: str) -> tuple[events.Steered, ...]:
        """Return what was said to a run and has not been given to the model."""
        return tuple(each for each in self.said.values() if each.run_id == run_id)

    def clear(self) -> None:
        """Forget everything, as the session is deleted."""
        self.said.clear()
        self.heard.clear()
        self.tasks.clear()

    def was_heard(self, item_id: str) -> bool:
        """Return whether the model was given an item."""
        return item_id in self.heard

    def has(self, item_id: str) -> bool:
        """Return whether an item waits."""
        return item_id in self.said or item_id in self.tasks
