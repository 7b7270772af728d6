"""The charts of a report, as SVG inside the page: bars with their numbers, readable without colours.

What is not solved is hatched. Colours come from the page's style sheet. Not here: the figures (`report_figures.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from codeagent_lsp.batch.report_figures import DONE, SOLVED, Bin, Group
from codeagent_lsp.texts import text

_WIDTH, _HEIGHT = 320, 150
_TOP, _FLOOR = 16, 126  # of the bars of a distribution
_MOST_LABELS = 5
_KINDS = (SOLVED, DONE)


def shared_patterns() -> str:
    """Return the hatchings that the charts refer to; once in a page."""
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
    """Return one bar over the whole width: solved, done without a check, not solved."""
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
    """Return the bar of one line of a table that has the number itself."""
    return (
        '<svg class="small" aria-hidden="true" focusable="false">'
        f'<rect class="{_fill(kind)}" width="{100 * part / most:.2f}%" height="100%"/></svg>'
    )


def legend(language: str) -> str:
    """Return what filled and hatched parts of a bar mean."""
    names = ((SOLVED, "batch.report.solved"), ("open", "batch.report.open"))
    parts = (
        f'<span><svg class="key" aria-hidden="true" focusable="false"><rect class="{_fill(kind)}" width="100%" '
        f'height="100%"/></svg> {escape(text(key, language))}</span>'
        for kind, key in names
    )
    return f'<p class="legend note">{"".join(parts)}</p>'


def distribution(name: str, bars: Sequence[Bin], title: str, write: Callable[[float], str], language: str) -> str:
    """Return the bars of a distribution; `name` is one of this page's, `write` words a value."""
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
