"""Draws what stood on a terminal as one SVG, still or moving. Not here: terminals, editors, files.

Lines that are the same in several frames are drawn once, so that a minute of an editor takes some ten kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from xml.sax.saxutils import escape, quoteattr

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

CELL = (8.4, 18.0)  # width and height of a character, in pixels
MARGIN = 12.0
INK, PAPER, CURSOR = "#e0e2ea", "#14161b", "#9b9ea4"


@dataclass(frozen=True)
class Frame:
    """A screen as `tmux capture-pane -e` gives it, how long it stays, and the cell of the cursor."""

    text: str
    seconds: float = 1.0
    cursor: tuple[int, int] | None = None


def draw(frames: Sequence[Frame], *, columns: int, rows: int, title: str) -> str:
    """The SVG of the frames, shown one after the other for ever; of one frame, a still picture."""
    lines: dict[str, int] = {}
    bodies = [_body(frame, rows, lines) for frame in frames]
    width, height = columns * CELL[0] + 2 * MARGIN, rows * CELL[1] + 2 * MARGIN
    shown = "".join(_appearing(body, when) for body, when in zip(bodies, _times(frames), strict=True))
    defined = "".join(f'<g id="l{number}">{drawn}</g>' for drawn, number in lines.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f"aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        '<style>text{font:14px "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}</style>'
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{PAPER}"/>'
        f'<defs>{defined}</defs><g transform="translate({MARGIN:g} {MARGIN:g})">{shown}</g></svg>\n'
    )


def _times(frames: Sequence[Frame]) -> Iterator[tuple[float, float, float] | None]:
    """When each frame begins and ends, and how long all take, in seconds; None for a still picture."""
    if len(frames) == 1:
        yield None
        return
    ends = list(accumulate(frame.seconds for frame in frames))
    for frame, end in zip(frames, ends, strict=True):
        yield end - frame.seconds, end, ends[-1]


def _appearing(body: str, when: tuple[float, float, float] | None) -> str:
    if when is None:
        return body
    begin, end, whole = when
    values, times = ["hidden", "visible", "hidden"], [0.0, begin / whole, end / whole]
    if begin == 0:
        values, times = values[1:], times[1:]
    if end == whole:
        values, times = values[:-1], times[:-1]
    moments = ";".join(f"{moment:.4f}" for moment in times)
    last = ' visibility="visible"' if end == whole else ' visibility="hidden"'  # where nothing moves: the last one
    return (
        f'<g{last}>{body}<animate attributeName="visibility" calcMode="discrete" repeatCount="indefinite" '
        f'dur="{whole:.2f}s" values="{";".join(values)}" keyTimes="{moments}"/></g>'
    )


def _body(frame: Frame, rows: int, lines: dict[str, int]) -> str:
    parts = []
    if frame.cursor:
        column, row = frame.cursor
        x, y = column * CELL[0], row * CELL[1]
        parts.append(f'<rect x="{x:.1f}" y="{y:g}" width="{CELL[0]:g}" height="{CELL[1]:g}" fill="{CURSOR}"/>')
    decoder = AnsiDecoder()  # one for all lines: a colour lasts until the next one is given, also beyond the line
    for row, line in enumerate(frame.text.split("\n")[:rows]):
        drawn = _line(decoder.decode_line(line))
        if drawn:
            number = lines.setdefault(drawn, len(lines))
            parts.append(f'<use href="#l{number}" y="{row * CELL[1]:g}"/>')
    return "".join(parts)


def _line(line: Text) -> str:
    """One line of a terminal at the top left corner: backgrounds, then letters, each run held to the grid."""
    console = Console(color_system="truecolor", width=1000, force_terminal=True, legacy_windows=False)
    back, letters, column = [], [], 0
    for part, style, _ in line.render(console):
        cells = cell_len(part)
        x, width = column * CELL[0], cells * CELL[0]
        ink, paper = _colours(style or Style.null())
        if paper != PAPER:
            back.append(f'<rect x="{x:.1f}" width="{width:.1f}" height="{CELL[1]:g}" fill="{paper}"/>')
        if part.strip():
            letters.append(_run(part, style or Style.null(), ink, x, width))
        column += cells
    return "".join([*back, *letters])


def _run(part: str, style: Style, ink: str, x: float, width: float) -> str:
    look = "".join(
        attribute
        for given, attribute in (
            (style.bold, ' font-weight="bold"'),
            (style.italic, ' font-style="italic"'),
            (style.underline, ' text-decoration="underline"'),
            (style.dim, ' opacity="0.6"'),
        )
        if given
    )
    return f'<text x="{x:.1f}" y="13.5" textLength="{width:.1f}" fill="{ink}"{look}>{escape(part)}</text>'


def _colours(style: Style) -> tuple[str, str]:
    ink, paper = _hex(style.color, INK), _hex(style.bgcolor, PAPER)
    return (paper, ink) if style.reverse else (ink, paper)


def _hex(colour: Color | None, default: str) -> str:
    return default if colour is None or colour.is_default else colour.get_truecolor(MONOKAI).hex
