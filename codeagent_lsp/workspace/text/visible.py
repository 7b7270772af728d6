"""Display of untrusted text: invisible characters and those that change the reading order are written out.

The table of these characters is used wherever approvals, command lines, terminal output, file names and outside text
are displayed. For text, terminal control sequences are removed, too, and what is hidden in Unicode tag characters is
decoded. Not here: letters that look alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from codeagent_lsp.texts import text as words

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]+")
# CSI, OSC (titles, links) up to its end, two-character sequences, and a lone ESC.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-_])?")

# Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), but for what is in a category below.
_IGNORABLE = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors and vowel separator
    (0x2065, 0x2065),
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),  # tags, variation selectors, and the reserved code points beside them
)
_DRAWN_AS_NOTHING = "\u2800\U00016fe4\U0001d159"  # Braille blank, Khitan filler, null notehead
_UNSEEN_KINDS = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_ODD_KINDS = frozenset(("Co", "Cn", "Zs"))
# Of category Cf, but visible: signs before a number (Prepended_Concatenation_Mark).
_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")

# `[words](command:…)`, which VS Code makes a link of also in its message boxes; `[words](https://…)` leads to the web.
_BOX_LINK = re.compile(r"\]\((?=\s*(?!https?://)[A-Za-z][A-Za-z0-9+.-]*:)", re.IGNORECASE)

_NON_JOINER, _JOINER = "\u200c", "\u200d"
_STYLES = frozenset("\ufe0e\ufe0f")  # text style, emoji style
_PICTURE_KINDS = frozenset(("So", "Sk", "Sm"))  # signs, skin tones, arrows
_OTHER_PICTURES = frozenset("\u203c\u2049\u2139\u3030")  # emoji that are punctuation or a letter
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")


def is_unseen(char: str) -> bool:
    """Return whether a character is invisible or a control: control, bidi mark, default-ignorable or blank letter.

    Line feed, tab and spaces of any width count as visible. Characters that join the parts of an emoji count as unseen
    (`shown` keeps those).
    """
    if " " <= char <= "~" or char in "\n\t":  # nearly all that is asked about
        return False
    if unicodedata.category(char) in _UNSEEN_KINDS:
        return char not in _DRAWN
    return char in _DRAWN_AS_NOTHING or any(first <= ord(char) <= last for first, last in _IGNORABLE)


def is_odd(char: str) -> bool:
    """Return whether a character is unseen, a space other than U+0020, private use or unassigned."""
    return char != " " and (is_unseen(char) or unicodedata.category(char) in _ODD_KINDS)


def control_characters(text: str) -> tuple[str, ...]:
    """Return the distinct control characters of `text` but tab and newline, in its order. No command needs them, and no
    shell accepts a NUL.
    """
    return tuple(dict.fromkeys(_CONTROLS.findall(text)))


def code_point_notation(char: str) -> str:
    """Return a character in the notation of Unicode: `<U+202E>`."""
    return f"<U+{ord(char):04X}>"


def escape_notation(char: str) -> str:
    r"""Return a character as Python escapes it in a string: `\u202e` up to U+FFFF, as JSON does too, and `\U000e0100`
    above.
    """
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def shown(text: str, write: Callable[[str], str] = code_point_notation) -> str:
    """Return `text` with each unseen character replaced by `write(char)`, by default `<U+202E>`, except those that
    emoji and joining scripts need.
    """
    return _replace(text, is_unseen, lambda index: text[index] if _belongs(text, index) else write(text[index]))


def shown_exactly(text: str, write: Callable[[str], str] = code_point_notation) -> str:
    """Return `text` with each character for which `is_odd` holds replaced by `write(char)`, by default `<U+202E>`, also
    inside emoji.

    For commands and calls that the user reads before approving them.
    """
    return _replace(text, is_odd, lambda index: write(text[index]))


def first_hidden(text: str) -> int:
    """Return the offset, in characters, of the first character that `shown` would replace; the length of the text if
    there is none.
    """
    if _PLAIN.fullmatch(text):
        return len(text)
    return next((at for at, char in enumerate(text) if is_unseen(char) and not _belongs(text, at)), len(text))


def _replace(text: str, which: Callable[[str], bool], write: Callable[[int], str]) -> str:
    if _PLAIN.fullmatch(text):
        return text
    found = "".join(filter(which, set(text)))
    return re.sub(f"[{re.escape(found)}]", lambda match: write(match.start()), text) if found else text


def _belongs(text: str, index: int) -> bool:
    """Return whether the character at `index` joins or styles its neighbours.

    That is the case in emoji sequences and keycaps, and in Arabic, Indic and Mongolian script.
    """
    char, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if char in _STYLES:
        return _is_picture(before) or (before in tuple("#*0123456789") and after == "\u20e3")
    if char == _JOINER and _is_picture(after):
        return _is_picture(text[index - 2 : index - 1] if before in _STYLES else before)
    if char in (_NON_JOINER, _JOINER):
        return _is_joined_letter(before) and _is_joined_letter(after)
    return "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"


def _is_picture(char: str) -> bool:
    return char > "\x7f" and (unicodedata.category(char) in _PICTURE_KINDS or char in _OTHER_PICTURES)


def _is_joined_letter(char: str) -> bool:
    """Return whether this is a letter or mark of the blocks U+0600 to U+1CFF, whose scripts use joiners."""
    return "\u0600" <= char <= "\u1cff" and unicodedata.category(char)[0] in "LM"


def visible(text: str) -> str:
    """Return `text` with invisible characters escaped, ANSI sequences removed and hidden tag characters decoded. CRLF
    becomes LF, and a byte-order mark at the beginning is removed.
    """
    text = _ANSI.sub("", text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if text.isascii():
        return shown(text, escape_notation)
    text = _SELECTORS.sub(lambda match: f"[{len(match[0])} hidden characters]", _TAGS.sub(_hidden_words, text))
    return shown(text, escape_notation)


def in_box(text: str) -> str:
    """Return text for a message box, a progress bar or a lens: made visible, and with Markdown links escaped whose
    scheme is not http or https. It is not cut, and its lines stay.
    """
    return _BOX_LINK.sub(r"]\\(", visible(text))


def has_unseen(text: str) -> bool:
    """Return whether `visible` would change `text`, apart from its line ends and byte-order mark."""
    return visible(text) != text.replace("\r\n", "\n").removeprefix("\ufeff")


def one_line(text: str, limit: int) -> str:
    """Return `text` made visible, with all whitespace runs as one space and none at the ends, cut to `limit` characters
    with a "…".
    """
    return cut(" ".join(visible(text).split()), limit)


def printable_line(text: str, limit: int) -> str:
    """Return a text on one line of at most `limit` characters, cut with a "…". What cannot be printed becomes a blank,
    and a run of blanks one.
    """
    return cut(" ".join("".join(char if char.isprintable() else " " for char in text).split()), limit)


def fenced(text: str) -> str:
    """Return a text as a code block in Markdown, without a language, with a fence of backticks that is longer than any
    in the text; no line end after it.
    """
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def cut(line: str, limit: int) -> str:
    """Return `line`; of one longer than `limit` characters its head and a "…", together `limit` characters (at least
    the "…").
    """
    return line if len(line) <= limit else line[: max(0, limit - 1)] + "…"


def some_of(names: Iterable[str], most: int, *, counted: bool = True) -> str:
    """Return at most `most` names joined by commas, without words of any language, and if some are left out the number
    of all: "a, b, … (7)", or "a, b, …" if they are not `counted`.
    """
    known = list(names)
    more = [f"… ({len(known)})" if counted else "…"] if len(known) > most else []
    return ", ".join([*known[:most], *more])


def cut_at_word(line: str, limit: int) -> str:
    """Return `line`; of one longer than `limit` characters its head and a "…", at most `limit` characters. It is cut at
    the end of a word, unless that would leave less than half.
    """
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    at_end = head if line[limit - 1].isspace() else head.rpartition(" ")[0]
    return (at_end if len(at_end) > limit // 2 else head).rstrip() + "…"


def ends_of(text: str, limit: int, language: str = "en") -> str:
    """Return `text`; of one longer than `limit` characters its head and tail, together `limit` characters, and between
    them a note in the user's `language` (`en` or `zh-cn`) on how many characters are left out.
    """
    if len(text) <= limit:
        return text
    tail = limit // 3
    left = words("text.left_out", language, count=f"{len(text) - limit:,}")
    return f"{text[: limit - tail]} {left} {text[len(text) - tail :]}"


def _hidden_words(match: re.Match[str]) -> str:
    # From U+E0020 on the block repeats ASCII; what is below are marks of a language.
    letters = "".join(chr(ord(char) - 0xE0000) for char in match[0] if ord(char) >= 0xE0020)
    return f"[hidden: {letters.rstrip(chr(0x7F))}]"
