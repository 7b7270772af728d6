"""The commands that need no server, as all they tell is on the disk: `codeagent-lsp doctor`, the checks of this
installation with advice; `sessions list|search [QUERY]`, the recorded runs of a folder; `trace show|tail [SESSION]`, a
recorded session as readable lines; `trust`, what a workspace brings that needs the user's trust, listed and asked
about.

A server that runs reads the user's answer about trust when it would use any of it. A trace is sanitised again before it
is shown, since an old record may have been written without it. Not here: reading recorded runs (`session/history`) and
traces (`records/trace.py`), what counts as brought (`session/memory/knowledge.py`), the same question in an editor
(`tools/skills/trust.py`).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from codeagent_lsp.errors import UsageError
from codeagent_lsp.records.rotation import parse_line
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, belongs, read_trace
from codeagent_lsp.session.history.listing import FOLDER, found_rows, history_in, listed
from codeagent_lsp.session.left_waiting import undecided
from codeagent_lsp.session.memory.knowledge import knowledge_in
from codeagent_lsp.session.spending import cached_percent
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.terminal.display import one_line, say, user_locale, visible
from codeagent_lsp.terminal.stage import console
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_REJECTED, EXIT_USAGE, WAITING, place_of
from codeagent_lsp.texts import choose_language, text
from codeagent_lsp.tools.skills.trust import WorkspaceItem, name_of, named, said_of
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

if TYPE_CHECKING:
    from codeagent_lsp.doctor import Check


_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red")}

WIDTH = 300
POLL_SECONDS = 0.3
TAIL = 20  # records that `trace tail` begins with

_COLOURS = {"event": "cyan", "request": "magenta", "reply": "green"}
_LONG = {"tool_result": "output", "step_output": "content", "stdout": "content", "stderr": "content"}
_STAMPED = ("type", "session_id", "run_id", "seq", "ts")


def print_doctor(workspace: str, *, as_json: bool) -> int:
    """Run all checks of this installation, print them and return the exit code: 1 if something required fails, 2 for a
    bad folder. Blocks until they are done, at most minutes.
    """
    from codeagent_lsp.doctor import Check, diagnose  # late: it takes longer to load than the other commands to run

    settings, problems = load(environment_layer(), policy=read_policy(), user=read_user_settings())
    language = choose_language(settings.language, user_locale())
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        sys.stderr.write(UsageError("terminal.folder", folder=workspace).localized(language) + "\n")
        return EXIT_USAGE
    told = [problem for problem in problems if not problem.key.startswith("policy.") or problem.key == "policy.fixed"]
    bad = [Check("settings", "warning", problem.localized(language)) for problem in told]
    state = workspace_state([str(folder.resolve())])
    checks = [*bad, *asyncio.run(diagnose(settings, state, language, (str(folder),)))]
    if as_json:
        print(json.dumps([check.to_dict() for check in checks], ensure_ascii=False, indent=2))
    else:
        show_checks(checks, console())
    return EXIT_FAILED if any(check.verdict == "failed" for check in checks) else EXIT_DONE


def show_checks(checks: Sequence[Check], out: Console) -> None:
    """Print one line on `out` for each check, marked by its verdict, with advice below if it is not ok."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark, colour = _MARKS[check.verdict]
        finding = Text(visible(check.detail))
        if check.verdict != "ok" and check.advice:
            finding.append("\n").append("→ ", colour).append(visible(check.advice))
        table.add_row(Text(mark, colour), Text(check.name, "bold"), finding)
    out.print(table)


STATE_COLUMNS = 11


def sessions_command(action: str, query: str, workspace: str, limit: int, *, as_json: bool) -> int:
    """Print the last `limit` runs of a folder, or those that match `query`; return the exit code: 1 if there are none,
    2 for a bad argument.
    """
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
    return EXIT_DONE if rows else EXIT_FAILED


Answer = Callable[[str], str]
"""Shows a question and returns what was entered; '' at the end of the input."""


def trust_command(
    workspace: str, *, yes: bool, listing: bool, names: Sequence[str] = (), answer: Answer | None = None
) -> int:
    """Print what a workspace brings that needs trust, or what of it has these names or paths, and ask about what is not
    trusted yet, unless only `listing`; with `yes` all of it is trusted. Answers are kept for every server of the user.

    Return the exit code: 0 if all is trusted or only listed, 3 if not, 2 for a bad argument.
    """
    words = partial(_words, choose_language("auto", user_locale()))
    folder = Path(workspace)
    if not folder.is_dir():
        return _refuse(words("terminal.folder", folder=workspace))
    root = str(folder.resolve())
    own, others = state_root(), (Path.home() / ".claude",)
    knowledge = knowledge_in(own, workspace_state([root]), tuple, lambda: False, others)
    items = knowledge.brought(FileView(Roots([root]), NoBuffers(), NothingStaged()))
    if unknown := [name for name in names if not named(items, name)]:
        known = ", ".join(item.name for item in items) or words("trust.none")
        return _refuse(words("trust.unknown", name=one_line(unknown[0]), names=one_line(known)))
    items = tuple(item for item in items if not names or any(named([item], name) for name in names))
    if not items:
        say(words("trust.nothing"))
        return EXIT_DONE
    for item in items:
        say(_line(item, words, trusted=knowledge.trust.covers(item.digest)))
    open_ones = [item for item in items if not knowledge.trust.covers(item.digest)]
    if listing or not open_ones:
        return EXIT_DONE
    # an answer from a pipe shows no user who has read the list
    if not yes and answer is None and not sys.stdin.isatty():
        say(words("trust.no_terminal"))
        return EXIT_REJECTED
    for item in open_ones if yes else _choose(open_ones, answer or _prompt, words):
        knowledge.trust.add(item.digest, item.name)
    say(said_of(knowledge.trust, open_ones, words))
    return EXIT_DONE if all(knowledge.trust.covers(item.digest) for item in open_ones) else EXIT_REJECTED


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
    return EXIT_USAGE


def _choose(items: Sequence[WorkspaceItem], answer: Answer, words: Callable[..., str]) -> Sequence[WorkspaceItem]:
    """Return those that the user trusts: all, none, or each that is shown whole and accepted."""
    said = answer(words("trust.ask")).strip().lower()
    if said == "e":
        return [item for item in items if _ask_about(item, answer, words)]
    return items if said in ("y", "yes") else ()


def _ask_about(item: WorkspaceItem, answer: Answer, words: Callable[..., str]) -> bool:
    say(f"\n{visible(item.detail)}\n")
    return answer(words("trust.ask_one", what=name_of(item, words))).strip().lower() in ("y", "yes")


def _line(item: WorkspaceItem, words: Callable[..., str], *, trusted: bool) -> str:
    mark = "✓" if trusted else "?"
    return (
        f"{mark} {name_of(item, words)}: {one_line(item.path)}, {item.digest[:12]}  {one_line(item.line, 400)}".rstrip()
    )


def _prompt(question: str) -> str:
    try:
        return input(f"{question} ")
    except EOFError:
        return ""


def _words(language: str, key: str, /, **values: object) -> str:
    return text(key, language, **values)


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
