"""The commands `codeagent-lsp sessions list|search [QUERY]`: the recorded runs of a folder as lines or as JSON.

Not here: reading them (`session/history`).
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from codeagent_lsp.session.history.listing import FOLDER, found_rows, history_in, listed
from codeagent_lsp.session.left_waiting import undecided
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.display import one_line, say, user_locale
from codeagent_lsp.terminal.summary import WAITING, place_of
from codeagent_lsp.texts import choose_language, text

DONE, NOTHING, USAGE = 0, 1, 2  # exit codes
STATE_COLUMNS = 11


def sessions_command(action: str, query: str, workspace: str, limit: int, *, as_json: bool) -> int:
    """List or search the runs of a folder; return the exit code: 1 if there are none, 2 for a bad argument."""
    language = choose_language("auto", user_locale())
    folder = Path(workspace)
    if not folder.is_dir():
        return _refuse(text("terminal.folder", language, folder=workspace))
    if action == "search" and not query.strip():
        return _refuse(text("terminal.query", language))
    state = workspace_state([str(folder.resolve())])
    history = history_in(state)
    try:
        rows = found_rows(history.search(query, limit)) if action == "search" else [*map(listed, history.runs(limit))]
    except (sqlite3.Error, OSError) as error:  # the list of what is recorded cannot be brought up to date
        return _refuse(text("terminal.unlisted", language, reason=error, folder=state))
    finally:
        history.close()
    waiting = undecided(SessionStore(state / FOLDER), dict.fromkeys(row["sessionId"] for row in rows))
    rows = [{**row, "undecided": waiting[row["runId"]]} if row["runId"] in waiting else row for row in rows]
    if as_json:
        say(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            say(_lines(row, place_of(folder.resolve()), language))
        if not rows:
            key = "terminal.no_match" if action == "search" else "terminal.no_runs"
            sys.stderr.write(f"codeagent-lsp: {text(key, language, folder=folder.resolve())}\n")
    return DONE if rows else NOTHING


def _lines(row: Mapping[str, Any], place: str, language: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.get("modified", 0)))
    state = text(f"recorded.{row['state']}", language)
    padding = " " * (STATE_COLUMNS - cell_len(state))
    lines = [f"{when}  {row['sessionId']}  {state}{padding}  {one_line(row.get('title', ''))}"]
    if row.get("excerpt"):
        lines.append(one_line(row["excerpt"]))
    if row.get("undecided"):
        command = f"codeagent-lsp apply {row['runId']}{place}"
        lines.append(text("terminal.undecided", language, count=row["undecided"], command=command))
    elif row["state"] == WAITING:
        command = f'codeagent-lsp run --session {row["sessionId"]}{place} "…"'
        lines.append(text("terminal.answer", language, command=command))
    return "\n    ".join(lines)


def _refuse(words: str) -> int:
    sys.stderr.write(f"codeagent-lsp: {words}\n")
    return USAGE
