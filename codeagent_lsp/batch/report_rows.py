"""The rows of a report's table of tasks, as HTML. Not here: the page around them (`report_page.py`)."""

from __future__ import annotations

from html import escape
from pathlib import Path
from urllib.parse import quote

from codeagent_lsp.batch.perform import CHECK, PATCH, SESSION, SETUP
from codeagent_lsp.batch.report_figures import DONE, SOLVED, brief, cost_of, duration, outcome, outcome_words
from codeagent_lsp.batch.results import TaskResult
from codeagent_lsp.terminal.display import visible
from codeagent_lsp.texts import text

_MOST_WORDS = 160  # characters of an error or a task that are seen at once
_MOST_ERROR = 2000
_MOST_FILES = 50
_MARKS = {SOLVED: "✓", DONE: "○"}
_COLUMNS = (
    ("task", "text", "name"),
    ("outcome", "text", "result"),
    ("changes", "number", "figure"),
    ("tokens", "number", "figure"),
    ("cost", "number", "figure"),
    ("time", "number", "figure"),
    ("files", "", "links"),
)
_FILES = (
    ("patch", (PATCH,)),
    ("check", (CHECK,)),
    ("setup", (SETUP,)),
    ("session", (SESSION, f"{SESSION}.gz")),
)


def headings(language: str) -> str:
    """Return the head of the table; `data-sort` says how the script may sort a column."""
    cells = "".join(
        f'<th scope="col" role="columnheader" class="{kind}" data-sort="{sort}">'
        f"{escape(text(f'batch.report.{name}', language))}</th>"
        for name, sort, kind in _COLUMNS
    )
    return f'<thead role="rowgroup"><tr role="row">{cells}</tr></thead>'


def task_row(folder: Path, result: TaskResult, language: str) -> str:
    """Return the row of one task. Its roles are named, because narrow screens show rows as cards."""
    kind = outcome(result)
    cells = (
        _named(result),
        f'<td role="cell" class="result" data-value="{kind}">{_verdict(result, kind, language)}</td>',
        _figure("changes", result.added + result.removed, _changes(result, language), language),
        _figure("tokens", result.tokens, f"{result.tokens:,}", language),
        # -1: unknown costs are sorted below those that are 0
        _figure("cost", -1 if result.cost is None else result.cost, escape(cost_of(result, language)), language),
        _figure("time", result.seconds, duration(result.seconds), language),
        f'<td role="cell" class="links">{_links(folder, result.id, language)}</td>',
    )
    still_open = "" if result.solved else " data-open"
    return f'<tr role="row" data-outcome="{kind}"{still_open}>{"".join(cells)}</tr>'


def _named(result: TaskResult) -> str:
    name = escape(brief(result.id, 200))
    said = f'<div class="said">{escape(brief(result.task, _MOST_WORDS))}</div>' if result.task else ""
    return f'<th scope="row" role="rowheader" class="name" data-value="{name}"><code>{name}</code>{said}</th>'


def _verdict(result: TaskResult, kind: str, language: str) -> str:
    """Return the outcome with its sign, and the error, the rest of which can be opened."""
    words, colour = escape(outcome_words(kind, language)), kind if kind in _MARKS else "open"
    verdict = (
        f'<span class="verdict is-{colour}"><span aria-hidden="true">{_MARKS.get(kind, "✗")}</span> {words}</span>'
    )
    return verdict + _opened(result.error, language)


def _opened(words: str, language: str) -> str:
    """Return a text of which one line is seen and the rest can be opened."""
    first = brief(words, _MOST_WORDS)
    if not first or (len(words) <= _MOST_WORDS and "\n" not in words.strip()):
        return f'<div class="said">{escape(first)}</div>' if first else ""
    left = len(words) - _MOST_ERROR
    rest = f"\n{text('batch.report.cut', language, count=f'{left:,}')}" if left > 0 else ""
    whole = escape(visible(words[:_MOST_ERROR]) + rest)
    return f'<details><summary>{escape(first)}</summary><pre tabindex="0">{whole}</pre></details>'


def _figure(name: str, value: float, shown: str, language: str) -> str:
    label = escape(text(f"batch.report.{name}", language))
    return f'<td role="cell" class="figure" data-label="{label}" data-value="{value}">{shown}</td>'


def _changes(result: TaskResult, language: str) -> str:
    """Return the lines added and removed, and the files, which can be opened."""
    if not result.files:
        return "–"
    names = [f"<li><code>{escape(brief(name, 200))}</code></li>" for name in result.files[:_MOST_FILES]]
    if left := len(result.files) - _MOST_FILES:
        names += [f"<li>{escape(text('batch.report.more', language, count=left))}</li>"] if left > 0 else []
    count = escape(text("batch.report.file_count", language, count=len(result.files)))
    shown = f"<details><summary>{count}</summary><ul>{''.join(names)}</ul></details>"
    return f"+{result.added:,} −{result.removed:,}{shown}"


def _links(folder: Path, name: str, language: str) -> str:
    """Return links to the files of a task that are there."""
    if not name or name in (".", "..") or set(name) & {"/", "\\", "\0"}:
        return ""
    links = []
    for key, files in _FILES:
        if found := next((file for file in files if (folder / name / file).is_file()), ""):
            words = escape(text(f"batch.report.{key}", language))
            target = escape(f"{quote(name, safe='', errors='replace')}/{found}")
            links.append(f'<a href="{target}">{words}<span class="unseen"> {escape(brief(name, 200))}</span></a>')
    return " ".join(links)
