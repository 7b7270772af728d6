"""The commands `codeagent-lsp trace show|tail [SESSION]`: a recorded session as readable lines.

Everything is sanitised again before it is shown, since an old record may have been written without it. Not here:
reading and writing the file (`records/trace.py`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from codeagent_lsp.records.rotation import parse_line
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, belongs, read_trace
from codeagent_lsp.session.spending import cached_percent
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.display import one_line, user_locale, visible
from codeagent_lsp.terminal.stage import console
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED
from codeagent_lsp.texts import choose_language, text

WIDTH = 300
POLL_SECONDS = 0.3
TAIL = 20  # records that `trace tail` begins with

_COLOURS = {"event": "cyan", "request": "magenta", "reply": "green"}
_LONG = {"tool_result": "output", "step_output": "content", "stdout": "content", "stderr": "content"}
_STAMPED = ("type", "session_id", "run_id", "seq", "ts")


def show_trace(
    workspace: str,
    *,
    session: str = "",
    run: str = "",
    last: int | None = None,
    follow: bool = False,
    full: bool = False,
) -> int:
    """Print a workspace's trace, or the part of a session (whole id), of a run or the `last` records, and return the
    exit code; 1 if there is none. `follow` goes on with new records and never returns; `full` as in `print_record`.
    """
    folder = workspace_state([str(Path(workspace).resolve())])
    out, sanitizer = console(), Sanitizer()
    found = 0
    for record in read_trace(folder, session=session, run=run, last=last):
        print_record(record, out, sanitizer, full=full)
        found += 1
    if follow:
        for record in followed(folder / TRACE_FILE):
            if belongs(record, session=session, run=run):
                print_record(record, out, sanitizer, full=full)
    if not found and not follow:
        sys.stderr.write(text("trace.none", choose_language("auto", user_locale())) + "\n")
        return EXIT_FAILED
    return EXIT_DONE


def print_record(record: Mapping[str, Any], out: Console, sanitizer: Sanitizer, *, full: bool = False) -> None:
    """Print one record on one line, with secrets masked: time, run, kind, contents. With `full`, what a tool returned
    and a command printed follows below, all of it.
    """
    clean = sanitizer.sanitize(record)
    kind = str(clean.get("type", "?"))
    data = clean.get("data")
    data = data if isinstance(data, Mapping) else {}
    line = Text.assemble(
        (_clock(clean.get("ts")), "dim"),
        " ",
        (one_line(str(clean.get("run_id") or "-"), 12).ljust(12), "dim"),
        " ",
        (one_line(_headline(kind, data), 28).ljust(18), _COLOURS.get(kind, "yellow")),
        " ",
        one_line(_about(kind, data or clean), WIDTH),
    )
    out.print(line, soft_wrap=True)
    printed = str(data.get(_LONG.get(_headline(kind, data), ""), "")) if full else ""
    if printed:
        out.print(Text("".join(f"    {part}\n" for part in visible(printed).splitlines())), soft_wrap=True)


def followed(path: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[dict[str, Any]]:
    """Yield the records appended to a file from now on, also after a rotation. Never ends; looks at the file every 0.3
    s.
    """
    position, inode, rest = _size(path), _inode(path), b""
    while True:
        # Rotated: another file has the name, or it was cut.
        if _inode(path) != inode or _size(path) < position:
            position, inode, rest = 0, _inode(path), b""
        data = _read(path, position)
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from (record for line in lines if (record := parse_line(line + b"\n")))
        wait(POLL_SECONDS)


def _headline(kind: str, data: Mapping[str, Any]) -> str:
    return str(data.get("type", kind)) if kind == "event" else kind


def _about(kind: str, data: Mapping[str, Any]) -> str:
    if kind == "request":
        messages = data.get("messages")
        count = len(messages) if isinstance(messages, list) else 0
        last = messages[-1] if isinstance(messages, list) and messages else {}
        return f"{data.get('model', '')} · {count} messages · {_compact(last)}"
    usage = data.get("usage") if kind == "reply" else data
    share = cached_percent(usage) if isinstance(usage, Mapping) else 0
    told = _compact({key: value for key, value in data.items() if key not in _STAMPED})
    return f"{share} % cached · {told}" if share else told


def _compact(value: Any) -> str:
    if isinstance(value, Mapping):
        return " · ".join(
            f"{key}: {item if isinstance(item, str) else json.dumps(item)}" for key, item in value.items()
        )
    return str(value)


def _clock(ts: Any) -> str:
    try:
        return datetime.fromtimestamp(float(ts)).strftime("%H:%M:%S.%f")[:-3]
    except (TypeError, ValueError, OverflowError, OSError):
        return "--:--:--.---"


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read()
    except OSError:
        return b""
