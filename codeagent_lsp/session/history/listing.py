"""Recorded runs as plain data, for commands and the command line. Not here: the database (`run_history.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.session.spending import cached_percent

if TYPE_CHECKING:  # an idle server does without SQLite
    from codeagent_lsp.session.history.recorded_run import RecordedRun
    from codeagent_lsp.session.history.run_history import Found


def listed(run: RecordedRun, state: str = "") -> dict[str, Any]:
    """Return a run as plain data without empty fields; `state` replaces the recorded one where more is known."""
    row = {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "kind": run.kind,
        "title": run.title,
        "state": state or run.status,
        "step": run.step,
        "started": run.started,
        "modified": run.changed,
        "tokens": run.tokens,
        "cost": run.cost,
        "cachedPercent": cached_percent({"prompt_tokens": run.prompt, "cached_tokens": run.cached}),
    }
    return {name: value for name, value in row.items() if value not in ("", None, 0.0)}


def found_rows(found: list[Found]) -> list[dict[str, Any]]:
    """Return the runs that a search found, each with its `excerpt`."""
    return [{**listed(each.run), "excerpt": each.excerpt} for each in found]
