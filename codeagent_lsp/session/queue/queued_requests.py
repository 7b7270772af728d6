"""A request as a queued task stores it, and made of that again when the task begins. Pure but for reading the file.

Not here: what waits (`waiting_words.py`), when it begins (`task_queue.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.document import text_digest

SELECTED_BEFORE = (
    "When the user wrote this, the following was selected in {path}. It has changed since: read the file.\n{selected}"
)
MOST_SELECTED = 4000


def place_of(target: Target | None) -> dict[str, Any] | None:
    """Return a selection as an event stores it; None for none."""
    if target is None:
        return None
    selected = target.file.text[target.start : target.end]
    place = {"path": target.file.path, "start": target.start, "end": target.end, "selected": selected}
    if not selected:
        return place
    found = _places(target.file.text, selected)
    before = text_digest(target.file.text[: target.start])
    return {**place, "of": len(found), "number": found.index(target.start), "before": before}


def request_of(queued: events.TaskQueued, read: Callable[[str], FileText]) -> RunRequest:
    """Return the request of a queued task. A selection that is not there any more is told to the model as it was."""
    target = _target(queued.place, read) if queued.place else None
    given = (_selected_before(queued.place),) if queued.place and target is None else ()
    planning = queued.planning if queued.planning in ("auto", "always", "never") else None
    return RunRequest(
        "run",
        queued.task,
        queued.title,
        target,
        planning=planning,  # type: ignore[arg-type]
        attempts=queued.attempts,
        until_proven=queued.until_proven,
        given=given,
    )


def _target(place: Mapping[str, Any], read: Callable[[str], FileText]) -> Target | None:
    """Return what was selected, where it is now: at its place, if nothing before it has changed, or of several that are
    alike the one that is in its place among them. None if it is not there any more, or one of them has come or gone.
    """
    try:
        file = read(str(place["path"]))
    except AgentError:
        return None
    start, selected = int(place["start"]), str(place["selected"])
    if selected and not _is_there(file.text, start, selected, place.get("before")):
        found = _places(file.text, selected)
        if len(found) != int(place.get("of", 1)):
            return None
        start = found[int(place.get("number", 0))]
    return Target(file, start, start + len(selected)) if start <= len(file.text) else None


def _is_there(text: str, start: int, selected: str, before: str | None) -> bool:
    """Return whether what was selected is at its place, and nothing before it has changed."""
    return text.startswith(selected, start) and text_digest(text[:start]) == before


def _places(text: str, part: str) -> list[int]:
    """Return the offsets at which a text has this part, which is not empty; such places may overlap."""
    found, at = [], text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _selected_before(place: Mapping[str, Any]) -> str:
    return SELECTED_BEFORE.format(path=place["path"], selected=str(place["selected"])[:MOST_SELECTED])
