"""The report of a batch as one HTML page, its table of tasks included: no file, font or script from elsewhere, and its
own script not needed.

The policy in the page allows exactly its own style and script, by their hashes. All values come from a model or from
outside: they are escaped, and their invisible characters shown. Not here: the figures (`report.py`), the template,
style and script (`pages/`).
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from statistics import median
from string import Template
from urllib.parse import quote

from codeagent_lsp.batch.perform import CHECK, PATCH, SESSION, SETUP
from codeagent_lsp.batch.report import (
    DECIMAL,
    DONE,
    SECONDS,
    SOLVED,
    Bin,
    Group,
    bins,
    brief,
    by_outcome,
    cost_of,
    duration,
    money,
    outcome,
    outcome_words,
    part_of,
    percent,
    short_count,
    sum_of,
    within_nine_of_ten,
    worst_first,
)
from codeagent_lsp.batch.results import TaskResult
from codeagent_lsp.session.spending import dollars
from codeagent_lsp.terminal.display import visible
from codeagent_lsp.texts import clauses, text
from codeagent_lsp.workspace.text.visible import some_of

PAGES = Path(__file__).with_name("pages")
_MOST_MODELS = 3
_WIDTH, _HEIGHT = 320, 150
_TOP, _FLOOR = 16, 126  # of the bars of a distribution
_MOST_LABELS = 5
_KINDS = (SOLVED, DONE)
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


def report_page(folder: Path, results: Sequence[TaskResult], language: str) -> str:
    """Return the whole HTML page in `language`; its links are relative to `folder`, which has the folders of the tasks.
    OSError if its template cannot be read.
    """
    style, script = ((PAGES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src '{_hash_source(style)}'; script-src '{_hash_source(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = text("batch.report.title", language)
    whole = Group(tuple(results))
    return Template((PAGES / "report.html").read_text(encoding="utf-8")).substitute(
        lang="zh-CN" if language == "zh-cn" else "en",
        policy=policy,
        title=escape(title),
        heading=escape(title),
        about=about(whole, language) if results else escape(text("batch.report.none", language)),
        style=style,
        script=script,
        content=_content(folder, whole, language) if results else "",
    )


def about(whole: Group, language: str) -> str:
    """Return, as escaped HTML, which models did the tasks, when the first began (UTC), and how long it took; `–` for
    what is not known.
    """
    models = sorted({brief(result.model, 80) for result in whole.results if result.model})
    named = some_of(models, _MOST_MODELS, counted=False) or "–"
    starts = [result.started for result in whole.results if result.started > 0]
    begun = f"{datetime.fromtimestamp(min(starts), UTC):%Y-%m-%d %H:%M} UTC" if starts else "–"
    words = text("batch.report.about", language, model=named, begun=begun, elapsed=duration(whole.elapsed))
    return escape(words)


def _content(folder: Path, whole: Group, language: str) -> str:
    groups = by_outcome(whole.results)
    return "\n".join(
        (
            shared_patterns(),
            _tiles(whole, groups, language),
            _outcomes(whole, groups, language),
            _distributions(whole, language),
            _tasks(folder, whole, groups, language),
        )
    )


def _tiles(whole: Group, groups: Mapping[str, Group], language: str) -> str:
    """Return the figures that are to be seen first."""
    share, unchecked = percent(whole.solved, whole.count), groups[DONE].count if DONE in groups else 0
    note = "batch.report.unchecked" if unchecked else "batch.report.checked"
    nine = within_nine_of_ten(result.seconds for result in whole.results)
    tiles = (
        (
            text("batch.report.solved", language),
            text("batch.report.of", language, part=f"{whole.solved:,}", whole=f"{whole.count:,}"),
            text(note, language, share=share, count=unchecked) if whole.solved else share,
        ),
        (text("batch.report.cost", language), sum_of(whole, language), cost_note(whole, language)),
        (text("batch.report.tokens", language), short_count(whole.tokens), tokens_note(whole, language)),
        (
            text("batch.report.median_time", language),
            duration(whole.seconds),
            text("batch.report.nine_time", language, time=duration(nine)),
        ),
    )
    return f'<dl class="tiles">{"".join(_tile(*tile) for tile in tiles)}</dl>'


def _tile(name: str, value: str, note: str) -> str:
    words = f'<dd class="note">{escape(note)}</dd>' if note else ""
    return f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>{words}</div>'


def cost_note(whole: Group, language: str) -> str:
    """Return a sentence on the cost: that of all tasks for each solved one, and of how many tasks it is not known. ''
    if there is nothing to say.
    """
    known = sum(whole.costs)
    parts = [
        text("batch.report.each_solved", language, cost=dollars(known / whole.solved))
        if known and whole.solved
        else "",
        text("batch.report.unknown_count", language, count=whole.unknown, whole=whole.count)
        if whole.unknown and whole.costs
        else "",
    ]
    return clauses(filter(None, parts), language)


def tokens_note(whole: Group, language: str) -> str:
    """Return, in the user's language, how many tokens were read, which share of those came from the cache, and how many
    were written. ValueError for no tasks.
    """
    prompt, cached, completion = (
        sum(counts)
        for counts in zip(
            *((item.prompt_tokens, item.cached_tokens, item.completion_tokens) for item in whole.results), strict=True
        )
    )
    values = {"prompt": short_count(prompt), "cached": percent(cached, prompt), "completion": short_count(completion)}
    return text("batch.report.tokens_of", language, **values)


def _outcomes(whole: Group, groups: Mapping[str, Group], language: str) -> str:
    """Return the share of what is solved, and the outcomes with their bars."""
    counts = {name: groups[name].count if name in groups else 0 for name in (SOLVED, DONE)}
    told = text("batch.report.share_told", language, count=whole.count, open=whole.count - whole.solved, **counts)
    title = text("batch.report.outcomes", language)
    most = max(group.count for group in groups.values())
    heads = (("outcome", ""), ("share", "bar"), ("count", "figure"), ("share", "figure"), ("cost", "figure"))
    cells = "".join(
        f'<th scope="col" class="{kind}">{escape(text(f"batch.report.{name}", language))}</th>' for name, kind in heads
    )
    cells += f'<th scope="col" class="figure">{escape(text("batch.report.median_time", language))}</th>'
    lines = "".join(_outcome(name, group, whole.count, most, language) for name, group in groups.items())
    return (
        f'<section class="outcomes"><h2>{escape(title)}</h2><div class="panel">{share_bar(groups, title, told)}'
        f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div></section>"
    )


def _outcome(name: str, group: Group, whole: int, most: int, language: str) -> str:
    cost, time = (escape(text(key, language)) for key in ("batch.report.cost", "batch.report.median_time"))
    return (
        f'<tr><th scope="row">{escape(outcome_words(name, language))}</th>'
        f'<td class="bar">{small_bar(name, group.count, most)}</td><td class="figure">{group.count:,}</td>'
        f'<td class="figure">{percent(group.count, whole)}</td>'
        f'<td class="figure cost" data-label="{cost}">{escape(part_of(group, language))}</td>'
        f'<td class="figure time" data-label="{time}">{duration(group.seconds)}</td></tr>'
    )


def _distributions(whole: Group, language: str) -> str:
    """Return the distributions of cost, time and tokens."""
    results = whole.results
    costs = [(item.cost, item.solved) for item in results if item.cost is not None]
    times = [(item.seconds, item.solved) for item in results]
    tokens = [(float(item.tokens), item.solved) for item in results]
    write = (lambda value: money(value, language), duration, short_count)
    parts = (
        _figure("cost", costs, DECIMAL, write[0], language),
        _figure("time", times, SECONDS, write[1], language),
        _figure("tokens", tokens, DECIMAL, write[2], language),
    )
    return f'<section class="charts">{"".join(parts)}</section>{legend(language)}'


def _figure(
    name: str,
    pairs: Sequence[tuple[float, bool]],
    steps: Sequence[float],
    write: Callable[[float], str],
    language: str,
) -> str:
    title = text(f"batch.report.{name}_each", language)
    if pairs:
        values = [value for value, _ in pairs]
        figures = {"median": median(values), "high": within_nine_of_ten(values), "most": max(values)}
        told = text("batch.report.spread", language, **{key: write(value) for key, value in figures.items()})
        chart = distribution(f"spread-{name}", bins(pairs, steps), title, write, language)
    else:
        told, chart = text("batch.report.no_costs", language), ""
    return f'<figure><h3>{escape(title)}</h3>{chart}<figcaption class="note">{escape(told)}</figcaption></figure>'


def _tasks(folder: Path, whole: Group, groups: Mapping[str, Group], language: str) -> str:
    """Return the table of all tasks, with the tools that the script shows."""
    rows = "\n".join(task_row(folder, result, language) for result in worst_first(whole.results))
    title = escape(text("batch.report.tasks", language))
    return (
        f'<section class="tasks"><h2 id="all-tasks">{title}</h2>{_tools(whole, groups, language)}<div class="panel">'
        f'<table id="tasks" role="table" aria-labelledby="all-tasks">{headings(language)}'
        f'<tbody role="rowgroup">\n{rows}\n</tbody></table></div></section>'
    )


def _tools(whole: Group, groups: Mapping[str, Group], language: str) -> str:
    """Return the choice of outcomes and the search, hidden without the script."""
    choices = [("", text("batch.report.all", language), whole.count)]
    if 0 < whole.solved < whole.count:
        choices.append(("open", text("batch.report.open", language), whole.count - whole.solved))
    choices += [(name, outcome_words(name, language), group.count) for name, group in groups.items()]
    options = "".join(f'<option value="{name}">{escape(words)} ({count})</option>' for name, words, count in choices)
    shown = escape(text("batch.report.shown", language, shown="#", count=whole.count))
    return (
        f'<div id="tools" class="tools" role="search" hidden>'
        f'<label>{escape(text("batch.report.show", language))} <select id="kind">{options}</select></label>'
        f'<label>{escape(text("batch.report.find", language))} <input id="find" type="search"></label>'
        f'<p id="shown" class="note" role="status" data-words="{shown}"></p></div>'
    )


def _hash_source(content: str) -> str:
    """Return a source expression of the policy that allows exactly this inline text."""
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


# The charts of a report, as SVG inside the page: bars with their numbers, readable without colours.


def shared_patterns() -> str:
    """Return the hatchings that the charts refer to, as a hidden SVG; once in a page, before the first chart."""
    lines = (
        ("hatch", 45, '<rect class="open" width="6" height="6"/><path class="stroke" d="M0 0V6"/>'),
        ("dots", 0, '<rect class="done" width="6" height="6"/><circle class="dot" cx="3" cy="3" r="1.2"/>'),
    )
    patterns = "".join(
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate({turn})">{shape}</pattern>'
        for name, turn, shape in lines
    )
    return (
        f'<svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false"><defs>{patterns}</defs></svg>'
    )


def share_bar(groups: Mapping[str, Group], title: str, told: str) -> str:
    """Return an SVG bar over the whole width with the shares of solved tasks, those done without a check, and the
    others. `groups` are the tasks by outcome, at least one; `told` describes it for screen readers.
    """
    whole = sum(group.count for group in groups.values())
    counts = [groups[kind].count if kind in groups else 0 for kind in _KINDS]
    parts, left = [], 0.0
    for kind, count in (*zip(_KINDS, counts, strict=True), ("open", whole - sum(counts))):
        width = 100 * count / whole
        if count:
            parts.append(f'<rect class="{_fill(kind)}" x="{left:.3f}%" width="{width:.3f}%" height="100%"/>')
        left += width
    return _svg("share", "", title, told, "".join(parts))


def small_bar(kind: str, part: int, most: int) -> str:
    """Return the SVG bar of one line of a table, `part` of `most` (not 0) wide; hidden from screen readers, as the line
    has the number. `kind` is the outcome, by which it is filled.
    """
    return (
        '<svg class="small" aria-hidden="true" focusable="false">'
        f'<rect class="{_fill(kind)}" width="{100 * part / most:.2f}%" height="100%"/></svg>'
    )


def legend(language: str) -> str:
    """Return an HTML paragraph that says, in `language`, what filled and hatched parts of a bar mean."""
    names = ((SOLVED, "batch.report.solved"), ("open", "batch.report.open"))
    parts = (
        f'<span><svg class="key" aria-hidden="true" focusable="false"><rect class="{_fill(kind)}" width="100%" '
        f'height="100%"/></svg> {escape(text(key, language))}</span>'
        for kind, key in names
    )
    return f'<p class="legend note">{"".join(parts)}</p>'


def distribution(name: str, bars: Sequence[Bin], title: str, write: Callable[[float], str], language: str) -> str:
    """Return an SVG chart of a distribution, given by at least one bar; `name` is its CSS class, `title` its name for
    screen readers, `write` returns a value as text.
    """
    most = max(item.count for item in bars)
    step = _WIDTH / len(bars)
    told, shapes = [], []
    for number, item in enumerate(bars):
        span = f"{write(item.low)} – {write(item.high)}"
        words = text("batch.report.bar", language, span=span, count=item.count, solved=item.solved)
        told.append(words if item.count else "")
        shapes.append(_column(item, number * step, step, (_FLOOR - _TOP) / most, words))
    every = -(-len(bars) // _MOST_LABELS)
    edges = [*(item.low for item in bars), bars[-1].high]
    labels = (_label(write(edges[place]), place * step, _FLOOR + 17) for place in range(0, len(edges), every))
    axis = f'<path class="axis" d="M0 {_FLOOR + 0.5}H{_WIDTH}"/>'
    return _svg(
        name,
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        title,
        " ".join(filter(None, told)),
        "".join((*shapes, axis, *labels)),
    )


def headings(language: str) -> str:
    """Return the head of the table of tasks as HTML; `data-sort` says how the script may sort a column."""
    cells = "".join(
        f'<th scope="col" role="columnheader" class="{kind}" data-sort="{sort}">'
        f"{escape(text(f'batch.report.{name}', language))}</th>"
        for name, sort, kind in _COLUMNS
    )
    return f'<thead role="rowgroup"><tr role="row">{cells}</tr></thead>'


def task_row(folder: Path, result: TaskResult, language: str) -> str:
    """Return the table row of one task as HTML, with links relative to `folder` to its files. Its ARIA roles are named,
    because narrow screens show rows as cards.
    """
    kind = outcome(result)
    cells = (
        _name_cell(result),
        f'<td role="cell" class="result" data-value="{kind}">{_verdict(result, kind, language)}</td>',
        _number_cell("changes", result.added + result.removed, _changes(result, language), language),
        _number_cell("tokens", result.tokens, f"{result.tokens:,}", language),
        # -1: unknown costs are sorted below those that are 0
        _number_cell("cost", -1 if result.cost is None else result.cost, escape(cost_of(result, language)), language),
        _number_cell("time", result.seconds, duration(result.seconds), language),
        f'<td role="cell" class="links">{_links(folder, result.id, language)}</td>',
    )
    still_open = "" if result.solved else " data-open"
    return f'<tr role="row" data-outcome="{kind}"{still_open}>{"".join(cells)}</tr>'


def _column(item: Bin, left: float, step: float, unit: float, words: str) -> str:
    """Return one bar: the solved below, the others above, the number on top."""
    if not item.count:
        return ""
    x, width = left + step * 0.08, step * 0.84
    solved, rest = item.solved * unit, (item.count - item.solved) * unit
    shapes = [
        f'<rect class="{_fill(kind)}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
        for kind, top, height in ((SOLVED, _FLOOR - solved, solved), ("open", _FLOOR - solved - rest, rest))
        if height
    ]
    number = _label(str(item.count), left + step / 2, _FLOOR - solved - rest - 4, "number", middle=True)
    return f"<g><title>{escape(words)}</title>{''.join(shapes)}{number}</g>"


def _label(words: str, x: float, y: float, kind: str = "label", *, middle: bool = False) -> str:
    """Return a text at a place; at the ends of the axis it stays inside."""
    anchor = "middle" if middle or 0 < x < _WIDTH - 1 else "start" if x <= 0 else "end"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _fill(kind: str) -> str:
    """Return the class of a bar: filled, dotted or hatched."""
    return f"fill-{kind}" if kind in _KINDS else "fill-open"


def _svg(name: str, attributes: str, title: str, told: str, content: str) -> str:
    return (
        f'<svg class="chart {name}" {attributes} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(told)}</desc>{content}</svg>'
    )


def _name_cell(result: TaskResult) -> str:
    name = escape(brief(result.id, 200))
    said = f'<div class="said">{escape(brief(result.task, _MOST_WORDS))}</div>' if result.task else ""
    return f'<th scope="row" role="rowheader" class="name" data-value="{name}"><code>{name}</code>{said}</th>'


def _verdict(result: TaskResult, kind: str, language: str) -> str:
    """Return the outcome with its sign, and the error, the rest of which can be opened."""
    words, colour = escape(outcome_words(kind, language)), kind if kind in _MARKS else "open"
    verdict = (
        f'<span class="verdict is-{colour}"><span aria-hidden="true">{_MARKS.get(kind, "✗")}</span> {words}</span>'
    )
    return verdict + _collapsible(result.error, language)


def _collapsible(words: str, language: str) -> str:
    """Return a text of which one line is seen and the rest can be opened."""
    first = brief(words, _MOST_WORDS)
    if not first or (len(words) <= _MOST_WORDS and "\n" not in words.strip()):
        return f'<div class="said">{escape(first)}</div>' if first else ""
    left = len(words) - _MOST_ERROR
    rest = f"\n{text('batch.report.cut', language, count=f'{left:,}')}" if left > 0 else ""
    whole = escape(visible(words[:_MOST_ERROR]) + rest)
    return f'<details><summary>{escape(first)}</summary><pre tabindex="0">{whole}</pre></details>'


def _number_cell(name: str, value: float, shown: str, language: str) -> str:
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
