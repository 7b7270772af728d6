"""What the user's words point at: `@path`, `@path#symbol`, `@path:10-20`, `@diff`, `@diagnostics`, `@selection`,
`@terminal-output`.

Only the spelling. Not here: which text a mention stands for (`session/mentioned.py`), whole files that are named
without a sign (`gather.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

MOST_MENTIONS = 30
MOST_SHORTER = 12

MentionKind = Literal["file", "diff", "diagnostics", "selection", "terminal-output"]

SPECIAL: tuple[MentionKind, ...] = ("diff", "diagnostics", "selection", "terminal-output")

# What ends a plain name: blanks, quotes, brackets and punctuation, also the full-width ones of Chinese and Japanese.
_NO_NAME = r"\s\"'`@()<>\[\]{},;!?*|，。；：！？（）、「」『』《》“”"
_SYMBOL = r"[\w.:~$-]+"
_QUOTED = r'"([^"\n]{1,1000})"|“([^”\n]{1,1000})”'
_PLAIN = rf"(?:[^{_NO_NAME}]|\[[^{_NO_NAME}]+\]|\([^{_NO_NAME}]+\)){{1,1000}}"  # app/(shop)/[id]/page.tsx
# Not inside of a word, an address or a path: `me@x.org`, `/@types`, `\@a` mention nothing.
_MENTION = re.compile(rf"(?<![A-Za-z0-9_@/.`\\])@(?:{_QUOTED}|({_PLAIN}))(?:#({_SYMBOL}))?")
# `:10`, `:10-20`, `:10:5` (line and column, as compilers print), `#L3`, `#L3-L9`.
_LINES = re.compile(r"(?::|#L)(\d{1,7})(?:-L?(\d{1,7})|:\d{1,7})?$")
_PART = re.compile(rf"(.+)#({_SYMBOL})")
# Where words of another script may follow a name without a blank, or a bracket: `a.py里的`, `a.py(see)`.
_WORDS_BEGIN = re.compile(r"(?<=[\x21-\x7e])(?=[^\x00-\x7f])|(?=[(\[])")
# A fenced block, or code between backticks in as many as it began with: there `@` is a decorator or a scope.
_CODE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ \t]*\1|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention. `path` is as it was written; `symbol` is a name in that file; `lines` are the first and last line,
    1-based; `text` is the mention itself.
    """

    kind: MentionKind
    text: str
    path: str = ""
    symbol: str = ""
    lines: tuple[int, int] | None = None


def mentions_in(words: str, most: int = MOST_MENTIONS) -> tuple[Mention, ...]:
    """Return the mentions in the words, each once, in order; at most `most`. Code in the words, fenced or between
    backticks, has none. Whether a file exists is not looked at.
    """
    # Blanks of the same length, so that offsets stay.
    prose = _CODE.sub(lambda match: " " * len(match[0]), words)
    found = (_mention(match) for match in _MENTION.finditer(prose))
    return tuple(islice(dict.fromkeys(mention for mention in found if mention is not None), most))


def shorter_readings(mention: Mention) -> Iterator[Mention]:
    """Yield other readings of a mention: as a file whose name looks like lines or a symbol, and, the longest first,
    without the words that follow it, as languages without blanks have them (`@src/a.py里的名字`).
    """
    if mention.kind == "file" and mention.path != mention.text[1:]:
        yield Mention("file", mention.text, mention.text[1:])
    for match in reversed(list(islice(_WORDS_BEGIN.finditer(mention.text), MOST_SHORTER))):
        found = _MENTION.fullmatch(mention.text[: match.start()])
        shorter = None if found is None else _mention(found)
        if shorter is not None:
            yield shorter


def write_mention(path: str, lines: tuple[int, int] | None = None) -> str:
    """Return the mention of a file as a user writes it: `@path`, the path as it is given, quoted if necessary, with
    `#L3-L9` for `lines` (the first and the last one, 1-based).
    """
    match = _MENTION.fullmatch(f"@{path}")
    plain = match is not None and _mention(match) == Mention("file", f"@{path}", path)
    name = path if plain else f'"{path}"'
    if lines is None:
        return f"@{name}"
    first, last = lines
    return f"@{name}#L{first}" if first == last else f"@{name}#L{first}-L{last}"


def _mention(match: re.Match[str]) -> Mention | None:
    quoted, plain, symbol = match[1] or match[2], match[3] or "", match[4] or ""
    # The end of a sentence belongs to the words: `look at @diff.`
    special = next((kind for kind in SPECIAL if plain.rstrip(".:") == kind), None)
    if special is not None:
        return Mention(special, f"@{special}")
    path, lines = quoted or plain, None
    if not quoted and not symbol and (parts := _PART.fullmatch(plain)):
        path, symbol = parts[1], parts[2]
    if symbol:
        lines = _lines(f"#{symbol}")
    elif not quoted:
        path = path.rstrip(".:")
        lines = _lines(path)
        path = path if lines is None else _LINES.sub("", path)
    symbol = "" if lines is not None else symbol.rstrip(".:")
    return Mention("file", match[0].rstrip(".:"), path, symbol, lines) if path else None


def _lines(text: str) -> tuple[int, int] | None:
    match = _LINES.search(text)
    if match is None:
        return None
    first = max(1, int(match[1]))
    return first, max(first, int(match[2] or first))
