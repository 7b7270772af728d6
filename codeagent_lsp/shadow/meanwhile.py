"""What became of a run's staged changes while a command ran, kept beside what the command wrote. Changes nothing.

A command sees the files as they were when it began. One that runs beside the model's other work must neither take back
what the model did in the same files since, nor bring back what was taken back. Not here: what the user types, which
every change is merged with when it is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codeagent_lsp.shadow.collect import Collected
from codeagent_lsp.shadow.wanted import UnsavedState
from codeagent_lsp.workspace.edits.merge import merge
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile

Lookup = Callable[[str], StagedFile | None]
Base = Callable[[str], FileText | None]

_TAKEN_BACK = "What the command changed in this file was taken back while it ran, so what it wrote was dropped."
_EDITED = "You changed this file differently while the command ran, so what the command wrote was dropped."


def kept(collected: Collected, seen: UnsavedState, lookup: Lookup, base: Base) -> Collected:
    """Return the changes with the run's own edits since `seen` merged in; where both changed the same lines, or one
    deleted or moved the file, what the command wrote is left out. What was staged then and is not any more, as it was
    taken back or applied, is what `base` has by now.
    """
    collected = _on_present(collected, seen, lookup, base)
    changed = {path for path in collected.paths if _changed(collected, seen, path, lookup(path))}
    merged = {path: _merged(collected, path, lookup(path)) for path in changed.intersection(collected.texts)}
    lost = {path for path in changed if merged.get(path) is None}
    return replace(collected, texts={**collected.texts, **merged}).without(lost, _EDITED)


def _on_present(collected: Collected, seen: UnsavedState, lookup: Lookup, base: Base) -> Collected:
    """Return the changes of files whose staged changes are gone, on the user's text of now."""
    texts, read, lost = dict(collected.texts), dict(collected.read), set[str]()
    for path in collected.paths:
        then = _staged_then(seen, path)
        if then is None or lookup(path) is not None:
            continue
        now, written = base(path), collected.texts.get(path)
        if now is None or then.text is None or written is None:
            if (None if now is None else now.text) != then.text:
                lost.add(path)
        elif now.text != then.text:
            both = merge(then.text, written, now.text)
            texts[path], read[path] = both.text, now
            lost.update([path] if both.conflicts else [])
    return replace(collected, texts=texts, read=read).without(lost, _TAKEN_BACK)


def _changed(collected: Collected, seen: UnsavedState, path: str, now: StagedFile | None) -> bool:
    """Return whether the run staged something of its own for the path, which is not what the command wrote as well."""
    if now is None or now == _staged_then(seen, path):
        return False
    return path not in collected.texts or now.text != collected.texts[path]


def _staged_then(seen: UnsavedState, path: str) -> StagedFile | None:
    """Return what was staged for the path when the command began."""
    file = seen.read.get(path)
    if file is not None:
        return StagedFile(file.text) if file.source == "staged" else None
    return StagedFile(None) if path in seen.files else None


def _merged(collected: Collected, path: str, now: StagedFile | None) -> str | None:
    """Return both changes in one text; None if they cannot be had together."""
    before, written = collected.read.get(path), collected.texts[path]
    if now is None or now.text is None or written is None or before is None:
        return None
    both = merge(before.text, written, now.text)
    return None if both.conflicts else both.text
