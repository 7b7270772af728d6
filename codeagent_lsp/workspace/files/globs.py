"""Glob patterns over relative paths: `*`, `?`, `[...]`, `{a,b}` and `**` for any number of folders.

A pattern without `/` matches a name at any depth. Names may contain brackets, as those of routes in some frameworks do;
`Glob.as_written` matches these. How Unicode composes a letter makes no difference. Matching never takes exponential
time. Not here: ignore files, which have rules of their own (`ignore.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from codeagent_lsp.errors import ToolRetry

_MAX_ALTERNATIVES = 64
_MAX_LENGTH = 1000
_PIECE = re.compile(r"\*+|\?|\[[!^]?\]?[^\]/]*\]|\\.|.", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_END = re.compile("(?!)")  # matches no name

_Segment = re.Pattern[str] | None  # None stands for `**`


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob pattern, immutable; compile it once with `compile_glob` to match many paths."""

    alternatives: tuple[tuple[_Segment, ...], ...]
    as_written: Glob | None = None
    """The same pattern with its brackets taken literally, as in `app/[id]/*.tsx`; None if it has none."""

    def matches(self, path: str) -> bool:
        """Return whether the whole of `path`, relative and with '/' as separator, matches; brackets are sets of
        characters here, and how Unicode composes letters does not matter.
        """
        parts = unicodedata.normalize("NFC", path).split("/")
        return any(_fits(parts, segments) for segments in self.alternatives)


def compile_glob(pattern: str) -> Glob:
    """Compile a glob pattern; one without `/` matches a name at any depth, a `/` in front binds it to the top, and one
    at the end does not count. ToolRetry if it is empty, longer than 1,000 characters or has more than 64 alternatives.
    """
    if not pattern.strip("/") or len(pattern) > _MAX_LENGTH:
        raise ToolRetry("The glob pattern is empty or too long. Give one such as src/**/*.py.")
    anywhere = "/" not in pattern.strip("/") and not pattern.startswith("/")
    plain = unicodedata.normalize("NFC", pattern).removeprefix("./").strip("/")
    whole = f"**/{plain}" if anywhere else plain
    # A file may also have the braces in its name.
    options = list(dict.fromkeys((*_expand(whole), whole)))
    written = [re.sub(r"(?<!\\)\[", r"\\[", option) for option in options]
    as_written = None if written == options else Glob(tuple(map(_segments, written)))
    return Glob(tuple(map(_segments, options)), as_written)


def _expand(pattern: str) -> list[str]:
    """Return the patterns that the braces expand to, as in a shell, innermost first."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        option = pending.pop()
        # Innermost first: the pattern of braces matches only those without others inside.
        found = _BRACES.search(option)
        if found is None:
            done.append(option)
        else:
            pending += [option[: found.start()] + word + option[found.end() :] for word in found[1].split(",")]
        if len(done) + len(pending) > _MAX_ALTERNATIVES:
            raise ToolRetry("The glob pattern has too many alternatives in braces. Make several calls.")
    return done


def _segments(pattern: str) -> tuple[_Segment, ...]:
    return tuple(None if part == "**" else _segment(part) for part in pattern.split("/") if part)


def _segment(part: str) -> re.Pattern[str]:
    """Compile the pattern of one path part. Each star but the last matches lazily and atomically: no backtracking."""
    chunks: list[str] = [""]
    for piece in _PIECE.findall(part):
        if piece.startswith("*"):
            chunks.append("")
        else:
            chunks[-1] += _piece(piece)
    if len(chunks) == 1:
        return re.compile(chunks[0], re.DOTALL)
    head, *middle, last = chunks
    return re.compile(head + "".join(f"(?>.*?{chunk})" for chunk in middle) + f".*{last}", re.DOTALL)


def _piece(piece: str) -> str:
    if piece == "?":
        return "."
    if piece.startswith("[") and len(piece) > 2:
        return _char_class(piece[1:-1])
    return re.escape(piece[1] if piece.startswith("\\") and len(piece) == 2 else piece)


def _char_class(body: str) -> str:
    sign, body = ("^", body[1:]) if body[0] in "!^" else ("", body)
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", body)
    try:
        re.compile(f"[{sign}{escaped}]")
    except re.error:
        return re.escape(f"[{body}]")
    return f"[{sign}{escaped}]"


def _fits(parts: Sequence[str], segments: Sequence[_Segment]) -> bool:
    """Match path parts against segments with one backtracking point, the last `**` passed."""
    at = seg = 0
    back: tuple[int, int] | None = None
    while at < len(parts):
        segment = segments[seg] if seg < len(segments) else _END
        if segment is None:
            back = (at, seg + 1)
            seg += 1
        elif segment.fullmatch(parts[at]):
            at, seg = at + 1, seg + 1
        elif back is not None:
            at, seg = back[0] + 1, back[1]
            back = (at, seg)
        else:
            return False
    return seg == len(segments)  # a final `**` needs at least one name, so a remaining one does not match
